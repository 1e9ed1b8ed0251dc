// Rate limits inside a program. Three lines are enough:
//
//   constexpr weir::Limit kLogin = weir::Limit::per_minute(60).with_burst(10);  // a bad constant does not compile
//   weir::Limiter logins{kLogin};
//   if (auto d = logins.spend(user); !d.allowed) return too_many_requests(d.retry_after);
//
// A Limiter is one limit over any number of keys: each key has a bucket of its own, which is full until it is spent
// from. Several limits that one request must pass share their Buckets and are charged together.
//
// Thread safety: every function may be called from any thread at any time; only moving and destroying need to be alone.
// Nothing here starts a thread, holds a global or throws. A decision takes no lock; the first one of a key takes the
// lock of its group of buckets.
// The promise: in any stretch of time w, tokens spent minus tokens refunded are at most burst + w / interval. The one
// exception is an eviction from full Buckets, which is counted. When a key's numbers change its bucket keeps what was
// spent; what the new numbers cannot owe is forgiven, at most one burst per change.
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

// Where the state of one or more Limiters lives. A handle: copies name the same buckets, and these live as long as any
// copy or Limiter does. One Limiter alone needs no Buckets of yours.
//
//   weir::Buckets buckets;
//   weir::Limiter per_address{buckets, "address", weir::Limit::per_second(20)};
//   weir::Limiter per_account{buckets, "account", weir::Limit::per_hour(100)};
//   const weir::Buckets::Verdict v = buckets.spend_together({{per_address, address}, {per_account, account}});
//   if (!v.allowed) return too_many_requests(v.all[v.strictest].retry_after);
class Buckets {
 public:
  struct Options {
    // At most that many; then for a new one the bucket nearest to full, of those that lie close to it, is forgotten and
    // counted. Memory is taken as buckets come, about 25 bytes each.
    std::uint64_t max_buckets = 10'000'000;
    // Keep the keys' texts, so that for_each() can list them: about 40 bytes more for a key of 16. There is room for
    // 128 bytes per bucket of max_buckets; texts that find none are not kept, and their buckets not listed.
    bool names = false;
    // Where time comes from, if not from CLOCK_BOOTTIME; it must outlive the buckets and never run back: buckets that
    // were full by its latest reading may be forgotten. A bucket's state has 62 bits: the clock's reading and the
    // longest window must add up to less than 146 years.
    const Clock* clock = nullptr;
  };

  // One of several charges made at once. The key must live until the call returns.
  struct Charge {
    Limiter& limiter;
    std::string_view key;
    Count cost = 1;
  };

  // What several charges decided.
  struct Verdict {
    InlineList<Decision, bounds::charges_max> all;  // in the order given; in order, only those that were asked
    std::size_t strictest = 0;                      // index into `all` of the one that speaks
    bool allowed = true;                            // none denied; a verdict without decisions allows
  };

  struct Stats {
    std::uint64_t buckets = 0;     // in use; one that has filled up again counts until its place is needed
    std::uint64_t bytes = 0;       // memory taken from the system
    std::uint64_t evicted = 0;     // forgotten before they were full, for want of room
    std::uint64_t lost_races = 0;  // two threads wanted the same bucket at once and one had to look again
  };

  // Aborts where make() would fail.
  Buckets() : Buckets(Options{}) {}
  explicit Buckets(const Options& options);
  // Fails for want of memory, or if max_buckets is not in 1..bounds::buckets_max.
  //
  //   weir::Result<weir::Buckets> buckets = weir::Buckets::make({.max_buckets = 1'000'000, .names = true});
  //   if (!buckets) return fail(buckets.error().detail);
  static Result<Buckets> make(const Options& options);

  // All or none: if one limit denies, none is charged. Every charge gets its decision, in the order given; the
  // strictest of them speaks. The same bucket twice is charged once with the summed cost. REQUIRES: each limiter was
  // made on these buckets; at most bounds::charges_max charges.
  //
  //   const weir::Buckets::Verdict v = buckets.spend_together({{per_address, address}, {per_account, account, 5}});
  Verdict spend_together(std::span<const Charge> charges) noexcept;
  Verdict spend_together(std::initializer_list<Charge> charges) noexcept {
    return spend_together(std::span(charges.begin(), charges.size()));
  }

  // One after another, up to the first denial: limits before it stay charged, those behind it are untouched, so that
  // one client over its own limit cannot drain one that all share. Only those asked have a decision. If a cost is
  // beyond its limit's burst, no bucket is charged: the request can never pass. REQUIRES: as above.
  //
  //   const weir::Buckets::Verdict v = buckets.spend_in_order({{per_address, address}, {everyone, ""}});
  Verdict spend_in_order(std::span<const Charge> charges) noexcept;
  Verdict spend_in_order(std::initializer_list<Charge> charges) noexcept {
    return spend_in_order(std::span(charges.begin(), charges.size()));
  }

  // Optional, now and then, from any thread: forgets buckets that are full again, gives memory back and makes some
  // ready for growth, a bounded piece of it per call. True when it has come round once.
  //
  //   void every_100_ms() { buckets.maintain(); }
  //   while (!buckets.maintain()) {}  // all of it, now
  bool maintain() noexcept;

