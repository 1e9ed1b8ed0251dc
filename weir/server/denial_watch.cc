#include "weir/server/denial_watch.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "weir/base/inline_list.h"
#include "weir/base/text.h"
#include "weir/identify/handle.h"

namespace weir {
namespace {

// Separates the counts of a limit's own rule from those of `access.block`.
constexpr std::uint64_t kOwnRule = 0x9e37'79b9'7f4a'7c15;

AccessEntry id_of(const Label& label) {
  AccessEntry entry;
  entry.limit = std::string(label.limit);
  entry.id = std::string(label.id);
  return entry;
}

// Returns a deny entry for the client of a decision.
AccessEntry client_of(const NamedLimit& limit, const Label& label) {
  AccessEntry entry;
  if (!limit.hashed && label.key == "ip") {
    if (const Result<IpPrefix> ip = IpPrefix::parse(label.id)) entry.ip = *ip;
  }
  if (!limit.hashed && label.key == "apikey") entry.apikey = std::string(label.id);
  return entry.ip || !entry.apikey.empty() ? entry : id_of(label);
}

// Addresses and API keys are the same client for every limit, so they are counted by kind instead of by limit.
BucketName name_of(const Label& label) noexcept {
  return {label.key == "ip" || label.key == "apikey" ? label.key : label.limit, label.id};
}

}  // namespace

std::string block_line(const Label& label, std::string_view hash_key, std::int64_t denials, const BlockRule& rule) {
  return "client blocked: client=" + shown_identifier(label, hash_key) + " limit=" + std::string(label.limit) +
         " denials=" + std::to_string(denials) + " within=" + print_duration(rule.within) +
         " for=" + print_duration(rule.lasts);
}

DenialWatch::DenialWatch(KnownKeeper& keeper) : keeper_(keeper), hash_{random_hash_key()} {}

void DenialWatch::denied(const Policy& policy, const Answer& answer) {
  if (!policy.blocks() || answer.access != Access::limited || answer.verdict.degraded) return;
  const Decisions& all = answer.verdict.all;
  // One request counts as one denial per client, however many limits deny it.
  InlineList<BucketName, bounds::charges_max> seen;
  const auto first = [&](const BucketName& name) {
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) return false;
    seen.push_back(name);
    return true;
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Label& label = answer.labels[i];
    // A cost that can never pass is the caller's mistake, and a client with a blocking override needs no second block.
    if (all[i].allowed() || all[i].strictest().retry_after == kNever || label.shadow) continue;
    const NamedLimit* const limit = policy.find(label.limit);
    if (limit == nullptr || label.key == "global") continue;
    // What the rate gave in the meantime counts only if the rate denied: a quota gives nothing by the time.
    const Decision* const rate = all[i].half(Kind::bucket);
    const Duration interval = rate != nullptr && !rate->allowed ? label.rate.interval : Duration::zero();
    if (policy.block().any() && first(name_of(label))) {
      count(name_of(label), 0, policy.block(), label, interval, answer, client_of(*limit, label));
    }
    const BucketName own{label.limit, label.id};
    if (limit->block.any()) count(own, kOwnRule, limit->block, label, interval, answer, id_of(label));
  }
}

void DenialWatch::count(const BucketName& name, std::uint64_t salt, const BlockRule& rule, const Label& label,
                        Duration interval, const Answer& answer, AccessEntry entry) {
  const Now now = answer.now;
  std::int64_t total = 0;
  const std::uint64_t hash = std::max<std::uint64_t>(hash_(name) ^ salt, 1);
  if (!count(hash, rule, interval, now.time, total)) return;
  const std::string within =
      std::to_string(total) + (total == 1 ? " denial within " : " denials within ") + print_duration(rule.within);
  entry.reason =
      "automatic block: " + within + (salt == kOwnRule ? " by " : ", the last by ") + std::string(label.limit);
  entry.added_by = "weir";
  entry.expires = rule.lasts < Wall::max() - now.wall ? now.wall + rule.lasts : Wall::max();
  keeper_.block(std::move(entry), std::string(label.limit), block_line(label, answer.hash_key, total, rule));
}

bool DenialWatch::count(std::uint64_t hash, const BlockRule& rule, Duration interval, Time now, std::int64_t& total) {
  const Duration slice{(rule.within.count() - 1) / static_cast<std::int64_t>(kSlices) + 1};
  Stripe& stripe = stripes_[hash % kStripes];
  const std::lock_guard lock(stripe.mutex);
  DenialCounter& counter = find_or_evict(stripe, hash, now);
  total = add(counter, slice, now);
  if (!is_met(rule, interval, total)) return false;
  counter = {};
  return true;
}

DenialWatch::DenialCounter& DenialWatch::find_or_evict(Stripe& stripe, std::uint64_t hash, Time now) {
  if (stripe.counters.empty()) stripe.counters.resize(kSets * kWays);
  DenialCounter* const ways = &stripe.counters[hash / kStripes % kSets * kWays];
  DenialCounter* oldest = ways;
  for (std::size_t i = 0; i < kWays; ++i) {
    if (ways[i].hash == hash) return ways[i];
    const auto end = [](const DenialCounter& counter) { return counter.hash == 0 ? Time::min() : counter.end(); };
    if (end(ways[i]) < end(*oldest)) oldest = &ways[i];
  }
  if (oldest->hash != 0 && oldest->end() > now) forgotten_.fetch_add(1, std::memory_order_relaxed);
  *oldest = {};
  oldest->hash = hash;
  oldest->first = now;
  return *oldest;
}

std::int64_t DenialWatch::add(DenialCounter& counter, Duration slice, Time now) noexcept {
  // Expired, or counted under another rule: start over.
  if (counter.slice != slice || now >= counter.end()) {
    counter.first = now;
    counter.slice = slice;
    counter.newest = 0;
    counter.counts = {};
  }
  // Another loop's clock reading may be slightly older.
  const std::int64_t number = std::max((now - counter.first) / slice, counter.newest);
  while (counter.newest < number) counter.counts[static_cast<std::size_t>(++counter.newest) % kSlices] = 0;
  std::uint32_t& count = counter.counts[static_cast<std::size_t>(number) % kSlices];
  if (count < std::numeric_limits<std::uint32_t>::max()) ++count;
  std::int64_t total = 0;
  for (const std::uint32_t each : counter.counts) total += each;
  return total;
}

bool DenialWatch::is_met(const BlockRule& rule, Duration interval, std::int64_t total) noexcept {
  if (rule.after > 0 && total >= rule.after) return true;
  // A quota has no rate.
  if (rule.times <= 0 || interval <= Duration::zero()) return false;
  const std::int64_t given = rule.within / interval;
  std::int64_t most = 0;
  if (__builtin_mul_overflow(rule.times - 1, given, &most)) return false;
  return total > most;
}

}  // namespace weir
