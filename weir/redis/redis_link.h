// One connection to one Redis: connects, performs the handshake, carries commands, and reconnects with exponential
// backoff and full jitter.
//
// A link is up when the handshake is done and it is not stalled. It is stalled when no reply arrived for one timeout
// while something was in flight, until a reply arrives; after kStallMax more it closes the connection.
//
// Thread safety: none; use it on its loop's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/net/loop.h"
#include "weir/net/resolve.h"
#include "weir/net/transport.h"
#include "weir/redis/flight_window.h"
#include "weir/redis/redis_client.h"

namespace weir::redis {

inline constexpr Duration kBackoffMin = std::chrono::seconds{1};
inline constexpr Duration kBackoffMax = std::chrono::seconds{30};
inline constexpr Duration kStallMax = std::chrono::seconds{1};

// Returns `why` preceded by the server's address, unless it starts with it.
std::string cause_at(const Target& target, std::string_view why);

class RedisLink final : private Transport::Owner, private RedisClient::Replies {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // As RedisClient::Replies. May send on any link; must not destroy this one.
    virtual void replied(RedisLink& link, Tag tag, const resp::Reply& reply) = 0;
    virtual void lost(RedisLink& link, Tag tag, Lost how) = 0;
    virtual void unreplicated(RedisLink& link) { (void)link; }
    virtual void pushed(RedisLink& link, const resp::Reply& push) { (void)link, (void)push; }
    // Called when is_up() changes or is known for the first time, or the first attempt to reconnect fails. `why` is
    // empty when the link is up. Commands in flight on a closed connection were reported lost before.
    virtual void changed(RedisLink& link, std::string_view why) = 0;
    // The link is still down, and the last attempt failed for a new reason.
    virtual void still_down(RedisLink& link, std::string_view why) { (void)link, (void)why; }
  };

  struct Options {
    Target target;
    RedisClient::Options client;
    Duration timeout = std::chrono::milliseconds{250};           // per command
    Duration connect_timeout = std::chrono::seconds{1};          // for connecting and the handshake together
    Duration replicas_timeout = std::chrono::milliseconds{125};  // for WAIT, if the client uses it
    Transport::Options transport;                                // TLS and the resolver
  };

  // Loop and owner must outlive the link.
  RedisLink(Loop& loop, Owner& owner, Options options);
  ~RedisLink() override;

  // Counts sent and answered buckets in `window`, if not null. It must outlive the link.
  void count_in(FlightWindow* window) noexcept { window_ = window; }

  // Connects now and reconnects when necessary.
  void start();

  bool is_up() const noexcept { return up_; }
  // True once the handshake is done. A stalled link is ready, but only probes should use it.
  bool is_ready() const noexcept { return client_.is_ready(); }
  bool is_stalled() const noexcept { return stalled_; }
  // True after an established connection was lost, until the first attempt to replace it fails.
  bool is_reconnecting() const noexcept { return reconnecting_; }
  // When the last bytes arrived.
  Time heard_at() const noexcept { return heard_at_; }
  const Target& target() const noexcept { return options_.target; }
  std::string_view maxmemory_policy() const noexcept { return client_.maxmemory_policy(); }

  // Queues a command until flush(). Returns false if the link is not ready or its queue is full. `deadline` is usually
  // `timeout` from now.
  bool send(Tag tag, std::span<const std::string_view> arguments, Time deadline, Effect effect = Effect::writes);
  bool send(Tag tag, std::span<const std::string_view> arguments, Effect effect = Effect::writes) {
    return send(tag, arguments, loop_.now().time + options_.timeout, effect);
  }
  bool send_encoded(Tag tag, std::string_view bytes, Time deadline, bool asking = false);
  // Writes everything queued at once, now or when the WAIT in flight has been answered.
  void flush();
  // The command that replied() or lost() is about.
  std::string_view command() const noexcept { return client_.command(); }

  // Closes the connection and reconnects, backing off.
  void reset(std::string_view why);

 private:
  void opened() override;
  std::size_t received(std::string_view bytes) override;
  void ended() override;
  void writable() override {}
  void failed(const Error& why) override;
  void replied(Tag tag, const resp::Reply& reply) override { owner_.replied(*this, tag, reply); }
  void lost(Tag tag, Lost how) override { owner_.lost(*this, tag, how); }
  void unreplicated() override;
  void pushed(const resp::Reply& push) override { owner_.pushed(*this, push); }

  void connect();
  void fail(std::string_view why);
  void set_timer(Time when);
  void check();
  void update();
  std::string no_reply() const;
  bool queue(bool queued, Time deadline);
  void count_sent() noexcept;
  std::size_t take_answered() noexcept;

  Loop& loop_;
  Owner& owner_;
  Options options_;
  RedisClient client_;
  FlightWindow* window_ = nullptr;
  std::uint64_t counted_sent_ = 0;  // buckets already counted in the window
  std::uint64_t counted_answered_ = 0;
  std::unique_ptr<Transport> transport_;
  std::uint64_t written_ = 0;  // bytes given to the transport
  std::minstd_rand random_;
  bool up_ = false;
  bool reported_ = false;   // the owner knows whether it is up
  bool receiving_ = false;  // a reset() is delayed until receive() returns
  std::string reset_why_;   // not empty: a delayed reset()
  std::string failed_why_;  // why the last attempt failed
  Time ready_since_{};      // Time{}: not ready
  bool stalled_ = false;
  bool reconnecting_ = false;
  bool checked_ = false;              // the timer has fired once; see check()
  Time waiting_since_ = Time::max();  // since when a reply is awaited; max(): nothing is in flight
  Time heard_at_{};
  Time waits_from_{};                // no WAIT before this
  Time handshake_by_ = Time::max();  // while connecting
  Duration backoff_ = kBackoffMin;
  Loop::TimerId timer_ = 0;  // for deadlines
  Time timer_at_ = Time::max();
  Loop::TimerId retry_ = 0;
};

}  // namespace weir::redis
