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

// Keeps the counts of a limit's own rule apart from those of `access.block`.
constexpr std::uint64_t kOwnRule = 0x9e37'79b9'7f4a'7c15;

AccessEntry id_of(const Label& label) {
  AccessEntry entry;
  entry.limit = std::string(label.limit);
  entry.id = std::string(label.id);
  return entry;
}

// Whom a decision is about, as the deny list knows the client.
AccessEntry client_of(const NamedLimit& limit, const Label& label) {
  AccessEntry entry;
  if (!limit.hashed && label.key == "ip") {
    if (const Result<IpPrefix> ip = IpPrefix::parse(label.id)) entry.ip = *ip;
  }
  if (!limit.hashed && label.key == "apikey") entry.apikey = std::string(label.id);
  return entry.ip || !entry.apikey.empty() ? entry : id_of(label);
}

// Counted under the kind of client rather than the limit where the client is the same for every limit of that kind.
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
  // One request is one denial of a client, however many limits deny it.
  InlineList<BucketName, bounds::charges_max> seen;
  const auto first = [&](const BucketName& name) {
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) return false;
    seen.push_back(name);
    return true;
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Label& label = answer.labels[i];
    // A cost that can never pass is a mistake of the caller, and who is blocked by an override needs no second block.
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
  const std::string within = std::to_string(total) + " denials within " + print_duration(rule.within);
  entry.reason =
      "automatic block: " + within + (salt == kOwnRule ? " by " : ", the last by ") + std::string(label.limit);
  entry.added_by = "weir";
  entry.expires = rule.lasts < Wall::max() - now.wall ? now.wall + rule.lasts : Wall::max();
  keeper_.block(std::move(entry), std::string(label.limit), block_line(label, answer.hash_key, total, rule));
}

bool DenialWatch::count(std::uint64_t hash, const BlockRule& rule, Duration interval, Time now, std::int64_t& total) {
  const Duration part{(rule.within.count() - 1) / static_cast<std::int64_t>(kParts) + 1};
  Stripe& stripe = stripes_[hash % kStripes];
  const std::lock_guard lock(stripe.mutex);
  Slot& slot = place(stripe, hash, now);
  total = add(slot, part, now);
  if (!met(rule, interval, total)) return false;
  slot = {};
  return true;
}

DenialWatch::Slot& DenialWatch::place(Stripe& stripe, std::uint64_t hash, Time now) {
  if (stripe.slots.empty()) stripe.slots.resize(kSets * kWays);
  Slot* const ways = &stripe.slots[hash / kStripes % kSets * kWays];
  Slot* oldest = ways;
  for (std::size_t i = 0; i < kWays; ++i) {
    if (ways[i].hash == hash) return ways[i];
    const auto end = [](const Slot& slot) { return slot.hash == 0 ? Time::min() : slot.end(); };
    if (end(ways[i]) < end(*oldest)) oldest = &ways[i];
  }
  if (oldest->hash != 0 && oldest->end() > now) forgotten_.fetch_add(1, std::memory_order_relaxed);
  *oldest = {};
  oldest->hash = hash;
  oldest->first = now;
  return *oldest;
}

std::int64_t DenialWatch::add(Slot& slot, Duration part, Time now) noexcept {
  // Long ago, or under another rule: from the beginning.
  if (slot.part != part || now >= slot.end()) {
    slot.first = now;
    slot.part = part;
    slot.newest = 0;
    slot.counts = {};
  }
  // Another loop's reading may be a little older than the last.
  const std::int64_t number = std::max((now - slot.first) / part, slot.newest);
  while (slot.newest < number) slot.counts[static_cast<std::size_t>(++slot.newest) % kParts] = 0;
  std::uint32_t& count = slot.counts[static_cast<std::size_t>(number) % kParts];
  if (count < std::numeric_limits<std::uint32_t>::max()) ++count;
  std::int64_t total = 0;
  for (const std::uint32_t each : slot.counts) total += each;
  return total;
}

bool DenialWatch::met(const BlockRule& rule, Duration interval, std::int64_t total) noexcept {
  if (rule.after > 0 && total >= rule.after) return true;
  // A quota gives nothing by the time.
  if (rule.times <= 0 || interval <= Duration::zero()) return false;
  const std::int64_t given = rule.within / interval;
  std::int64_t most = 0;
  if (__builtin_mul_overflow(rule.times - 1, given, &most)) return false;
  return total > most;
}

}  // namespace weir
