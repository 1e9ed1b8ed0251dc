// Other numbers for one id of a limit, by canonical id. Built once, then read by any thread. Compact, because there may
// be a million: all ids are in one string, and the index is a flat array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/algorithm/calendar.h"
#include "weir/core/limit.h"

namespace weir {

// A quota as configured: a number of tokens per calendar window, or per window of a fixed length.
struct QuotaText {
  Count size = 0;
  Calendar calendar = Calendar::day;
  Duration every{};  // not zero: the fixed length; the calendar is ignored

  Quota at(const Zone& zone, Wall wall) const noexcept {
    return every == Duration::zero() ? quota_at(size, calendar, zone, wall) : quota_at(size, every, wall);
  }

  friend constexpr bool operator==(const QuotaText&, const QuotaText&) = default;
};

struct Override {
  enum class Kind : unsigned char { numbers, unlimited, blocked, tier };
  Kind kind = Kind::numbers;
  std::uint8_t tier = 0;  // with Kind::tier: index into the limit's tiers
  bool has_limit = false;
  bool has_quota = false;
  Limit limit = Limit::per_second(1);  // when has_limit
  QuotaText quota;                     // when has_quota

  friend bool operator==(const Override&, const Override&) = default;
};

class OverrideTable {
 public:
  // Makes room for this many ids with this many bytes in total, so that a large table is not copied while it grows.
  void reserve(std::size_t ids, std::size_t bytes);

  // Prefetches the slot of an id that will be added soon. In a large table that cache miss is most of the cost of
  // adding.
  void prefetch(std::string_view id) const noexcept;

  // The index of the new entry, or of the one that already has this id.
  struct Added {
    std::uint32_t index;
    bool fresh;
  };
  // Where it was written, for messages; line 0: unknown.
  struct Place {
    std::uint32_t line = 0;
    std::uint32_t column = 0;
  };
  Added add(std::string_view id, const Override& value, Place place = {0, 0});

  const Override* find(std::string_view id) const noexcept;  // null if not found
  std::size_t size() const noexcept { return entries_.size(); }
  std::string_view id(std::uint32_t index) const noexcept;
  Place place(std::uint32_t index) const noexcept { return entries_[index].place; }
  const Override& operator[](std::uint32_t index) const noexcept { return entries_[index].value; }

 private:
  struct Entry {
    std::uint32_t offset;
    std::uint32_t size;
    Place place;
    Override value;
  };
  static constexpr std::uint32_t kFree = 0xffff'ffff;
  // The hash beside the index rules out most other ids without loading the entry, which is far away in memory.
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t index = kFree;
  };

  // Returns the slot that holds the id, or the free one where it belongs. REQUIRES: slots_ is not empty.
  std::size_t slot_of(std::string_view id, std::uint32_t hash) const noexcept;
  void widen(std::size_t slots);

  std::vector<Entry> entries_;
  std::vector<Slot> slots_;  // a power of two, at most half full; indexes into entries_ or kFree
  std::string text_;
};

}  // namespace weir
