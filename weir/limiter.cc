#include "weir/limiter.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/core/charge.h"
#include "weir/overrides.h"
#include "weir/store/memory/charging.h"
#include "weir/store/memory/table.h"

namespace weir {
namespace {

// How many keys a batch prefetches at once.
constexpr std::size_t kBatch = 16;

// Holds a limit's prefix and a key as one string. Copies nothing if there is no prefix, and uses the heap only for long
// strings.
class Room {
 public:
  Room() noexcept {}  // NOLINT: deliberately leaves the buffer uninitialized
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  // The result is valid as long as both this object and `key` are.
  Key join(std::string_view prefix, std::string_view key) noexcept {
    if (prefix.empty()) return Key{key};
    const std::size_t bytes = prefix.size() + key.size();
    char* to = near_;
    if (bytes > sizeof near_) {
      far_.reset(new char[bytes]);
      to = far_.get();
    }
    std::memcpy(to, prefix.data(), prefix.size());
    if (!key.empty()) std::memcpy(to + prefix.size(), key.data(), key.size());
    return Key{{to, bytes}};
  }

 private:
  std::unique_ptr<char[]> far_;
  char near_[192];
};

// Returns "name:" with the name's own colons escaped, so no two different pairs of name and key join to the same
// string.
std::string prefix_of(std::string_view name) {
  std::string prefix;
  for (const char c : name) {
    if (c == ':' || c == '\\') prefix += '\\';
    prefix += c;
  }
  return prefix + ':';
}

// A negative cost would add tokens, so it becomes a cost that no bucket can cover.
Count asked(Count cost) noexcept {
  return cost < 0 ? std::numeric_limits<Count>::max() : cost;
}

}  // namespace

struct Buckets::State {
  State(std::unique_ptr<Table> its_table, const Clock* its_clock) : table(std::move(its_table)), clock(its_clock) {}

  std::unique_ptr<Table> table;
  const Clock* clock;  // null: `boot`, which needs no virtual call and no wall clock
  BootClock boot;

  Time time() const noexcept { return clock == nullptr ? boot.time() : clock->now().time; }

  // For the rare second reading of the clock: to undo a spend or to detect that a limit shrank.
  const Clock& again() const noexcept { return clock != nullptr ? *clock : boot; }

  Buckets::Verdict spend(std::span<const Buckets::Charge> charges, Order order) noexcept;
};

Result<Buckets> Buckets::make(const Options& options) {
  try {
    auto table = Table::create({.buckets_max = options.max_buckets, .names = options.names});
    if (!table) return table.error();
    return Buckets(std::make_shared<State>(std::move(*table), options.clock));
  } catch (const std::bad_alloc&) {
    return Error{Fault::unavailable, "no memory for the buckets"};
  }
}

Buckets::Buckets(const Options& options) {
  Result<Buckets> made = make(options);
  if (!made) assertion_failed(made.error().detail.c_str(), __FILE__, __LINE__);
  *this = std::move(*made);
}

Buckets::Verdict Buckets::State::spend(std::span<const Buckets::Charge> charges, Order order) noexcept {
  WEIR_ASSERT(charges.size() <= bounds::charges_max);
  std::array<Room, bounds::charges_max> rooms;
  std::array<weir::Charge, bounds::charges_max> whole;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Limiter& limiter = charges[i].limiter;
    WEIR_ASSERT(limiter.buckets_.state_.get() == this);
    const Key key = rooms[i].join(limiter.prefix_, charges[i].key);
    const bool plain = limiter.overrides_->size() == 0;
    whole[i].rate = RateCharge{key.text, plain ? limiter.limit_ : limiter.limit_of(table->hash(key)), limiter.since()};
    whole[i].cost = asked(charges[i].cost);
  }
  const std::span<const weir::Charge> all = std::span(whole).first(charges.size());
  // If one cost can never be allowed, no bucket is charged.
  const bool impossible =
      std::any_of(all.begin(), all.end(), [](const weir::Charge& c) { return c.cost > c.rate->limit.burst(); });
  const Mode mode = impossible ? Mode::peek : Mode::spend;
  const weir::Verdict verdict = charge(*table, all, mode, order, Now{time(), Wall{}}, again());
  Buckets::Verdict flat;
  for (const LimitDecision& decision : verdict.all) flat.all.push_back(decision.strictest());
  flat.strictest = verdict.strictest;
  flat.allowed = verdict.allowed;
  return flat;
}

Buckets::Verdict Buckets::spend_together(std::span<const Charge> charges) noexcept {
  return state_->spend(charges, Order::together);
}

Buckets::Verdict Buckets::spend_in_order(std::span<const Charge> charges) noexcept {
  return state_->spend(charges, Order::in_order);
}

bool Buckets::maintain() noexcept {
  return state_->table->maintain(Now{state_->time(), Wall{}});
}

Buckets::Stats Buckets::stats() const noexcept {
  const Table::Stats stats = state_->table->stats();
  return {stats.buckets, stats.bytes, stats.evicted, stats.lost_races};
}

Limiter::Limiter(const Limit& limit, Buckets buckets, std::string prefix)
    : buckets_(std::move(buckets)),
      prefix_(std::move(prefix)),
      limit_(limit),
      made_(buckets_.state_->time()),
      overrides_(std::make_unique<Overrides>()) {}

Limiter::Limiter(const Limit& limit, const Options& options) : Limiter(limit, Buckets(options), {}) {}

