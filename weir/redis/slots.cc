#include "weir/redis/slots.h"

#include <algorithm>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"

namespace weir::redis {
namespace {

// CRC-16/XMODEM, as in the Redis Cluster specification: polynomial 0x1021, initial value 0.
constexpr std::array<std::uint16_t, 256> kCrc16 = [] {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000u) != 0 ? crc << 1 ^ 0x1021u : crc << 1;
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}();

std::uint16_t crc16(std::string_view bytes) noexcept {
  unsigned crc = 0;
  for (const char c : bytes) crc = (crc << 8 & 0xffffu) ^ kCrc16[(crc >> 8 ^ static_cast<unsigned char>(c)) & 0xffu];
  return static_cast<std::uint16_t>(crc);
}

std::string_view hashed_part(std::string_view key) noexcept {
  const std::size_t open = key.find('{');
  if (open == std::string_view::npos) return key;
  const std::size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

Error unexpected_slots(std::string_view what) {
  return Error{Fault::invalid, "CLUSTER SLOTS answered " + std::string(what)};
}

struct Range {
  Slot first = 0;
  Slot last = 0;
  Target master;
};

// [first, last, [host, port, …], replicas…]
Result<Range> read_range(Values range, const Target& asked) {
  if (!is_aggregate(range.front())) return unexpected_slots("a range that is not an array");
  Elements elements(range);
  const Values first = elements.next();
  const Values last = elements.next();
  const Values master = elements.next();
  const auto slot = [](Values value) {
    return !value.empty() && value.front().type == resp::Type::integer && value.front().integer >= 0 &&
           value.front().integer < static_cast<std::int64_t>(kSlots);
  };
  if (!slot(first) || !slot(last) || first.front().integer > last.front().integer) {
    return unexpected_slots("a range that is not within 0 to 16383");
  }
  if (master.empty() || !is_aggregate(master.front())) return unexpected_slots("a range without a master");
  Elements fields(master);
  const Values host = fields.next();
  const Values port = fields.next();
  const bool shaped = !port.empty() && port.front().type == resp::Type::integer &&
                      (is_text(host.front()) || host.front().type == resp::Type::null);
  if (!shaped) return unexpected_slots("a server without host and port");
  auto node = make_target(host.front().text, port.front().integer, asked);
  if (!node) return node.error();
  return Range{static_cast<Slot>(first.front().integer), static_cast<Slot>(last.front().integer), std::move(*node)};
}

}  // namespace

Slot slot_of(std::string_view key) noexcept {
  return static_cast<Slot>(crc16(hashed_part(key)) % kSlots);
}

Result<SlotMap> SlotMap::read(const resp::Reply& reply, const Target& asked) {
  if (reply.root().type == resp::Type::error) return unexpected_slots(reply.root().text);
  if (!is_aggregate(reply.root())) return unexpected_slots("with something other than an array");
  SlotMap map;
  Elements ranges(reply.values());
  for (Values value = ranges.next(); !value.empty(); value = ranges.next()) {
    auto range = read_range(value, asked);
    if (!range) return range.error();
    const std::uint16_t master = map.add(range->master);
    if (master == kNoMaster)
      return unexpected_slots("more than " + std::to_string(bounds::redis_nodes_max) + " masters");
    for (std::size_t slot = range->first; slot <= range->last; ++slot) map.master_index_[slot] = master;
  }
  return map;
}

std::size_t SlotMap::index(Slot slot) const noexcept {
  WEIR_ASSERT(slot < kSlots);
  return master_index_[slot];
}

const Target* SlotMap::master(Slot slot) const noexcept {
  return index(slot) == kNoMaster ? nullptr : &masters_[index(slot)];
}

bool SlotMap::is_whole() const noexcept {
  return std::ranges::find(master_index_, kNoMaster) == master_index_.end();
}

bool SlotMap::moved(Slot slot, const Target& node) {
  WEIR_ASSERT(slot < kSlots);
  const std::uint16_t master = add(node);
  if (master == kNoMaster) return false;
  master_index_[slot] = master;
  return true;
}

std::uint16_t SlotMap::add(const Target& node) {
  const auto found = std::ranges::find(masters_, node);
  if (found == masters_.end() && masters_.size() == bounds::redis_nodes_max) return kNoMaster;
  const auto at = static_cast<std::uint16_t>(found - masters_.begin());
  if (found == masters_.end()) masters_.push_back(node);
  return at;
}

}  // namespace weir::redis
