// The protocol between systemd and a server. Does nothing where systemd did not start it.
#pragma once

#include <string>

namespace weir::app {

// "READY=1", "RELOADING=1", "STOPPING=1" to NOTIFY_SOCKET.
void notify(const std::string& state);

// How many sockets systemd opened for us (LISTEN_FDS), in the order of the listeners from kFirstInherited on.
int inherited_sockets();
inline constexpr int kFirstInherited = 3;

}  // namespace weir::app
