#include "weir/server/denial_watch.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "weir/base/text.h"
#include "weir/core/identifier.h"

namespace weir {
namespace {

// Whom a decision is about, as the deny list will know it. Nobody: a bucket that all share.
std::optional<AccessEntry> client_of(const Policy& policy, const Label& label) {
  const NamedLimit* const limit = policy.find(label.limit);
  if (limit == nullptr || label.key == "global") return std::nullopt;
  AccessEntry entry;
  if (!limit->hashed && label.key == "ip") {
    if (const Result<IpPrefix> ip = IpPrefix::parse(label.id)) entry.ip = *ip;
  }
  if (!limit->hashed && label.key == "apikey") entry.apikey = std::string(label.id);
  if (entry.ip || !entry.apikey.empty()) return entry;
  entry.limit = std::string(label.limit);
  entry.id = std::string(label.id);
  return entry;
}

// Counted under the kind of client rather than the limit where the client is the same for every limit of that kind.
BucketName name_of(const Label& label) noexcept {
  return {label.key == "ip" || label.key == "apikey" ? label.key : label.limit, label.id};
}

}  // namespace

std::string block_line(const Label& label, std::int64_t denials, const BlockRule& rule) {
  return "client blocked: client=" + shown_identifier(label) + " limit=" + std::string(label.limit) +
         " denials=" + std::to_string(denials) + " within=" + print_duration(rule.within) +
         " for=" + print_duration(rule.lasts);
}

DenialWatch::DenialWatch(KnownKeeper& keeper) : keeper_(keeper), hash_{random_hash_key()} {}

void DenialWatch::denied(const Policy& policy, const Answer& answer) {
  const BlockRule& rule = policy.block();
  if (!rule.any() || answer.access != Access::limited) return;
  const Decisions& all = answer.verdict.all;
  std::array<BucketName, bounds::charges_max> seen;
  std::size_t seen_size = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Label& label = answer.labels[i];
    // A cost that can never pass is a mistake of the caller, and who is blocked by an override needs no second block.
    if (all[i].allowed || all[i].retry_after == kNever || label.shadow) continue;
    // One request is one denial of a client, however many limits say so.
    const BucketName name = name_of(label);
    if (std::find(seen.begin(), seen.begin() + seen_size, name) != seen.begin() + seen_size) continue;
    seen[seen_size++] = name;
    std::int64_t total = 0;
    const std::uint64_t hash = std::max<std::uint64_t>(hash_(name), 1);
    if (!count(hash, rule, label.interval, answer.now.time, total)) continue;
    std::optional<AccessEntry> entry = client_of(policy, label);
    if (!entry) continue;
    entry->reason = "automatic block: " + std::to_string(total) + " denials within " + print_duration(rule.within) +
                    ", the last by " + std::string(label.limit);
    entry->added_by = "weir";
    const Wall now = answer.now.wall;
    entry->expires = rule.lasts < Wall::max() - now ? now + rule.lasts : Wall::max();
    keeper_.block(std::move(*entry), std::string(label.limit), block_line(label, total, rule));
  }
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
