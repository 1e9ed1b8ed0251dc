// The memory layout of a table. It may be in a file that outlives the process, so it contains no pointers, and after
// every single write it is in a state that recover() can handle.
//
//   region = Header (one page), Group x groups, then chunks of pages (pages.h)
//   group  = up to 7 pages of equal size, each an array of lines; a line = 4 slots = 64 bytes
//   slot   = {word, fingerprint}
//
// Slot protocol, where h is the key's hash:
//   word 0, fingerprint 0: never used since the group was last rebuilt
//   word BUSY alone: claimed by an insert that holds the group's lock
//   word BUSY | w: a rebuild is moving it; the state is w
//   otherwise: bit 62 is set for a quota, the low 62 bits are the state xor h. This salt makes a compare-and-swap
//   verify the key as well as the state. Without it, a stalled spender could charge the next tenant of a reused slot.
#pragma once

#include <atomic>
#include <cstdint>

#include "weir/base/siphash.h"
#include "weir/core/key.h"

namespace weir {

// Returns the upper half of a * b: maps `a`, as a fraction of 2^64, to [0, b), in order.
constexpr std::uint64_t scale(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64);
}

struct Slot {
  std::atomic<std::uint64_t> word;
  std::atomic<std::uint64_t> fingerprint;
};
static_assert(sizeof(Slot) == 16);

inline constexpr unsigned kSlotsPerLine = 4;

// A bucket's state: its TAT in nanoseconds, or a quota's window and use. 0: evicted, which counts as full.
using State = std::uint64_t;

inline constexpr std::uint64_t kBusy = std::uint64_t{1} << 63;
inline constexpr std::uint64_t kQuota = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kStateMask = kQuota - 1;

constexpr std::uint64_t encode(State state, std::uint64_t h, Kind kind) noexcept {
  const std::uint64_t kind_bit = kind == Kind::quota ? kQuota : 0;
  const std::uint64_t salted = (state ^ h) & kStateMask;
  // A word must differ from "free" and from BUSY alone. If it would not, the state becomes one nanosecond or one token
  // more than the true usage, never less.
  return salted != 0 ? salted | kind_bit : (((state + 1) ^ h) & kStateMask) | kind_bit;
}

constexpr State decode(std::uint64_t word, std::uint64_t h) noexcept {
  return (word ^ h) & kStateMask;
}
constexpr Kind kind_of(std::uint64_t word) noexcept {
  return (word & kQuota) != 0 ? Kind::quota : Kind::bucket;
}

// How a group's lines are laid out, and a version, in one word, so that one store changes both. The version increases
// before a slot of the group changes hands and with every rebuild, so that a reader can check that a word it read still
// belongs to its key.
struct Shape {
  static constexpr unsigned kPagesMin = 4;
  static constexpr unsigned kPagesMax = 7;
  static constexpr unsigned kSlotsMax = (kPagesMax << 10) * kSlotsPerLine;

  std::uint32_t bits = 0;

  static constexpr Shape of(unsigned pages, unsigned order) noexcept { return {pages | order << 4}; }
  constexpr unsigned pages() const noexcept { return bits & 15; }
  constexpr unsigned order() const noexcept { return bits >> 4 & 15; }
  constexpr unsigned bank() const noexcept { return bits >> 8 & 1; }
  constexpr std::uint32_t lines() const noexcept { return pages() << order(); }
  constexpr std::uint32_t slots() const noexcept { return lines() * kSlotsPerLine; }
  constexpr Shape larger() const noexcept {
    return pages() < kPagesMax ? of(pages() + 1, order()) : of(kPagesMin, order() + 1);
  }
  // The same lines with the next version.
  constexpr Shape bumped() const noexcept { return {bits + (1u << 9)}; }
  // The same lines in the bank that `old` does not use, with the version after `old`'s.
  constexpr Shape after(Shape old) const noexcept { return {(bits & 255) | ((old.bumped().bits & ~255u) ^ (1u << 8))}; }
};

// The pages of both banks. A rebuild fills the unused bank; then one store to `shape` switches to it.
struct alignas(64) Group {
  std::atomic<std::uint32_t> shape;
  std::atomic<std::uint32_t> names;  // first page of the name log (names.h), 0: none
  std::atomic<std::uint32_t> page[2][Shape::kPagesMax];
};
static_assert(sizeof(Group) == 64);

inline constexpr char kMagic[8] = {'W', 'E', 'I', 'R', 'T', 'B', 'L', '\n'};
inline constexpr std::uint32_t kFormatVersion = 2;
inline constexpr std::uint32_t kVersionWithoutChecksum = 1;  // the same without Header::checksum

// The first page of the region.
struct Header {
  char magic[8];
  std::uint32_t version;
  // The fields from here to `seal` are fixed when the table is created.
  std::uint32_t groups;
  std::uint64_t buckets_max;
  HashKey seed;
  std::uint32_t names;  // 1: names are kept
  std::uint32_t reserved;
  std::atomic<std::uint64_t> seal;         // state.h: 0 while in use; after a clean shutdown, the checksum of the rest
  std::uint64_t sealed_bytes;              // state.h: the file's size when it was sealed
  std::atomic<std::int64_t> horizon;       // a bucket whose TAT is before this may be forgotten; never decreases
  std::atomic<std::int64_t> wall_horizon;  // the same for quotas, on the wall clock; goes back with that clock
  std::atomic<std::uint64_t> evicted;
  char boot_id[40];                           // state.h: the boot whose CLOCK_BOOTTIME the next two fields refer to
  std::int64_t boot_offset;                   // Time = CLOCK_BOOTTIME + this
  std::int64_t sealed_time;                   // Time when it was sealed
  std::atomic<std::int64_t> wall_minus_time;  // the latest reading of the wall clock minus Time
  std::uint64_t checksum;                     // state.h: of the fields that do not change while the table is in use
};
inline constexpr std::size_t kHeaderBytes = 4096;
static_assert(sizeof(Header) <= kHeaderBytes);

}  // namespace weir
