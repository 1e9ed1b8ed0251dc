// Reads the PROXY headers (net/proxy_header.h) of accepted connections, before TLS and before there is a Connection.
// Reads exactly the header, so that the socket can be passed on as if it had just been accepted.
//
// A connection from a peer that is not trusted, or that does not begin with a header within bounds, is closed.
// Thread safety: none; it belongs to one loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "weir/net/loop.h"
#include "weir/net/socket.h"

namespace weir {

class ProxyIntake {
 public:
  struct Events {
    std::function<bool(std::string_view peer)> trusts;  // asked for every connection; empty for a UNIX socket
    // `accepted.peer` is the client that the header names, or the socket's where it names none.
    std::function<void(Accepted accepted)> accept;
    std::function<void()> refused;
  };

  // The loop must outlive it.
  ProxyIntake(Loop& loop, Events events);
  // Closes what is pending.
  ~ProxyIntake();

  void add(Accepted accepted);
  std::size_t pending() const noexcept { return pending_.size(); }

 private:
  struct Pending final : Loop::Handler {
    Pending(ProxyIntake& intake, Accepted from) : owner(intake), accepted(std::move(from)) {}
    void ready(std::uint32_t) override { owner.read(*this); }

    ProxyIntake& owner;
    Accepted accepted;
    std::string bytes;
    Loop::TimerId timer = 0;
  };

  void read(Pending& one);
  void refuse(Pending& one);
  // Stops watching, and returns the connection. Destroys `one`.
  Accepted take(Pending& one);

  Loop& loop_;
  Events events_;
  std::unordered_map<int, std::unique_ptr<Pending>> pending_;  // by descriptor
};

}  // namespace weir
