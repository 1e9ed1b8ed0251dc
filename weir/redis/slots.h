// A Redis cluster's keys live in 16,384 slots; this says which slot a key is in, and which master serves the slot.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/redis/targets.h"
#include "weir/wire/resp.h"

namespace weir::redis {

using Slot = std::uint16_t;
inline constexpr std::size_t kSlots = 16'384;

// CRC16 of the key, or of its hash tag: what stands between the first '{' and the next '}', if that is not empty.
Slot slot_of(std::string_view key) noexcept;

// Who serves what, as far as it is known. A value: copied, replaced as a whole, corrected slot by slot.
class SlotMap {
 public:
  static constexpr std::uint16_t kNobody = 0xffff;

  SlotMap() noexcept { serves_.fill(kNobody); }  // a constant initializer becomes 16,384 stores and compiles for 10 s

  // From the reply to CLUSTER SLOTS; `asked` gave it. Replicas are not kept. Errors: a reply of another shape, slots
  // out of range, more than bounds::redis_nodes_max masters. Slots that nobody serves stay unknown.
  static Result<SlotMap> read(const resp::Reply& reply, const Target& asked);

  std::span<const Target> masters() const noexcept { return masters_; }
  // Which of the masters serves the slot; kNobody: none is known to. REQUIRES: slot < kSlots.
  std::size_t index(Slot slot) const noexcept;
  // The same as a pointer into masters(), or null.
  const Target* master(Slot slot) const noexcept;
  // Every slot has a master.
  bool is_whole() const noexcept;

  // A MOVED says so. False if that would be one master too many.
  bool moved(Slot slot, const Target& node);

 private:
  std::uint16_t add(const Target& node);  // kNobody: no room

  std::vector<Target> masters_;
  std::array<std::uint16_t, kSlots> serves_;
};

}  // namespace weir::redis
