// A Redis cluster's keys live in 16,384 slots; this says which slot a key is in, and which master serves the slot.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/store/redis/node.h"
#include "weir/wire/resp.h"

namespace weir::redis {

using Slot = std::uint16_t;
inline constexpr std::size_t kSlots = 16'384;

// CRC16 of the key, or of its hash tag: what stands between the first '{' and the next '}', if that is not empty.
Slot slot_of(std::string_view key) noexcept;

// Who serves what, as far as it is known. A value: copied, replaced as a whole, corrected slot by slot.
class SlotMap {
 public:
  // From the reply to CLUSTER SLOTS; `asked` gave it. Replicas are not kept. Errors: a reply of another shape, slots
  // out of range, more than bounds::redis_nodes_max masters. Slots that nobody serves stay unknown.
  static Result<SlotMap> read(const resp::Reply& reply, const Node& asked);

  // Null if nobody is known to serve the slot. REQUIRES: slot < kSlots.
  const Node* master(Slot slot) const noexcept;
  std::span<const Node> masters() const noexcept { return masters_; }

  // A MOVED says so. False if that would be one master too many.
  bool moved(Slot slot, const Node& node);

 private:
  static constexpr std::uint16_t kNobody = 0xffff;

  std::uint16_t index(const Node& node);  // kNobody: no room

  std::vector<Node> masters_;
  std::array<std::uint16_t, kSlots> serves_ = filled();

  static constexpr std::array<std::uint16_t, kSlots> filled() noexcept {
    std::array<std::uint16_t, kSlots> nobody{};
    nobody.fill(kNobody);
    return nobody;
  }
};

}  // namespace weir::redis
