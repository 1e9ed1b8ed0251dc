#include "weir/store/memory/charging.h"

namespace weir {

std::uint64_t TableBuckets::hash(const Key& key) noexcept {
  if (hashes_.empty()) return table_.hash(key);
  const std::uint64_t hash = hashes_.front();
  hashes_ = hashes_.subspan(1);
  return hash;
}

Decision TableBuckets::spend(const ChargedBucket& bucket) const noexcept {
  if (bucket.is_quota()) return table_.spend(bucket.hash, bucket.key(), bucket.quota(), bucket.cost, now_);
  const RateCharge& rate = bucket.rate();
  return table_.spend(bucket.hash, bucket.key(), rate.limit, bucket.cost, now_.time, {rate.since, &clock_});
}

Decision TableBuckets::peek(const ChargedBucket& bucket) const noexcept {
  return decide(bucket, true);
}

Decision TableBuckets::look(const ChargedBucket& bucket) const noexcept {
  return decide(bucket, false);
}

Decision TableBuckets::decide(const ChargedBucket& bucket, bool settles) const noexcept {
  if (bucket.is_quota()) return table_.peek(bucket.hash, bucket.quota(), bucket.cost, now_);
  const RateCharge& rate = bucket.rate();
  return table_.peek(bucket.hash, rate.limit, bucket.cost, now_.time, {rate.since, &clock_, settles});
}

Decision TableBuckets::refund(const ChargedBucket& bucket) const noexcept {
  if (bucket.is_quota()) return table_.refund(bucket.hash, bucket.quota(), bucket.cost, now_);
  const RateCharge& rate = bucket.rate();
  return table_.refund(bucket.hash, rate.limit, bucket.cost, now_.time, {rate.since, &clock_});
}

bool TableBuckets::reset(const ChargedBucket& bucket) const noexcept {
  return table_.reset(bucket.hash, bucket.kind, now_);
}

void TableBuckets::undo(const ChargedBucket& bucket, const Decision& spent) const noexcept {
  if (bucket.is_quota()) {
    table_.undo(bucket.hash, bucket.quota(), bucket.cost, now_.wall + spent.reset_after);
  } else {
    table_.undo(bucket.hash, bucket.rate().limit, bucket.cost, now_.time, clock_);
  }
}

Verdict charge(Table& table, std::span<const Charge> charges, Mode mode, Order order, Now now,
               const Clock& clock) noexcept {
  TableBuckets buckets(table, now, clock);
  return charge(buckets, charges, mode, order);
}

void prefetch(const Table& table, std::span<const Charge> charges, std::vector<std::uint64_t>& hashes) {
  const auto add = [&](const Key& key) {
    hashes.push_back(table.hash(key));
    table.prefetch_line(hashes.back());
  };
  for (const Charge& charge : charges) {
    if (charge.rate) add({charge.rate->key, Kind::bucket});
    if (charge.quota) add({charge.quota->key, Kind::quota});
  }
}

}  // namespace weir
