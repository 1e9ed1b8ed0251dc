// SipHash (Aumasson and Bernstein): a keyed 64-bit hash. Without the key an attacker cannot choose inputs that collide,
// so client keys cannot be made to share a bucket or overfill a table line. SipHash-1-3 is enough for a hash that is
// never exposed. SipHash-2-4 is for the tests: it has published vectors and uses the same code.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace weir {

// Secret: stored with the state and never printed.
struct HashKey {
  std::uint64_t k0 = 0;
  std::uint64_t k1 = 0;

  friend constexpr bool operator==(const HashKey&, const HashKey&) = default;
};

namespace siphash {

// Reads little-endian words on any machine.
inline std::uint64_t little_endian(std::uint64_t v) noexcept {
  return std::endian::native == std::endian::little ? v : __builtin_bswap64(v);
}

inline std::uint64_t load_word(const char* p) noexcept {
  std::uint64_t v;
  std::memcpy(&v, p, sizeof v);
  return little_endian(v);
}

// Returns the size % 8 bytes after the last whole word. A text of eight bytes or more is read by one load that overlaps
// the previous word.
inline std::uint64_t load_rest(std::string_view text) noexcept {
  const std::size_t rest = text.size() % 8;
  if (rest == 0) return 0;
  if (text.size() >= 8) return load_word(text.data() + text.size() - 8) >> (8 * (8 - rest));
  std::uint64_t v = 0;
  std::memcpy(&v, text.data(), rest);
  return little_endian(v);
}

template <class Word>
void rotate(Word& x, int by) noexcept {
  x = x << by | x >> (64 - by);
}

// `Word` is one word of a text, or a vector with one word of each of several texts (siphash.cc).
template <class Word>
struct State {
  Word v0, v1, v2, v3;

  explicit State(HashKey key) noexcept
      : v0(Word{} + (key.k0 ^ 0x736f6d6570736575)),
        v1(Word{} + (key.k1 ^ 0x646f72616e646f6d)),
        v2(Word{} + (key.k0 ^ 0x6c7967656e657261)),
        v3(Word{} + (key.k1 ^ 0x7465646279746573)) {}

  template <int kRounds>
  void mix() noexcept {
    for (int i = 0; i < kRounds; ++i) {
      v0 += v1, rotate(v1, 13), v1 ^= v0, rotate(v0, 32);
      v2 += v3, rotate(v3, 16), v3 ^= v2;
      v0 += v3, rotate(v3, 21), v3 ^= v0;
      v2 += v1, rotate(v1, 17), v1 ^= v2, rotate(v2, 32);
    }
  }

  template <int kRounds>
  void absorb(const Word& word) noexcept {
    v3 ^= word;
    mix<kRounds>();
    v0 ^= word;
  }

  template <int kRounds>
  void finish(Word& hash) noexcept {
    v2 ^= 0xff;
    mix<kRounds>();
    hash = v0 ^ v1 ^ v2 ^ v3;
  }
};

// Returns the last block: the bytes after the whole words, and the length.
inline std::uint64_t last_word(std::string_view text) noexcept {
  return std::uint64_t{text.size()} << 56 | load_rest(text);
}

template <int kWordRounds, int kFinalRounds>
std::uint64_t hash(HashKey key, std::string_view text) noexcept {
  State<std::uint64_t> s(key);
  const std::size_t whole = text.size() & ~std::size_t{7};
  for (std::size_t i = 0; i < whole; i += 8) s.absorb<kWordRounds>(load_word(text.data() + i));
  s.absorb<kWordRounds>(last_word(text));
  std::uint64_t h;
  s.finish<kFinalRounds>(h);
  return h;
}

}  // namespace siphash

inline std::uint64_t siphash13(HashKey key, std::string_view text) noexcept {
  return siphash::hash<1, 3>(key, text);
}

// Hashes many texts, four at a time if the processor has AVX2 and the four have the same number of whole words.
// REQUIRES: room for texts.size() hashes.
void siphash13(HashKey key, std::span<const std::string_view> texts, std::uint64_t* hashes) noexcept;

}  // namespace weir
