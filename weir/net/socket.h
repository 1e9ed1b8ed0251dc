// Sockets as values: a descriptor that closes itself, and the few ways to make one. All are non-blocking and close on
// exec.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/result.h"

namespace weir {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) noexcept : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  int fd() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

  // recv() and send(), and errno as they leave it, without what a program with threads pays there for pthread_cancel(),
  // which nobody here calls. A peer that is gone is no signal.
  ssize_t receive(std::span<char> bytes) const noexcept;
  ssize_t send(std::string_view bytes) const noexcept;

 private:
  int fd_ = -1;
};

// "127.0.0.1:8080", "[::1]:8080", "localhost:8080" (loopback only), "0.0.0.0:0" (any free port) or "unix:/run/x.sock".
struct Address {
  std::string host;  // a literal IP address; empty for a UNIX socket
  std::uint16_t port = 0;
  std::string path;  // of a UNIX socket

  static Result<Address> parse(std::string_view text);
  bool is_unix() const noexcept { return !path.empty(); }
  bool is_loopback() const noexcept;
  std::string print() const;

  friend bool operator==(const Address&, const Address&) = default;
};

// With SO_REUSEPORT, so that every loop may listen on its own socket of the same port and the kernel spreads
// connections. A stale UNIX socket that nobody listens on is replaced. A live one is an error, and so is anything at
// the path that is not a socket.
Result<Socket> listen_on(const Address& address);

// The file of a UNIX socket that this process has bound. The destructor removes it while the path still names the same
// file. Destroy it before the socket closes: a successor replaces the file as soon as nobody listens.
class SocketFile {
 public:
  explicit SocketFile(std::string path);
  SocketFile(SocketFile&&) noexcept = default;
  SocketFile& operator=(SocketFile&&) = delete;
  ~SocketFile();

 private:
  std::string path_;
  Socket pin_;  // an open descriptor keeps the inode number from being used again
};

// SO_REUSEPORT would let a second server take half of the first one's connections: before the first of our sockets on a
// port, this tells whether somebody else has it.
Result<void> check_free(const Address& address);
// Where it really listens: tells the port that 0 became.
Result<Address> bound_address(const Socket& socket);
// Begins to connect; writable means connected or failed (connect_error tells).
Result<Socket> begin_connect(const Address& address);
Result<void> connect_error(const Socket& socket, const Address& address);

struct Accepted {
  Socket socket;
  std::string peer;  // the address as text, without the port; empty for a UNIX socket
};
// The next waiting connection. No socket: none waits. An Error is worth logging; `unavailable` means out of
// descriptors.
Result<Accepted> accept_from(const Socket& listener);

}  // namespace weir
