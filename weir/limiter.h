// Rate limits for a C++ program. Three lines are enough:
//
//   constexpr weir::Limit kLogin = weir::Limit::per_minute(60).with_burst(10);  // a bad constant does not compile
//   weir::Limiter logins{kLogin};
//   if (auto d = logins.spend(user); !d.allowed) return too_many_requests(d.retry_after);
//
// A Limiter applies one limit to any number of keys. Each key has its own bucket, which starts full. If one request
// must pass several limits, create them on shared Buckets and charge them together.
//
// Thread safety: every function may be called from any thread at any time, except that moving or destroying an object
// requires that no other thread uses it. Nothing here starts a thread, uses a global or throws. A decision takes no
// lock, except that the first decision for a key locks its group of buckets.
// Guarantee: in any time span w, tokens spent minus tokens refunded are at most burst + w / interval. The one exception
// is an eviction when Buckets are full, which is counted. When a key's limit changes, what was spent stays spent. Debt
// that exceeds the new limit's maximum is forgiven: at most one burst per change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/bounds.h"
#include "weir/base/clock.h"
#include "weir/base/inline_list.h"
#include "weir/base/result.h"
#include "weir/core/decision.h"
#include "weir/core/limit.h"

namespace weir {

class Limiter;
class Overrides;

// The state of one or more Limiters. Buckets is a handle: copies refer to the same buckets, which live as long as any
// copy or any Limiter on them. A single Limiter creates its own.
//
//   weir::Buckets buckets;
//   weir::Limiter per_address{buckets, "address", weir::Limit::per_second(20)};
//   weir::Limiter per_account{buckets, "account", weir::Limit::per_hour(100)};
//   const weir::Buckets::Verdict v = buckets.spend_together({{per_address, address}, {per_account, account}});
//   if (!v.allowed) return too_many_requests(v.all[v.strictest].retry_after);
class Buckets {
 public:
  struct Options {
    // When this many buckets exist, a new one evicts the bucket closest to full among its neighbors in memory;
    // evictions are counted. Memory grows with the number of buckets, about 25 bytes each.
    std::uint64_t max_buckets = 10'000'000;
    // Keep the text of each key so that for_each() can list it: about 40 more bytes for a 16-byte key. All texts
    // together may take 128 bytes times max_buckets; beyond that, new texts are not kept and their buckets are not
    // listed.
    bool names = false;
    // The time source; null: CLOCK_BOOTTIME. It must outlive the buckets and never go backward, because buckets that
    // were full at its latest reading may already be forgotten. A bucket's state has 62 bits, so the clock's reading
    // plus the longest window must be less than 146 years.
    const Clock* clock = nullptr;
  };

  // One of several charges made at once. The key must live until the call returns.
  struct Charge {
    Limiter& limiter;
    std::string_view key;
    Count cost = 1;
  };

  // The result of several charges.
  struct Verdict {
    InlineList<Decision, bounds::charges_max> all;  // in the order given; spend_in_order() stops at the first denial
    std::size_t strictest = 0;                      // index into `all` of the decision to report
    bool allowed = true;                            // no limit denied; true if there are no decisions
  };

  struct Stats {
    std::uint64_t buckets = 0;     // in use; a bucket that is full again counts until it is cleaned up or replaced
    std::uint64_t bytes = 0;       // memory allocated from the system
    std::uint64_t evicted = 0;     // buckets forgotten before they were full because the table was full
    std::uint64_t lost_races = 0;  // times a thread had to retry because another changed the same bucket
  };

  // Aborts if make() would fail.
  Buckets() : Buckets(Options{}) {}
  explicit Buckets(const Options& options);
  // Fails if memory runs out or max_buckets is not in 1..bounds::buckets_max.
  //
  //   weir::Result<weir::Buckets> buckets = weir::Buckets::make({.max_buckets = 1'000'000, .names = true});
  //   if (!buckets) return fail(buckets.error().detail);
  static Result<Buckets> make(const Options& options);

  // Charges all or none: if one limit denies, none is charged. Every charge gets a decision, in the order given; the
  // verdict reports the strictest. A bucket that appears twice is charged once with the summed cost. REQUIRES: each
  // limiter was created on these buckets; at most bounds::charges_max charges.
  //
  //   const weir::Buckets::Verdict v = buckets.spend_together({{per_address, address}, {per_account, account, 5}});
  Verdict spend_together(std::span<const Charge> charges) noexcept;
  Verdict spend_together(std::initializer_list<Charge> charges) noexcept {
    return spend_together(std::span(charges.begin(), charges.size()));
  }

  // Charges one after another and stops at the first denial. Limits before it stay charged; limits after it are not
  // charged, so a client over its own limit cannot drain a limit that all clients share. Only the limits that were
  // tried have a decision. If any cost is above its limit's burst, nothing is charged, because the request can never be
  // allowed. REQUIRES: as for spend_together().
  //
  //   const weir::Buckets::Verdict v = buckets.spend_in_order({{per_address, address}, {everyone, ""}});
  Verdict spend_in_order(std::span<const Charge> charges) noexcept;
  Verdict spend_in_order(std::initializer_list<Charge> charges) noexcept {
    return spend_in_order(std::span(charges.begin(), charges.size()));
  }

