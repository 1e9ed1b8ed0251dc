#include "weir/observe/top_keys.h"

#include <bit>

#include "weir/base/assert.h"

namespace weir {

TopKeys::TopKeys(std::size_t places) : places_(places) {
  WEIR_ASSERT(places >= 1 && places < kNobody / 8);
  heap_.reserve(places);
  tenants_.resize(places);
  index_.assign(std::bit_ceil(places * 4), kNobody);
}

std::size_t TopKeys::find(std::uint64_t hash) const noexcept {
  const std::size_t mask = index_.size() - 1;
  std::size_t slot = hash & mask;
  while (index_[slot] != kNobody && tenants_[index_[slot]].hash != hash) slot = (slot + 1) & mask;
  return slot;
}

// Closes the gap, so that a search may stop at the first free slot.
void TopKeys::vacate(std::size_t slot) noexcept {
  const std::size_t mask = index_.size() - 1;
  for (std::size_t next = (slot + 1) & mask; index_[next] != kNobody; next = (next + 1) & mask) {
    const std::size_t home = tenants_[index_[next]].hash & mask;
    // Who lives at or before the gap, going round, may move into it.
    if (((next - home) & mask) < ((next - slot) & mask)) continue;
    index_[slot] = index_[next];
    slot = next;
  }
  index_[slot] = kNobody;
}

void TopKeys::put(std::size_t position, Item item) noexcept {
  heap_[position] = item;
  tenants_[item.place].position = static_cast<std::uint32_t>(position);
}

void TopKeys::sink(std::size_t position) noexcept {
  const Item item = heap_[position];
  for (;;) {
    std::size_t child = 2 * position + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].count < heap_[child].count) ++child;
    if (item.count <= heap_[child].count) break;
    put(position, heap_[child]);
    position = child;
  }
  put(position, item);
}

void TopKeys::rise(std::size_t position) noexcept {
  const Item item = heap_[position];
  while (position > 0 && item.count < heap_[(position - 1) / 2].count) {
    put(position, heap_[(position - 1) / 2]);
    position = (position - 1) / 2;
  }
  put(position, item);
}

TopKeys::Place TopKeys::add(std::uint64_t hash) noexcept {
  const std::size_t slot = find(hash);
  if (index_[slot] != kNobody) {
    const std::uint32_t place = index_[slot];
    const std::size_t position = tenants_[place].position;
    ++heap_[position].count;
    sink(position);
    return {place, false};
  }
  if (heap_.size() < places_) {
    const auto place = static_cast<std::uint32_t>(heap_.size());
    tenants_[place] = {hash, 0, 0};
    index_[slot] = place;
    heap_.push_back({1, place});
    rise(heap_.size() - 1);
    return {place, true};
  }
  const std::uint32_t place = heap_.front().place;
  Tenant& tenant = tenants_[place];
  vacate(find(tenant.hash));
  tenant.hash = hash;
  tenant.error = heap_.front().count;
  // After the gap has closed, the free slot may be another one.
  std::size_t free = hash & (index_.size() - 1);
  while (index_[free] != kNobody) free = (free + 1) & (index_.size() - 1);
  index_[free] = place;
  ++heap_.front().count;
  sink(0);
  return {place, true};
}

TopKeys::Estimate TopKeys::estimate(std::uint32_t place) const noexcept {
  return {heap_[tenants_[place].position].count, tenants_[place].error};
}

}  // namespace weir
