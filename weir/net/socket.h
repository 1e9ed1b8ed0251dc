// A socket descriptor that closes itself, and the functions that create one. All sockets are non-blocking and
// close-on-exec.
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

  // recv() and send() as direct system calls: same result and errno, without the cancellation-point overhead that glibc
  // adds in threaded programs (we never call pthread_cancel()). A closed peer raises no SIGPIPE.
  ssize_t receive(std::span<char> bytes) const noexcept;
  ssize_t send(std::string_view bytes) const noexcept;

 private:
  int fd_ = -1;
};

// "127.0.0.1:8080", "[::1]:8080", "localhost:8080" (loopback only), ":8080" (all of IPv4), ":0" or "unix:/run/x.sock".
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

// Listens with SO_REUSEPORT, so that each loop can have its own socket on the same port and the kernel spreads
// connections. Replaces a stale UNIX socket that no process listens on. Fails if a process listens on it, or if the
// path is not a socket.
Result<Socket> listen_on(const Address& address);

// The file of a UNIX socket that this process has bound. The destructor removes the file if the path still names it.
// Destroy it before the socket closes: a successor replaces the file as soon as no process listens on it.
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

// Returns an error if another process listens on this port. Call it before the first of our sockets on a port: with
// SO_REUSEPORT a second server would silently take part of the first one's connections.
Result<void> check_free(const Address& address);
// Returns the address the socket is bound to, with the real port if it was bound to port 0.
Result<Address> bound_address(const Socket& socket);
// Starts a connection. When the socket becomes writable, connect_error() returns the outcome.
Result<Socket> begin_connect(const Address& address);
Result<void> connect_error(const Socket& socket, const Address& address);

struct Accepted {
  Socket socket;
  std::string peer;  // the address as text, without the port; empty for a UNIX socket
};
// Accepts the next pending connection. An empty socket means that none is pending. An Error is worth logging;
// `unavailable` means that the process is out of descriptors.
Result<Accepted> accept_from(const Socket& listener);

}  // namespace weir
