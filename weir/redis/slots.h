// A Redis cluster maps keys to 16,384 slots, and each slot to a master.
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

// Returns the CRC16 of the key, or of its hash tag (the text between the first '{' and the next '}', if not empty),
// modulo kSlots.
Slot slot_of(std::string_view key) noexcept;

// Which master serves which slot, as far as known. A value: copied, replaced as a whole, corrected slot by slot.
class SlotMap {
 public:
  static constexpr std::uint16_t kNoMaster = 0xffff;

  SlotMap() noexcept { master_index_.fill(kNoMaster); }

  // Parses the reply to CLUSTER SLOTS that the server `asked` sent. Ignores replicas. Errors: an unexpected reply,
  // slots out of range, more than bounds::redis_nodes_max masters. Slots that no master serves stay unknown.
  static Result<SlotMap> read(const resp::Reply& reply, const Target& asked);

  std::span<const Target> masters() const noexcept { return masters_; }
  // Returns the index in masters() of the slot's master, or kNoMaster. REQUIRES: slot < kSlots.
  std::size_t index(Slot slot) const noexcept;
  // Returns the slot's master, or null.
  const Target* master(Slot slot) const noexcept;
  // True if every slot has a master.
  bool is_whole() const noexcept;

  // Applies a MOVED. Returns false if there would be too many masters.
  bool moved(Slot slot, const Target& node);

 private:
  std::uint16_t add(const Target& node);  // kNoMaster if there are too many

  std::vector<Target> masters_;
  std::array<std::uint16_t, kSlots> master_index_;
};

}  // namespace weir::redis
