#include "weir/app/systemd.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "weir/net/socket.h"

namespace weir::app {

void notify(const std::string& state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  sockaddr_un address{};
  if (std::strlen(path) >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path, std::strlen(path));
  if (path[0] == '@') address.sun_path[0] = '\0';
  const Socket socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  (void)!sendto(socket.fd(), state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
                size);
}

std::vector<std::string> inherited_sockets() {
  const char* const pid = std::getenv("LISTEN_PID");
  const char* const count = std::getenv("LISTEN_FDS");
  if (pid == nullptr || count == nullptr || std::atoi(pid) != getpid()) return {};
  std::vector<std::string> names(static_cast<std::size_t>(std::max(std::atoi(count), 0)));
  const char* const listed = std::getenv("LISTEN_FDNAMES");
  std::string_view rest = listed == nullptr ? std::string_view{} : listed;
  for (std::string& name : names) {
    name = rest.substr(0, std::min(rest.find(':'), rest.size()));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
  }
  return names;
}

std::vector<int> assign_sockets(const std::vector<std::string>& names,
                                const std::vector<std::vector<std::string>>& speaks) {
  constexpr std::array<std::string_view, 5> kProtocols = {"http", "grpc", "resp", "admin", "proxy"};
  std::vector<int> sockets(speaks.size(), -1);
  const auto is_protocol = [&](std::string_view name) {
    return std::ranges::find(kProtocols, name) != kProtocols.end();
  };
  if (std::ranges::none_of(names, is_protocol)) {
    for (std::size_t i = 0; i < std::min(names.size(), sockets.size()); ++i) {
      sockets[i] = kFirstInherited + static_cast<int>(i);
    }
    return sockets;
  }
  for (std::size_t socket = 0; socket < names.size(); ++socket) {
    for (std::size_t i = 0; i < speaks.size(); ++i) {
      if (sockets[i] >= 0 || std::ranges::find(speaks[i], names[socket]) == speaks[i].end()) continue;
      sockets[i] = kFirstInherited + static_cast<int>(socket);
      break;
    }
  }
  return sockets;
}

}  // namespace weir::app
