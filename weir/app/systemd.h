// The protocol between systemd and a server. Does nothing if systemd did not start the server.
#pragma once

#include <string>
#include <vector>

namespace weir::app {

// "READY=1", "RELOADING=1", "STOPPING=1" to NOTIFY_SOCKET.
void notify(const std::string& state);

// The sockets that systemd opened for us (LISTEN_FDS), from kFirstInherited on, each by its name (LISTEN_FDNAMES;
// empty where it has none).
std::vector<std::string> inherited_sockets();
inline constexpr int kFirstInherited = 3;

// Which inherited socket each listener gets, by what it speaks; -1: none. Sockets whose names are protocols ("http",
// "resp", "admin", "proxy") go to the listeners that speak them. If no name is one, they go in the order of the
// listeners.
std::vector<int> assign_sockets(const std::vector<std::string>& names,
                                const std::vector<std::vector<std::string>>& speaks);

}  // namespace weir::app
