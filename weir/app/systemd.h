// The protocol between systemd and a server. Does nothing where systemd did not start it.
#pragma once

#include <string>
#include <vector>

namespace weir::app {

// "READY=1", "RELOADING=1", "STOPPING=1" to NOTIFY_SOCKET.
void notify(const std::string& state);

// The sockets that systemd opened for us (LISTEN_FDS), each with its FileDescriptorName (LISTEN_FDNAMES), which may be
// empty. They start at descriptor 3.
struct InheritedSocket {
  int fd = -1;
  std::string name;
};
std::vector<InheritedSocket> inherited_sockets();

// Chooses the socket of each listener, given by its protocol ("http", "resp", "admin", "proxy"); -1 means none. A
// socket named after a protocol goes to the first listener of that protocol that has none yet. Sockets with other names
// go to the remaining listeners in order.
std::vector<int> match_sockets(const std::vector<InheritedSocket>& sockets, const std::vector<std::string>& listeners);

}  // namespace weir::app
