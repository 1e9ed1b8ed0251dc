#include "weir/identify/public_address.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace weir {
namespace {

struct V4Block {
  std::uint32_t start;
  int bits;
};

// IANA IPv4 Special-Purpose Address Registry: not globally reachable. Also multicast, which is never a server's
// address.
constexpr std::array kV4Blocks = std::to_array<V4Block>({
    {0x00000000, 8},   // 0.0.0.0/8        this network
    {0x0a000000, 8},   // 10.0.0.0/8       private
    {0x64400000, 10},  // 100.64.0.0/10    shared between providers and customers
    {0x7f000000, 8},   // 127.0.0.0/8      loopback
    {0xa9fe0000, 16},  // 169.254.0.0/16   link-local
    {0xac100000, 12},  // 172.16.0.0/12    private
    {0xc0000000, 24},  // 192.0.0.0/24     protocol assignments
    {0xc0000200, 24},  // 192.0.2.0/24     documentation
    {0xc0586300, 24},  // 192.88.99.0/24   6to4 relays, deprecated
    {0xc0a80000, 16},  // 192.168.0.0/16   private
    {0xc6120000, 15},  // 198.18.0.0/15    benchmarking
    {0xc6336400, 24},  // 198.51.100.0/24  documentation
    {0xcb007100, 24},  // 203.0.113.0/24   documentation
    {0xe0000000, 4},   // 224.0.0.0/4      multicast
    {0xf0000000, 4},   // 240.0.0.0/4      reserved, broadcast
});

bool is_public_v4(std::uint32_t address) noexcept {
  return std::ranges::none_of(kV4Blocks, [&](const V4Block& block) {
    return ((address ^ block.start) & (~std::uint32_t{0} << (32 - block.bits))) == 0;
  });
}

std::uint32_t word_at(const IpAddress::Bytes& bytes, std::size_t i) noexcept {
  return std::uint32_t{bytes[i]} << 24 | std::uint32_t{bytes[i + 1]} << 16 | std::uint32_t{bytes[i + 2]} << 8 |
         bytes[i + 3];
}

// IANA IPv6 Special-Purpose Address Registry. Only 2000::/3 is allocated as global unicast.
bool is_public_v6(const IpAddress::Bytes& bytes) noexcept {
  const std::uint32_t first = word_at(bytes, 0);
  const std::uint32_t second = word_at(bytes, 4);
  const bool nat64 = first == 0x0064ff9b && second == 0 && word_at(bytes, 8) == 0;  // 64:ff9b::/96
  if (nat64) return is_public_v4(word_at(bytes, 12));
  if (first >> 29 != 1) return false;  // ::1, 64:ff9b:1::, fc00::, fe80::, ff00::
  if (first >> 16 == 0x2002) return is_public_v4(first << 16 | second >> 16);  // 2002::/16, 6to4
  if (first == 0x20010db8) return false;                                       // 2001:db8::/32, documentation
  if (first >> 12 == 0x3fff0) return false;                                    // 3fff::/20, documentation
  // 2001::/23 is reserved for protocols. No backend uses its global parts: Teredo, ORCHID, anycast.
  return first >> 9 != 0x20010000 >> 9;
}

}  // namespace

bool is_public(const IpAddress& address) noexcept {
  return address.is_v4() ? is_public_v4(word_at(address.bytes(), 0)) : is_public_v6(address.bytes());
}

}  // namespace weir