  // Cheap enough to ask every second.
  //
  //   metrics.set("evicted", buckets.stats().evicted);
  Stats stats() const noexcept;

 private:
  friend class Limiter;
  struct State;

  explicit Buckets(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

// One limit over any number of keys. A key is any bytes of any length; its identity is a 64-bit hash under a secret of
// the buckets, so strangers cannot choose keys that meet, and any two of 50 million meet with probability 7e-5.
class Limiter {
 public:
  using Options = Buckets::Options;

  // With buckets of its own. Aborts where make() would fail.
  //
  //   weir::Limiter logins{weir::Limit::per_minute(60).with_burst(10)};
  //   weir::Limiter tested{kLogin, {.clock = &manual}};  // a weir::ManualClock: time stands still until told
  explicit Limiter(const Limit& limit, const Options& options = {});
  // Fails where Buckets::make() does.
  //
  //   const auto limit = weir::Limit::make(count, period, burst);  // numbers that come as data
  //   if (!limit) return fail(limit.error().detail);               // "burst 0 must be at least 1"
  //   auto limiter = weir::Limiter::make(*limit);
  static Result<Limiter> make(const Limit& limit, const Options& options = {});
  // On shared buckets. The name keeps the keys of two limits apart, whatever bytes it and they contain; two limiters of
  // one name on the same buckets charge the same ones.
  //
  //   weir::Limiter signups{buckets, "signup", weir::Limit::per_day(3)};
  Limiter(const Buckets& buckets, std::string_view name, const Limit& limit);

  Limiter(Limiter&& other) noexcept;
  Limiter& operator=(Limiter&& other) noexcept;
  ~Limiter();

  // May this pass? If so, its cost is taken; if not, nothing is written and the bucket keeps filling. A cost of 0
  // always passes; one beyond the burst, or below 0, never does (retry_after is kNever).
  //
  //   const weir::Decision d = uploads.spend(user, megabytes);
  //   if (!d.allowed) return retry_later(weir::ceil_seconds(d.retry_after));
  Decision spend(std::string_view key, Count cost = 1) noexcept;

  // The same for many keys at one instant, in order: decisions[i] answers keys[i]. Waits for the memory of many buckets
  // at once, so that a batch of 16 costs far less than 16 spends. REQUIRES: decisions.size() >= keys.size().
  //
  //   std::array<weir::Decision, 64> decisions;
  //   limiter.spend_batch(std::span(keys).first(64), decisions);
  void spend_batch(std::span<const std::string_view> keys, std::span<Decision> decisions, Count cost = 1) noexcept;

  // Would it pass? Takes nothing; remaining and reset_after are the bucket's as it stands.
  //
  //   headers.set("RateLimit-Remaining", limiter.peek(user).remaining);
  Decision peek(std::string_view key, Count cost = 1) const noexcept;

  // Gives tokens back, never beyond full; answers with the bucket as it then stands. A cost below 0 is refused.
  //
  //   if (!upload.finished()) uploads.refund(user, megabytes);
  Decision refund(std::string_view key, Count cost = 1) noexcept;

  // Fills the bucket; false if it was full already.
  //
  //   if (password_was_right) logins.reset(user);
  bool reset(std::string_view key) noexcept;

  // From now on this key has other numbers than the limit's. Its bucket keeps what was spent, but is at worst empty
  // when they change. Readers are not held up. Fails beyond bounds::overrides_max, or for want of memory; then nothing
  // has changed.
  //
  //   if (auto set = uploads.set_override("acme", weir::Limit::per_hour(10'000)); !set) log(set.error().detail);
  Result<void> set_override(std::string_view key, const Limit& limit) noexcept;
  // Back to the limit's numbers; false if there was no override.
  bool remove_override(std::string_view key) noexcept;

  // The numbers that apply to this key: its override's, or the limit's own.
  Limit limit_of(std::string_view key) const noexcept;

  // Visits the buckets of this limit that are not full, if names are kept: each key (its first bounds::key_bytes_max
  // bytes, the limit's name included) and its bucket as it stands. `visit` may call the limiter.
  //
  //   limiter.for_each([](std::string_view key, const weir::Decision& d) { print(key, d.remaining); });
  void for_each(const std::function<void(std::string_view key, const Decision& standing)>& visit) const;

  // Of the buckets, which others may share.
  bool maintain() noexcept { return buckets_.maintain(); }
  Buckets::Stats stats() const noexcept { return buckets_.stats(); }

 private:
  friend class Buckets;

  Limiter(const Limit& limit, Buckets buckets, std::string prefix);
  Limit limit_of(std::uint64_t h) const noexcept;
  Time since() const noexcept;  // the latest instant any key's numbers may have changed

  Buckets buckets_;
  std::string prefix_;  // of each key on shared buckets; empty on its own
  Limit limit_;
  Time made_;
  std::unique_ptr<Overrides> overrides_;
};

}  // namespace weir
