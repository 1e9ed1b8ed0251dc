#include "weir/store/redis/leases.h"

#include <algorithm>
#include <utility>

namespace weir::redis {

Leases::Leases(Options options)
    : options_(std::move(options)), sets_(std::max<std::size_t>(options_.buckets_max / kSet, 1)) {}

Leases::Entry* Leases::find(Set& set, Bucket bucket) noexcept {
  const auto found = std::ranges::find(set.entries, bucket, &Entry::bucket);
  return found == set.entries.end() ? nullptr : &*found;
}

// Returns the bucket's entry, or makes one in place of the oldest entry without a lease. Null if all have leases.
Leases::Entry* Leases::find_or_make(Set& set, Bucket bucket, Time now) noexcept {
  if (Entry* const entry = find(set, bucket)) return entry;
  Entry* oldest = nullptr;
  for (Entry& entry : set.entries) {
    const bool leases = entry.rest > 0 || (entry.asking != 0 && now < entry.asking_until);
    if (!leases && (oldest == nullptr || entry.since < oldest->since)) oldest = &entry;
  }
  if (oldest == nullptr) return nullptr;
  *oldest = {};
  oldest->bucket = bucket;
  oldest->since = now;
  return oldest;
}

void Leases::count(Entry& entry, Count cost, Time now) noexcept {
  const Duration age = now - entry.since;
  if (age >= kLeaseLife) {
    const bool recent = age < 2 * kLeaseLife;
    entry.asks_before = recent ? entry.asks : 0;
    entry.used_before = recent ? entry.used : 0;
    entry.asks = entry.used = 0;
    entry.since = now;
  }
  ++entry.asks;
  entry.used += cost;
}

// REQUIRES: the lease covers the cost.
Decision Leases::take(Entry& entry, Count cost) noexcept {
  entry.rest -= cost;
  Decision decision = entry.left;
  decision.remaining += entry.rest;
  decision.reset_after = std::max(decision.reset_after - entry.terms.limit.interval() * entry.rest, Duration::zero());
  return decision;
}

std::optional<Decision> Leases::spend_leased(Bucket bucket, const Terms& terms, Count cost, Time now) {
  Set& set = set_of(bucket);
  const std::lock_guard lock(set.mutex);
  Entry* const entry = find(set, bucket);
  if (entry == nullptr || entry->terms != terms || entry->rest < cost || now >= entry->until) return std::nullopt;
  count(*entry, cost, now);
  return take(*entry, cost);
}

Leases::Answer Leases::spend(Bucket bucket, const Terms& terms, Count cost, Time now, bool again) {
  if (cost > std::min(terms.lease.tokens, terms.limit.burst())) return {};
  Set& set = set_of(bucket);
  const std::lock_guard lock(set.mutex);
  Entry* const entry = find_or_make(set, bucket, now);
  if (entry == nullptr) return {};
  if (entry->terms != terms) {
    // The terms changed. Drop the tokens leased under the old ones; the bucket refills with time.
    entry->terms = terms;
    entry->rest = 0;
    entry->asking = 0;
    entry->rests_until = {};
  }
  if (!again) count(*entry, cost, now);
  Answer answer;
  if (entry->rest >= cost && now < entry->until) {
    answer.way = Way::leased;
    answer.decision = take(*entry, cost);
    return answer;
  }
  if (std::max(entry->asks, entry->asks_before) < kHotAsks || now < entry->rests_until) return answer;
  answer.way = Way::gather;
  if (entry->asking != 0 && now < entry->asking_until) return answer;
  answer.want = std::clamp<Count>(std::max(entry->used, entry->used_before), 1, terms.lease.tokens);
  answer.serial = next_serial_.fetch_add(1, std::memory_order_relaxed);
  answer.unspent = {std::exchange(entry->rest, 0), entry->serial};
  entry->asking = answer.serial;
  entry->asking_until = now + kLeaseSpent;
  return answer;
}

bool Leases::granted(Bucket bucket, std::uint64_t serial, Count tokens, const Decision& left, Time sent, Time now) {
  Set& set = set_of(bucket);
  const std::lock_guard lock(set.mutex);
  Entry* const entry = find(set, bucket);
  if (entry == nullptr || entry->asking != serial) return false;
  entry->asking = 0;
  if (now - sent >= kLeaseSpent) return false;
  entry->rest = tokens;
  entry->serial = serial;
  entry->until = sent + kLeaseSpent;
  entry->left = left;
  return true;
}

void Leases::refused(Bucket bucket, std::uint64_t serial, Time until) {
  Set& set = set_of(bucket);
  const std::lock_guard lock(set.mutex);
  Entry* const entry = find(set, bucket);
  if (entry == nullptr || entry->asking != serial) return;
  entry->asking = 0;
  entry->rests_until = until;
}

Count Leases::end(Bucket bucket, std::uint64_t serial) {
  Set& set = set_of(bucket);
  const std::lock_guard lock(set.mutex);
  Entry* const entry = find(set, bucket);
  if (entry == nullptr || entry->serial != serial) return 0;
  return std::exchange(entry->rest, 0);
}

}  // namespace weir::redis