  // Optional maintenance; call it periodically from any thread. Forgets buckets that are full again, returns memory to
  // the system and prepares memory for growth. Each call does a bounded amount of work; returns true when a full pass
  // is complete.
  //
  //   void every_100_ms() { buckets.maintain(); }
  //   while (!buckets.maintain()) {}  // all of it, now
  bool maintain() noexcept;

  // Cheap enough to call every second.
  //
  //   metrics.set("evicted", buckets.stats().evicted);
  Stats stats() const noexcept;

 private:
  friend class Limiter;
  struct State;

  explicit Buckets(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

// One limit for any number of keys. A key is any bytes of any length. Its identity is a 64-bit hash keyed with a secret
// of the buckets, so an attacker cannot choose keys that collide. Among 50 million keys, the probability of any
// collision is 7e-5.
class Limiter {
 public:
  using Options = Buckets::Options;

  // Creates a limiter with its own buckets. Aborts if make() would fail.
  //
  //   weir::Limiter logins{weir::Limit::per_minute(60).with_burst(10)};
  //   weir::Limiter tested{kLogin, {.clock = &manual}};  // a weir::ManualClock: time advances only by hand
  explicit Limiter(const Limit& limit, const Options& options = {});
  // Fails if Buckets::make() would.
  //
  //   const auto limit = weir::Limit::make(count, period, burst);  // numbers known only at run time
  //   if (!limit) return fail(limit.error().detail);               // "burst 0 must be at least 1"
  //   auto limiter = weir::Limiter::make(*limit);
  static Result<Limiter> make(const Limit& limit, const Options& options = {});
  // Creates a limiter on shared buckets. The name separates the keys of two limits, whatever bytes the name and the
  // keys contain. Two limiters with the same name on the same buckets charge the same buckets.
  //
  //   weir::Limiter signups{buckets, "signup", weir::Limit::per_day(3)};
  Limiter(const Buckets& buckets, std::string_view name, const Limit& limit);

  Limiter(Limiter&& other) noexcept;
  Limiter& operator=(Limiter&& other) noexcept;
  ~Limiter();

  // Takes `cost` tokens if the bucket has them. A denial takes nothing, and the bucket keeps filling. A cost of 0 is
  // always allowed; a cost above the burst or below 0 never is (retry_after is kNever).
  //
  //   const weir::Decision d = uploads.spend(user, megabytes);
  //   if (!d.allowed) return retry_later(weir::ceil_seconds(d.retry_after));
  Decision spend(std::string_view key, Count cost = 1) noexcept;

  // Spends from many keys at one instant, in order: decisions[i] is for keys[i]. Prefetches the memory of many buckets
  // at once, so a batch of 16 costs far less than 16 spends. REQUIRES: decisions.size() >= keys.size().
  //
  //   std::array<weir::Decision, 64> decisions;
  //   limiter.spend_batch(std::span(keys).first(64), decisions);
  void spend_batch(std::span<const std::string_view> keys, std::span<Decision> decisions, Count cost = 1) noexcept;

  // Decides without taking anything. `remaining` and `reset_after` describe the bucket's current state.
  //
  //   headers.set("RateLimit-Remaining", limiter.peek(user).remaining);
  Decision peek(std::string_view key, Count cost = 1) const noexcept;

  // Returns tokens to the bucket, but never more than its burst. The decision describes the bucket after the refund. A
  // cost below 0 is refused.
  //
  //   if (!upload.finished()) uploads.refund(user, megabytes);
  Decision refund(std::string_view key, Count cost = 1) noexcept;

  // Fills the bucket. Returns false if it was already full.
  //
  //   if (password_was_right) logins.reset(user);
  bool reset(std::string_view key) noexcept;

  // Gives this key its own limit from now on. What was spent stays spent, but the bucket never starts below empty under
  // the new limit. Does not block readers. Fails beyond bounds::overrides_max or if memory runs out; then nothing has
  // changed.
  //
  //   if (auto set = uploads.set_override("acme", weir::Limit::per_hour(10'000)); !set) log(set.error().detail);
  Result<void> set_override(std::string_view key, const Limit& limit) noexcept;
  // Applies the limiter's limit to this key again. Returns false if there was no override.
  bool remove_override(std::string_view key) noexcept;

  // Returns the limit that applies to this key: its override or the limiter's own.
  Limit limit_of(std::string_view key) const noexcept;

  // Visits this limit's buckets that are not full; requires Options::names. `visit` receives the key (its first
  // bounds::key_bytes_max bytes, counting the limit's name) and the bucket's current state. `visit` may call the
  // limiter.
  //
  //   limiter.for_each([](std::string_view key, const weir::Decision& d) { print(key, d.remaining); });
  void for_each(const std::function<void(std::string_view key, const Decision& standing)>& visit) const;

  // These act on all of the limiter's Buckets, which other limiters may share.
  bool maintain() noexcept { return buckets_.maintain(); }
  Buckets::Stats stats() const noexcept { return buckets_.stats(); }

 private:
  friend class Buckets;

  Limiter(const Limit& limit, Buckets buckets, std::string prefix);
  Limit limit_of(std::uint64_t h) const noexcept;
  Time since() const noexcept;  // the latest instant at which any key's limit may have changed

  Buckets buckets_;
  std::string prefix_;  // prepended to each key on shared buckets; otherwise empty
  Limit limit_;
  Time made_;
  std::unique_ptr<Overrides> overrides_;
};

}  // namespace weir
