#include "weir/observe/top_keys.h"

#include <bit>

#include "weir/base/assert.h"

namespace weir {

TopKeys::TopKeys(std::size_t places) : places_(places) {
  WEIR_ASSERT(places >= 1 && places < kNobody / 8);
  order_.reserve(places);
  tenants_.resize(places);
  // Every place may have its own count, and one more run is needed while a place moves.
  runs_.resize(places + 1);
  for (std::size_t run = 0; run < runs_.size(); ++run) free_runs_.push_back(static_cast<std::uint32_t>(run));
  index_.assign(std::bit_ceil(places * 4), kNobody);
}

std::size_t TopKeys::find(std::uint64_t hash) const noexcept {
  const std::size_t mask = index_.size() - 1;
  std::size_t slot = hash & mask;
  while (index_[slot] != kNobody && tenants_[index_[slot]].hash != hash) slot = (slot + 1) & mask;
  return slot;
}

// Closes the gap, so that a search can stop at the first free slot.
void TopKeys::vacate(std::size_t slot) noexcept {
  const std::size_t mask = index_.size() - 1;
  for (std::size_t next = (slot + 1) & mask; index_[next] != kNobody; next = (next + 1) & mask) {
    const std::size_t home = tenants_[index_[next]].hash & mask;
    // An entry may move into the gap if its home slot is at or before the gap, cyclically.
    if (((next - home) & mask) < ((next - slot) & mask)) continue;
    index_[slot] = index_[next];
    slot = next;
  }
  index_[slot] = kNobody;
}

// Adds the place to the run before it if that has the same count, otherwise to a new run.
void TopKeys::join(std::uint32_t place, std::uint32_t position, std::uint64_t count) noexcept {
  Tenant& tenant = tenants_[place];
  tenant.position = position;
  order_[position] = place;
  if (position > 0 && this->count(order_[position - 1]) == count) {
    tenant.run = tenants_[order_[position - 1]].run;
    runs_[tenant.run].last = position;
    return;
  }
  tenant.run = free_runs_.back();
  free_runs_.pop_back();
  runs_[tenant.run] = {count, position, position};
}

void TopKeys::raise(std::uint32_t place) noexcept {
  Tenant& tenant = tenants_[place];
  Run& run = runs_[tenant.run];
  const std::uint32_t first = run.first;
  const std::uint32_t other = order_[first];
  order_[tenant.position] = other;
  tenants_[other].position = tenant.position;
  const std::uint64_t count = run.count;
  if (run.first++ == run.last) free_runs_.push_back(tenant.run);
  join(place, first, count + 1);
}

TopKeys::Place TopKeys::add(std::uint64_t hash) noexcept {
  const std::size_t slot = find(hash);
  if (index_[slot] != kNobody) {
    const std::uint32_t place = index_[slot];
    raise(place);
    return {place, false};
  }
  if (order_.size() < places_) {
    const auto place = static_cast<std::uint32_t>(order_.size());
    tenants_[place].hash = hash;
    index_[slot] = place;
    order_.push_back(place);
    join(place, place, 1);
    return {place, true};
  }
  const std::uint32_t place = order_.back();
  Tenant& tenant = tenants_[place];
  vacate(find(tenant.hash));
  tenant.hash = hash;
  tenant.error = count(place);
  // Closing the gap may have moved the free slot.
  std::size_t free = hash & (index_.size() - 1);
  while (index_[free] != kNobody) free = (free + 1) & (index_.size() - 1);
  index_[free] = place;
  raise(place);
  return {place, true};
}

TopKeys::Estimate TopKeys::estimate(std::uint32_t place) const noexcept {
  return {count(place), tenants_[place].error};
}

}  // namespace weir
