// Values by address prefix; the most specific prefix that holds an address wins. Immutable once built, so any thread
// may read it.
//
// Two prefixes are nested or apart, never half over each other. Sorted by lowest address, wider first, each entry knows
// the entry it is nested in. Of all entries that start at or before an address take the last: whatever holds the
// address is that entry or one around it. A lookup is one binary search and at most 128 steps outwards, whatever was
// loaded.
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
  PrefixMap() = default;  // holds nothing

  // In any order. The same prefix twice is an error, and so are more than bounds::prefixes_max.
  static Result<PrefixMap> build(std::vector<std::pair<IpPrefix, T>> entries);

  // The value of the most specific prefix that holds the address, or null. Valid as long as the map.
  const T* find(const IpAddress& address) const noexcept;
  // The same among those whose value `accept` takes.
  template <class Accept>
  const T* find(const IpAddress& address, Accept accept) const;
  std::size_t size() const noexcept { return sides_[0].starts.size() + sides_[1].starts.size(); }

 private:
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  static constexpr std::size_t kStride = 64;

  // An address as two numbers, which compare faster than bytes.
  struct Start {
    std::uint64_t high;
    std::uint64_t low;
    friend constexpr auto operator<=>(const Start&, const Start&) = default;
  };
  struct Entry {
    std::uint32_t around;  // the index of the narrowest entry this one is nested in, or kNone
    int bits;
    T value;
  };
  // One per family. The starts are apart from the rest, so that the search touches little memory.
  struct Side {
    std::vector<Start> starts;
    std::vector<Start> sample;  // starts[0], starts[kStride], starts[2 * kStride], …
    std::vector<Entry> entries;
  };

  static constexpr Start start_of(const IpAddress& address) noexcept {
    Start start{0, 0};
    for (std::size_t i = 0; i < 8; ++i) start.high = start.high << 8 | address.bytes()[i];
    for (std::size_t i = 8; i < 16; ++i) start.low = start.low << 8 | address.bytes()[i];
    return start;
  }

  // Whether the first `bits` bits are the same. IPv4 lies in the highest bits, so both families are asked alike.
  static constexpr bool agree(const Start& a, const Start& b, int bits) noexcept {
    if (bits == 0) return true;
    if (bits <= 64) return (a.high ^ b.high) >> (64 - bits) == 0;
    return a.high == b.high && (a.low ^ b.low) >> (128 - bits) == 0;
  }

  // The last entry that starts at or before `start`, or kNone.
  static std::uint32_t last_from(const Side& side, const Start& start) noexcept {
    const auto block = std::upper_bound(side.sample.begin(), side.sample.end(), start) - side.sample.begin();
    if (block == 0) return kNone;
    const std::size_t begin = (static_cast<std::size_t>(block) - 1) * kStride;
    const std::size_t end = std::min(begin + kStride, side.starts.size());
    const Start* const starts = side.starts.data();
    return static_cast<std::uint32_t>(std::upper_bound(starts + begin, starts + end, start) - starts - 1);
  }

  // From the entry at `index` outwards, the first that holds `start`.
  static std::uint32_t innermost(const Side& side, std::uint32_t index, const Start& start) noexcept {
    while (index != kNone && !agree(side.starts[index], start, side.entries[index].bits)) {
      index = side.entries[index].around;
    }
    return index;
  }

  std::array<Side, 2> sides_;
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
    Side& side = map.sides_[prefix.address().is_v4() ? 0 : 1];
    const Start start = start_of(prefix.address());
    // The entry before this one, or one around that, is the one this is nested in: see the top of this file.
    const auto last = side.starts.empty() ? kNone : static_cast<std::uint32_t>(side.starts.size() - 1);
    side.entries.push_back(Entry{innermost(side, last, start), prefix.bits(), std::move(value)});
    if (side.starts.size() % kStride == 0) side.sample.push_back(start);
    side.starts.push_back(start);
  }
  return map;
}

template <class T>
const T* PrefixMap<T>::find(const IpAddress& address) const noexcept {
  const Side& side = sides_[address.is_v4() ? 0 : 1];
  const Start start = start_of(address);
  const std::uint32_t found = innermost(side, last_from(side, start), start);
  return found == kNone ? nullptr : &side.entries[found].value;
}

template <class T>
template <class Accept>
const T* PrefixMap<T>::find(const IpAddress& address, Accept accept) const {
  const Side& side = sides_[address.is_v4() ? 0 : 1];
  const Start start = start_of(address);
  std::uint32_t found = innermost(side, last_from(side, start), start);
  while (found != kNone && !accept(side.entries[found].value)) {
    found = innermost(side, side.entries[found].around, start);
  }
  return found == kNone ? nullptr : &side.entries[found].value;
}

}  // namespace weir
