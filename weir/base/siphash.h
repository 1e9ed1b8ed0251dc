// SipHash (Aumasson and Bernstein): a keyed 64-bit hash. Without the key nobody can choose inputs that collide, so keys
// sent by strangers cannot be made to share a bucket or crowd a line of the table. 1-3 rounds are enough for a hash
// that is never shown; 2-4 is here because its published vectors prove the structure both share.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir {

// Secret: lives with the state and is never printed.
struct HashKey {
  std::uint64_t k0 = 0;
  std::uint64_t k1 = 0;

  friend constexpr bool operator==(const HashKey&, const HashKey&) = default;
};

namespace siphash {

// The algorithm reads little-endian words, whatever the machine.
inline std::uint64_t little_endian(std::uint64_t v) noexcept {
  return std::endian::native == std::endian::little ? v : __builtin_bswap64(v);
}

inline std::uint64_t load_word(const char* p) noexcept {
  std::uint64_t v;
  std::memcpy(&v, p, sizeof v);
  return little_endian(v);
}

// The size % 8 bytes after the last whole word. A text of eight bytes or more is read by one load that overlaps the
// word before it.
inline std::uint64_t load_rest(std::string_view text) noexcept {
  const std::size_t rest = text.size() % 8;
  if (rest == 0) return 0;
  if (text.size() >= 8) return load_word(text.data() + text.size() - 8) >> (8 * (8 - rest));
  std::uint64_t v = 0;
  std::memcpy(&v, text.data(), rest);
  return little_endian(v);
}

struct State {
  std::uint64_t v0, v1, v2, v3;

  template <int kRounds>
  void mix() noexcept {
    for (int i = 0; i < kRounds; ++i) {
      v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }
  }

  template <int kRounds>
  void absorb(std::uint64_t word) noexcept {
    v3 ^= word;
    mix<kRounds>();
    v0 ^= word;
  }
};

template <int kWordRounds, int kFinalRounds>
std::uint64_t hash(HashKey key, std::string_view text) noexcept {
  State s{key.k0 ^ 0x736f6d6570736575, key.k1 ^ 0x646f72616e646f6d, key.k0 ^ 0x6c7967656e657261,
          key.k1 ^ 0x7465646279746573};
  const std::size_t whole = text.size() & ~std::size_t{7};
  for (std::size_t i = 0; i < whole; i += 8) s.absorb<kWordRounds>(load_word(text.data() + i));
  s.absorb<kWordRounds>(std::uint64_t{text.size()} << 56 | load_rest(text));
  s.v2 ^= 0xff;
  s.mix<kFinalRounds>();
  return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

}  // namespace siphash

inline std::uint64_t siphash13(HashKey key, std::string_view text) noexcept {
  return siphash::hash<1, 3>(key, text);
}

}  // namespace weir
