// IP addresses as values. An address has one value and one canonical text: print() gives the form of RFC 5952 for any
// valid input, and an IPv4-mapped IPv6 address (::ffff:a.b.c.d, as dual-stack sockets report) *is* the IPv4 address, so
// that a client cannot get a second bucket with another spelling.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/result.h"

namespace weir {

class IpAddress {
 public:
  enum class Family : std::uint8_t { v4, v6 };
  using V4Bytes = std::array<std::uint8_t, 4>;
  using Bytes = std::array<std::uint8_t, 16>;

  // Accepts a dotted quad without leading zeros (which elsewhere mean octal), or any form of RFC 4291 §2.2. Refuses a
  // zone id ("%eth0"): it names an interface of one machine, not a client.
  static Result<IpAddress> parse(std::string_view text);

  // Bytes in network order, as in sockaddr_in and sockaddr_in6. A mapped address becomes the IPv4 address.
  static constexpr IpAddress v4(const V4Bytes& bytes) noexcept;
  static constexpr IpAddress v6(const Bytes& bytes) noexcept;

  constexpr Family family() const noexcept { return family_; }
  constexpr bool is_v4() const noexcept { return family_ == Family::v4; }
  // 32 or 128.
  constexpr int width() const noexcept { return is_v4() ? 32 : 128; }
  // Network order. An IPv4 address uses the first four bytes; the others are zero.
  constexpr const Bytes& bytes() const noexcept { return bytes_; }

  // RFC 5952: lower case, no leading zeros, the longest run of zero groups (the first of equals) as "::".
  std::string print() const;

  // All IPv4 addresses sort before all IPv6 addresses.
  friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) = default;
  friend constexpr bool operator==(const IpAddress&, const IpAddress&) = default;

 private:
  constexpr IpAddress(Family family, const Bytes& bytes) noexcept : family_(family), bytes_(bytes) {}
  friend class IpPrefix;

  Family family_;
  Bytes bytes_;
};

// The addresses that share their first bits: "10.20.0.0/16". Bits after the prefix are always zero.
class IpPrefix {
 public:
  // Accepts "address/bits", or an address, which is the prefix of its whole width. Bits set after the prefix are an
  // error that suggests the likely intent. ::ffff:10.0.0.0/104 is 10.0.0.0/8.
  static Result<IpPrefix> parse(std::string_view text);

  // Returns the prefix of that length that contains the address; clamps `bits` to the address's width.
  static constexpr IpPrefix of(const IpAddress& address, int bits) noexcept;

  // The lowest address of the prefix.
  constexpr const IpAddress& address() const noexcept { return address_; }
  constexpr int bits() const noexcept { return bits_; }
  // Never matches across families: 0.0.0.0/0 contains no IPv6 address, ::/0 no IPv4 address.
  constexpr bool contains(const IpAddress& address) const noexcept;
  constexpr bool contains(const IpPrefix& other) const noexcept;

  // Always with the bits: "10.20.0.0/16", "192.0.2.1/32".
  std::string print() const;

  // Sorts by family, then lowest address, then the wider prefix first: a prefix sorts after those that contain it.
  friend constexpr auto operator<=>(const IpPrefix&, const IpPrefix&) = default;
  friend constexpr bool operator==(const IpPrefix&, const IpPrefix&) = default;

 private:
  constexpr IpPrefix(const IpAddress& address, int bits) noexcept : address_(address), bits_(bits) {}

  IpAddress address_;
  int bits_;
};

constexpr IpAddress IpAddress::v4(const V4Bytes& bytes) noexcept {
  return IpAddress(Family::v4, Bytes{bytes[0], bytes[1], bytes[2], bytes[3]});
}

constexpr IpAddress IpAddress::v6(const Bytes& bytes) noexcept {
  bool mapped = bytes[10] == 0xff && bytes[11] == 0xff;
  for (std::size_t i = 0; i < 10; ++i) mapped = mapped && bytes[i] == 0;
  if (mapped) return v4({bytes[12], bytes[13], bytes[14], bytes[15]});
  return IpAddress(Family::v6, bytes);
}

constexpr IpPrefix IpPrefix::of(const IpAddress& address, int bits) noexcept {
  const int kept = bits < 0 ? 0 : bits > address.width() ? address.width() : bits;
  IpAddress::Bytes bytes = address.bytes();
  for (int i = 0; i < 16; ++i) {
    const int in_this_byte = kept - 8 * i;
    const unsigned mask = in_this_byte >= 8 ? 0xffu : in_this_byte <= 0 ? 0u : 0xffu << (8 - in_this_byte);
    bytes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(bytes[static_cast<std::size_t>(i)] & mask);
  }
  return IpPrefix(IpAddress(address.family(), bytes), kept);
}

constexpr bool IpPrefix::contains(const IpAddress& address) const noexcept {
  return address.family() == address_.family() && of(address, bits_).address_ == address_;
}

constexpr bool IpPrefix::contains(const IpPrefix& other) const noexcept {
  return other.bits_ >= bits_ && contains(other.address_);
}

}  // namespace weir