Limiter::Limiter(const Buckets& buckets, std::string_view name, const Limit& limit)
    : Limiter(limit, buckets, prefix_of(name)) {}

Result<Limiter> Limiter::make(const Limit& limit, const Options& options) {
  Result<Buckets> buckets = Buckets::make(options);
  if (!buckets) return buckets.error();
  try {
    return Limiter(limit, std::move(*buckets), {});
  } catch (const std::bad_alloc&) {
    return Error{Fault::unavailable, "no memory for the limiter"};
  }
}

Limiter::Limiter(Limiter&&) noexcept = default;
Limiter& Limiter::operator=(Limiter&&) noexcept = default;
Limiter::~Limiter() = default;

Limit Limiter::limit_of(std::uint64_t h) const noexcept {
  const std::optional<Limit> own = overrides_->find(h);
  return own ? *own : limit_;
}

Limit Limiter::limit_of(std::string_view key) const noexcept {
  Room room;
  const Key whole = room.join(prefix_, key);
  return limit_of(buckets_.state_->table->hash(whole));
}

Time Limiter::since() const noexcept {
  return std::max(made_, overrides_->changed());
}

Decision Limiter::spend(std::string_view key, Count cost) noexcept {
  Room room;
  const Key whole = room.join(prefix_, key);
  const Buckets::State& state = *buckets_.state_;
  const std::uint64_t h = state.table->hash(whole);
  state.table->prefetch_line(h);  // loads while the clock is read
  const std::optional<Limit> own = overrides_->find(h);
  return state.table->spend(h, whole, own ? *own : limit_, asked(cost), state.time(), {since(), &state.again()});
}

void Limiter::spend_batch(std::span<const std::string_view> keys, std::span<Decision> decisions, Count cost) noexcept {
  WEIR_ASSERT(decisions.size() >= keys.size());
  Table& table = *buckets_.state_->table;
  const Time now = buckets_.state_->time();
  std::array<Room, kBatch> rooms;
  std::array<Table::Spend, kBatch> batch;
  std::array<std::optional<Limit>, kBatch> own;
  for (std::size_t done = 0; done < keys.size(); done += kBatch) {
    const std::span<Table::Spend> part = std::span(batch).first(std::min(kBatch, keys.size() - done));
    for (std::size_t i = 0; i < part.size(); ++i) {
      part[i] = {rooms[i].join(prefix_, keys[done + i]).text, &limit_, asked(cost), {}};
    }
    table.hash(part);
    for (std::size_t i = 0; i < part.size(); ++i) {
      own[i] = overrides_->find(part[i].h);
      if (own[i]) part[i].limit = &*own[i];
      part[i].settling = {since(), &buckets_.state_->again()};
    }
    table.spend_batch(part, now, &decisions[done]);
  }
}

Decision Limiter::peek(std::string_view key, Count cost) const noexcept {
  Room room;
  const Key whole = room.join(prefix_, key);
  const Buckets::State& state = *buckets_.state_;
  const std::uint64_t h = state.table->hash(whole);
  const Limit limit = limit_of(h);
  return state.table->peek(h, limit, asked(cost), state.time(), {since(), &state.again()});
}

Decision Limiter::refund(std::string_view key, Count cost) noexcept {
  Room room;
  const Key whole = room.join(prefix_, key);
  const Buckets::State& state = *buckets_.state_;
  const std::uint64_t h = state.table->hash(whole);
  const Limit limit = limit_of(h);
  Decision decision = state.table->refund(h, limit, std::max<Count>(cost, 0), state.time(), {since(), &state.again()});
  if (cost >= 0) return decision;
  // A negative refund would be a spend.
  decision.allowed = false;
  decision.retry_after = kNever;
  return decision;
}

bool Limiter::reset(std::string_view key) noexcept {
  Room room;
  const Key whole = room.join(prefix_, key);
  const Buckets::State& state = *buckets_.state_;
  return state.table->reset(state.table->hash(whole), Kind::bucket, Now{state.time(), Wall{}});
}

Result<void> Limiter::set_override(std::string_view key, const Limit& limit) noexcept {
  Room room;
  const Key whole = room.join(prefix_, key);
  return overrides_->set(buckets_.state_->table->hash(whole), limit, buckets_.state_->time());
}

bool Limiter::remove_override(std::string_view key) noexcept {
  Room room;
  const Key whole = room.join(prefix_, key);
  return overrides_->remove(buckets_.state_->table->hash(whole), buckets_.state_->time());
}

void Limiter::for_each(const std::function<void(std::string_view, const Decision&)>& visit) const {
  Table& table = *buckets_.state_->table;
  const Time now = buckets_.state_->time();
  std::vector<std::pair<std::uint64_t, std::string>> listed;
  for (std::size_t group = 0; group < table.groups(); ++group) {
    // Copy first: the group stays locked during Table::visit(), and `visit` may call the limiter.
    listed.clear();
    table.visit(group, [&](const Table::Bucket& bucket) {
      if (bucket.name.empty() || !bucket.name.starts_with(prefix_)) return;
      listed.emplace_back(bucket.h, bucket.name.substr(prefix_.size()));
    });
    for (const auto& [h, key] : listed) {
      const Limit limit = limit_of(h);
      const Decision standing = table.peek(h, limit, 0, now, {since(), &buckets_.state_->again(), false});
      if (standing.reset_after > Duration::zero()) visit(key, standing);
    }
  }
}

}  // namespace weir
