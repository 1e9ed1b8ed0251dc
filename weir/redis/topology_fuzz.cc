// Any reply of a server, a sentinel or a cluster gives an error or a usable topology.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/redis/discovery.h"
#include "weir/redis/slots.h"
#include "weir/redis/targets.h"
#include "weir/wire/resp.h"

namespace {

using namespace weir::redis;
using weir::Target;

const Target kAsked{"192.0.2.1", 6379, {}};

void expect_usable(const Target& node) {
  WEIR_ASSERT(!node.host.empty() && node.host.size() <= weir::bounds::redis_host_bytes_max && node.port != 0);
  const auto again = parse_target(node.print(), kAsked);
  WEIR_ASSERT(again && *again == node);
}

void expect_usable(const SlotMap& map) {
  WEIR_ASSERT(map.masters().size() <= weir::bounds::redis_nodes_max);
  for (const Target& node : map.masters()) expect_usable(node);
  for (std::size_t slot = 0; slot < kSlots; slot += 7) (void)map.master(static_cast<Slot>(slot));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  WEIR_ASSERT(slot_of(bytes) < kSlots);
  if (const auto node = parse_target(bytes, kAsked)) expect_usable(*node);
  weir::resp::Reply reply;
  if (reply.parse(bytes) != weir::resp::Parsed::done) return 0;
  if (const auto map = SlotMap::read(reply, kAsked)) expect_usable(*map);
  if (const auto role = read_role(reply, kAsked); role && role->kind == Role::Kind::replica) {
    expect_usable(role->master);
  }
  if (const auto master = read_master_address(reply, kAsked)) expect_usable(*master);
  if (const auto master = read_switch(reply, "mymaster", kAsked)) expect_usable(*master);
  return 0;
}
