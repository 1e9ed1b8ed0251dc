#include "weir/net/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "weir/base/text.h"

namespace weir {
namespace {

Error failed(std::string_view what, const Address& address) {
  const Fault fault =
      errno == EADDRINUSE || errno == EACCES || errno == EADDRNOTAVAIL ? Fault::invalid : Fault::unavailable;
  return Error{fault, "cannot " + std::string(what) + " " + address.print() + ": " + std::strerror(errno)};
}

// A sockaddr of any family with its length.
struct Name {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);

  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Result<Name> to_name(const Address& address) {
  Name name;
  if (address.is_unix()) {
    auto* un = reinterpret_cast<sockaddr_un*>(&name.storage);
    if (address.path.size() >= sizeof un->sun_path) {
      return Error{Fault::invalid, "the path of " + address.print() + " is longer than " +
                                       std::to_string(sizeof un->sun_path - 1) + " bytes"};
    }
    un->sun_family = AF_UNIX;
    std::copy(address.path.begin(), address.path.end(), un->sun_path);
    name.size = sizeof(sockaddr_un);
    return name;
  }
  auto* v4 = reinterpret_cast<sockaddr_in*>(&name.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&name.storage);
  if (inet_pton(AF_INET, address.host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(address.port);
    name.size = sizeof(sockaddr_in);
    return name;
  }
  if (inet_pton(AF_INET6, address.host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(address.port);
    name.size = sizeof(sockaddr_in6);
    return name;
  }
  return Error{Fault::invalid, "\"" + address.host + "\" is not an IP address"};
}

Address from_name(const Name& name) {
  char text[INET6_ADDRSTRLEN] = {};
  if (name.storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&name.storage);
    inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    return {text, ntohs(v4->sin_port), {}};
  }
  if (name.storage.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&name.storage);
    inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
    return {text, ntohs(v6->sin6_port), {}};
  }
  const auto* un = reinterpret_cast<const sockaddr_un*>(&name.storage);
  return {{}, 0, un->sun_path};
}

Socket make_socket(int family) {
  return Socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Idle time before the kernel probes the peer. The same default as Redis.
constexpr int kKeepaliveSeconds = 300;

void set(const Socket& socket, int level, int option, int value = 1) {
  setsockopt(socket.fd(), level, option, &value, sizeof value);
}

bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// Removes the file at the path if it is a socket that no process listens on.
Result<void> remove_stale(const Address& address, const Name& name) {
  struct stat found {};
  if (lstat(address.path.c_str(), &found) != 0) return {};  // bind() reports what is wrong with the path
  if (!S_ISSOCK(found.st_mode)) {
    return Error{Fault::invalid,
                 "cannot listen on " + address.print() + ": " + address.path + " exists and is not a socket"};
  }
  const Socket probe = make_socket(AF_UNIX);  // a live but busy listener answers EAGAIN
  if (connect(probe.fd(), name.raw(), name.size) == 0 || errno != ECONNREFUSED) return {};
  struct stat still {};
  if (lstat(address.path.c_str(), &still) == 0 && is_same_file(found, still)) unlink(address.path.c_str());
  return {};
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

ssize_t Socket::receive(std::span<char> bytes) const noexcept {
  return syscall(SYS_recvfrom, fd_, bytes.data(), bytes.size(), 0, nullptr, nullptr);
}

ssize_t Socket::send(std::string_view bytes) const noexcept {
  return syscall(SYS_sendto, fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL, nullptr, 0);
}

Result<Address> Address::parse(std::string_view text) {
  const auto bad = [&](std::string_view rule) {
    return Error{Fault::invalid, "address " + quote(text) + " " + std::string(rule)};
  };
  if (text.starts_with("unix:")) {
    constexpr std::size_t kPathMax = sizeof(sockaddr_un::sun_path) - 1;
    if (text.size() == 5) return bad("has no path after unix:");
    if (text.size() - 5 > kPathMax) return bad("has a path longer than " + std::to_string(kPathMax) + " bytes");
    return Address{{}, 0, std::string(text.substr(5))};
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad("has no port: write host:port or unix:/path");
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad("is ambiguous: write an IPv6 address in brackets, [::1]:8080");
  }
  if (host == "localhost") host = "127.0.0.1";
  if (colon == 0) host = "0.0.0.0";
  Address address{std::string(host), 0, {}};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (port.empty() || error != std::errc{} || end != port.data() + port.size())
    return bad("needs a port from 0 to 65535");
  if (const auto name = to_name(address); !name) return bad("needs an IP address before the port");
  return address;
}

bool Address::is_loopback() const noexcept {
  if (is_unix() || host.starts_with("127.")) return true;
  // IPv6 has many spellings of one address.
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

std::string Address::print() const {
  if (is_unix()) return "unix:" + path;
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Socket> listen_on(const Address& address) {
  const auto name = to_name(address);
  if (!name) return name.error();
  Socket socket = make_socket(name->storage.ss_family);
  if (!socket) return failed("create a socket for", address);
  if (address.is_unix()) {
    if (auto removed = remove_stale(address, *name); !removed) return removed.error();
  } else {
    set(socket, SOL_SOCKET, SO_REUSEADDR);
    set(socket, SOL_SOCKET, SO_REUSEPORT);
    // Accepted sockets inherit it, so the kernel detects a peer that disappeared without closing.
    set(socket, SOL_SOCKET, SO_KEEPALIVE);
    set(socket, IPPROTO_TCP, TCP_KEEPIDLE, kKeepaliveSeconds);
    if (name->storage.ss_family == AF_INET6) set(socket, IPPROTO_IPV6, IPV6_V6ONLY);
  }
  if (bind(socket.fd(), name->raw(), name->size) != 0) return failed("listen on", address);
  if (listen(socket.fd(), SOMAXCONN) != 0) return failed("listen on", address);
  return socket;
}

SocketFile::SocketFile(std::string path)
    : path_(std::move(path)), pin_(open(path_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)) {}

SocketFile::~SocketFile() {
  struct stat bound {};
  struct stat named {};
  if (pin_ && fstat(pin_.fd(), &bound) == 0 && lstat(path_.c_str(), &named) == 0 && is_same_file(bound, named))
    unlink(path_.c_str());
}

Result<void> check_free(const Address& address) {
  if (address.is_unix() || address.port == 0) return {};
  const auto name = to_name(address);
  if (!name) return name.error();
  const Socket probe = make_socket(name->storage.ss_family);
  if (!probe) return failed("create a socket for", address);
  set(probe, SOL_SOCKET, SO_REUSEADDR);  // connections of an earlier server may still be closing
  if (name->storage.ss_family == AF_INET6) set(probe, IPPROTO_IPV6, IPV6_V6ONLY);
  if (bind(probe.fd(), name->raw(), name->size) != 0) return failed("listen on", address);
  return {};
}

Result<Address> bound_address(const Socket& socket) {
  Name name;
  if (getsockname(socket.fd(), name.raw(), &name.size) != 0)
    return Error{Fault::internal, std::string("getsockname: ") + std::strerror(errno)};
  return from_name(name);
}

Result<Socket> begin_connect(const Address& address) {
  const auto name = to_name(address);
  if (!name) return name.error();
  Socket socket = make_socket(name->storage.ss_family);
  if (!socket) return failed("create a socket for", address);
  if (!address.is_unix()) set(socket, IPPROTO_TCP, TCP_NODELAY);
  if (connect(socket.fd(), name->raw(), name->size) != 0 && errno != EINPROGRESS) return failed("connect to", address);
  return socket;
}

Result<void> connect_error(const Socket& socket, const Address& address) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == 0) return {};
  errno = error;
  return failed("connect to", address);
}

Result<Accepted> accept_from(const Socket& listener) {
  Name name;
  Socket socket(accept4(listener.fd(), name.raw(), &name.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) {
    // The peer may have closed already; that is not an error of ours.
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED || errno == EPROTO) return Accepted{};
    return Error{Fault::unavailable, std::string("accept: ") + std::strerror(errno)};
  }
  if (name.storage.ss_family == AF_UNIX) return Accepted{std::move(socket), {}};
  set(socket, IPPROTO_TCP, TCP_NODELAY);
  return Accepted{std::move(socket), from_name(name).host};
}

}  // namespace weir
