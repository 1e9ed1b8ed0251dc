// Values by address prefix; the most specific prefix that contains an address wins. Immutable once built, so any thread
// may read it.
//
// Two prefixes are nested or disjoint, never partly overlapping. Nodes are sorted by lowest address, wider first, and
// each has the index of the node that it is nested in. The last node that starts at or before an address, or one that
// encloses this node, contains the address if any node does. So a lookup is one binary search and at most 128 steps
// outward.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/result.h"
#include "weir/identify/ip.h"

namespace weir {

template <class T>
class PrefixMap {
 public:
  PrefixMap() = default;  // empty

  // Takes the entries in any order. Fails for a repeated prefix and for more than bounds::prefixes_max.
  static Result<PrefixMap> build(std::vector<std::pair<IpPrefix, T>> entries);

  // Returns the value of the most specific prefix that contains the address, or null. Valid as long as the map.
  const T* find(const IpAddress& address) const noexcept;
  // The same among the values for which `accept` returns true.
  template <class Accept>
  const T* find(const IpAddress& address, Accept accept) const;
  std::size_t size() const noexcept { return sides_[0].starts.size() + sides_[1].starts.size(); }

 private:
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  static constexpr std::size_t kStride = 64;

  // An address as two integers, which compare faster than bytes.
  struct Start {
    std::uint64_t high;
    std::uint64_t low;
    friend constexpr auto operator<=>(const Start&, const Start&) = default;
  };
  struct PrefixNode {
    std::uint32_t parent;  // index of the narrowest node that encloses this one, or kNone
    int bits;
    T value;
  };
  // One per family. The starts are stored separately, so that the search touches little memory.
  struct FamilyIndex {
    std::vector<Start> starts;
    std::vector<Start> sample;  // starts[0], starts[kStride], starts[2 * kStride], …
    std::vector<PrefixNode> nodes;
  };

  static constexpr Start start_of(const IpAddress& address) noexcept {
    Start start{0, 0};
    for (std::size_t i = 0; i < 8; ++i) start.high = start.high << 8 | address.bytes()[i];
    for (std::size_t i = 8; i < 16; ++i) start.low = start.low << 8 | address.bytes()[i];
    return start;
  }

  // Returns whether the first `bits` bits are equal. IPv4 uses the highest bits, so both families work the same way.
  static constexpr bool same_prefix(const Start& a, const Start& b, int bits) noexcept {
    if (bits == 0) return true;
    if (bits <= 64) return (a.high ^ b.high) >> (64 - bits) == 0;
    return a.high == b.high && (a.low ^ b.low) >> (128 - bits) == 0;
  }

  // Returns the last node that starts at or before `start`, or kNone.
  static std::uint32_t last_from(const FamilyIndex& side, const Start& start) noexcept {
    const auto block = std::upper_bound(side.sample.begin(), side.sample.end(), start) - side.sample.begin();
    if (block == 0) return kNone;
    const std::size_t begin = (static_cast<std::size_t>(block) - 1) * kStride;
    const std::size_t end = std::min(begin + kStride, side.starts.size());
    const Start* const starts = side.starts.data();
    return static_cast<std::uint32_t>(std::upper_bound(starts + begin, starts + end, start) - starts - 1);
  }

  // Returns the first node that contains `start`, from `index` outwards.
  static std::uint32_t innermost(const FamilyIndex& side, std::uint32_t index, const Start& start) noexcept {
    while (index != kNone && !same_prefix(side.starts[index], start, side.nodes[index].bits)) {
      index = side.nodes[index].parent;
    }
    return index;
  }

  std::array<FamilyIndex, 2> sides_;
};

template <class T>
Result<PrefixMap<T>> PrefixMap<T>::build(std::vector<std::pair<IpPrefix, T>> entries) {
  if (entries.size() > bounds::prefixes_max) {
    return Error{Fault::too_large,
                 std::to_string(entries.size()) + " prefixes are more than " + std::to_string(bounds::prefixes_max)};
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  PrefixMap map;
  const IpPrefix* before = nullptr;
  for (auto& [prefix, value] : entries) {
    if (before != nullptr && *before == prefix) return Error{Fault::invalid, prefix.print() + " is given twice"};
    before = &prefix;
    FamilyIndex& side = map.sides_[prefix.address().is_v4() ? 0 : 1];
    const Start start = start_of(prefix.address());
    // The previous node, or one that encloses it, is the parent (see the top of this file).
    const auto last = side.starts.empty() ? kNone : static_cast<std::uint32_t>(side.starts.size() - 1);
    side.nodes.push_back(PrefixNode{innermost(side, last, start), prefix.bits(), std::move(value)});
    if (side.starts.size() % kStride == 0) side.sample.push_back(start);
    side.starts.push_back(start);
  }
  return map;
}

template <class T>
const T* PrefixMap<T>::find(const IpAddress& address) const noexcept {
  const FamilyIndex& side = sides_[address.is_v4() ? 0 : 1];
  const Start start = start_of(address);
  const std::uint32_t found = innermost(side, last_from(side, start), start);
  return found == kNone ? nullptr : &side.nodes[found].value;
}

template <class T>
template <class Accept>
const T* PrefixMap<T>::find(const IpAddress& address, Accept accept) const {
  const FamilyIndex& side = sides_[address.is_v4() ? 0 : 1];
  const Start start = start_of(address);
  std::uint32_t found = innermost(side, last_from(side, start), start);
  while (found != kNone && !accept(side.nodes[found].value)) {
    found = innermost(side, side.nodes[found].parent, start);
  }
  return found == kNone ? nullptr : &side.nodes[found].value;
}

}  // namespace weir
