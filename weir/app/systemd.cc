#include "weir/app/systemd.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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

std::vector<InheritedSocket> inherited_sockets() {
  constexpr int kFirst = 3;
  const char* const pid = std::getenv("LISTEN_PID");
  const char* const count = std::getenv("LISTEN_FDS");
  if (pid == nullptr || count == nullptr || std::atoi(pid) != getpid()) return {};
  const char* const given = std::getenv("LISTEN_FDNAMES");
  std::string_view names = given == nullptr ? "" : given;
  std::vector<InheritedSocket> sockets;
  for (int i = 0; i < std::atoi(count); ++i) {
    const std::size_t end = names.find(':');
    sockets.push_back({kFirst + i, std::string(names.substr(0, end))});
    names = end == names.npos ? std::string_view() : names.substr(end + 1);
  }
  return sockets;
}

std::vector<int> match_sockets(const std::vector<InheritedSocket>& sockets, const std::vector<std::string>& listeners) {
  std::vector<int> chosen(listeners.size(), -1);
  std::vector<int> others;
  for (const InheritedSocket& socket : sockets) {
    bool named = false;
    for (std::size_t i = 0; i < listeners.size() && !named; ++i) {
      named = listeners[i] == socket.name && chosen[i] < 0;
      if (named) chosen[i] = socket.fd;
    }
    if (!named) others.push_back(socket.fd);
  }
  auto next = others.begin();
  for (int& fd : chosen) {
    if (fd < 0 && next != others.end()) fd = *next++;
  }
  return chosen;
}

}  // namespace weir::app
