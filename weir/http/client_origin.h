// The connections to one origin and the calls that wait for one. Part of a ClientPool.
//
// A call takes the most recently used connection with room. If there is none, it waits for one, and a new connection is
// opened if there are fewer than connections_max.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "weir/http/call_state.h"
#include "weir/http/client_connection.h"
#include "weir/http/client_pool.h"
#include "weir/net/loop.h"
#include "weir/net/resolve.h"

namespace weir::http {

class ClientOrigin final : private CallPlace, private ClientConnection::Host {
 public:
  // What all origins of a pool share.
  struct Shared {
    Loop& loop;
    Resolver& resolver;
    ClientPool::Options options;
    std::shared_ptr<ClientShared> clients;
    std::uint64_t retries = 0;
    Settler* settler = nullptr;  // calls settle() of every origin
  };

  ClientOrigin(const Origin& origin, Shared& shared) : origin_(origin), shared_(shared) {}

  // Puts the call on a connection or into the queue.
  void add(CallState& call);
  // Reports failures that arose inside calls of the pool's user.
  void settle();
  // Runs the timeouts of the connections. Returns when to call it again.
  Time expire(Time now);

  // True if there are no connections and no calls.
  bool is_empty() const noexcept { return connections_.empty() && waiting_.empty() && failing_.empty(); }
  std::size_t connections() const noexcept { return connections_.size(); }
  std::size_t idle() const noexcept;

 private:
  void write(CallState& call, BodyPart part) override { call.hold(part); }
  void consumed(CallState&, std::size_t) override {}
  void cancel(CallState& call) override;
  bool has_sent(const CallState&) const noexcept override { return false; }
  Error timed_out(const CallState& call) const override;

  void opened(ClientConnection& connection) override;
  void failed_to_open(ClientConnection& connection, const Error& why) override;
  void freed(ClientConnection& connection) override;
  void give_back(CallState& call) override;
  void closed(ClientConnection& connection) override;

  ClientConnection* take_available();
  void remove(ClientConnection& connection);
  void unlist(ClientConnection& connection);
  void close_surplus();
  void serve(ClientConnection& connection);
  void open_if_needed();
  void fail_later(CallState& call, Error why);
  bool multiplexes() const noexcept;

  Origin origin_;
  Shared& shared_;
  std::vector<std::unique_ptr<ClientConnection>> connections_;
  std::vector<ClientConnection*> available_;  // can begin a call, the most recently used last
  std::deque<CallState*> waiting_;
  std::deque<CallState*> failing_;  // CallState::why says why
  std::size_t opening_ = 0;
  std::optional<bool> speaks_http2_;  // HttpVersion::negotiate: what the last connection agreed on
};

}  // namespace weir::http
