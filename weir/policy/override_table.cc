#include "weir/policy/override_table.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "weir/base/assert.h"

namespace weir {
namespace {

std::uint32_t hash_of(std::string_view id) noexcept {
  const std::uint64_t hash = std::hash<std::string_view>{}(id);
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

}  // namespace

std::string_view OverrideTable::id(std::uint32_t index) const noexcept {
  return std::string_view(text_).substr(entries_[index].offset, entries_[index].size);
}

std::size_t OverrideTable::slot_of(std::string_view id, std::uint32_t hash) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    const Slot held = slots_[slot];
    if (held.index == kFree || (held.hash == hash && this->id(held.index) == id)) return slot;
  }
}

void OverrideTable::reserve(std::size_t ids, std::size_t bytes) {
  entries_.reserve(ids);
  text_.reserve(bytes);
  // add() widens when half of the slots are used, so reserve enough for the last id.
  if (ids * 2 > slots_.size()) widen(std::bit_ceil(ids * 2));
}

void OverrideTable::prefetch(std::string_view id) const noexcept {
  if (!slots_.empty()) __builtin_prefetch(&slots_[hash_of(id) & (slots_.size() - 1)], 1);
}

// REQUIRES: `slots` is a power of two and more than the number of entries.
void OverrideTable::widen(std::size_t slots) {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots));
  const std::size_t mask = slots_.size() - 1;
  for (const Slot held : old) {
    if (held.index == kFree) continue;
    std::size_t slot = held.hash & mask;
    while (slots_[slot].index != kFree) slot = (slot + 1) & mask;
    slots_[slot] = held;
  }
}

OverrideTable::Added OverrideTable::add(std::string_view id, const Override& value, Place place) {
  WEIR_ASSERT(entries_.size() < kFree && text_.size() <= kFree);
  if (entries_.size() * 2 >= slots_.size()) widen(std::max<std::size_t>(16, slots_.size() * 2));
  const std::uint32_t hash = hash_of(id);
  const std::size_t slot = slot_of(id, hash);
  if (slots_[slot].index != kFree) return {slots_[slot].index, false};
  const auto index = static_cast<std::uint32_t>(entries_.size());
  slots_[slot] = {hash, index};
  entries_.push_back({static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(id.size()), place, value});
  text_ += id;
  return {index, true};
}

const Override* OverrideTable::find(std::string_view id) const noexcept {
  if (slots_.empty()) return nullptr;
  const std::uint32_t index = slots_[slot_of(id, hash_of(id))].index;
  return index == kFree ? nullptr : &entries_[index].value;
}

}  // namespace weir
