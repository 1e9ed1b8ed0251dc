#include "weir/base/siphash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

namespace weir::siphash_test {
namespace {

// Key 00 01 .. 0f as two little-endian words.
constexpr HashKey kKey{0x0706050403020100, 0x0f0e0d0c0b0a0908};

std::string counting_bytes(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text.push_back(static_cast<char>(i));
  return text;
}

std::string little_endian_hex(std::uint64_t v) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (int i = 0; i < 8; ++i, v >>= 8) {
    out.push_back(digits[(v >> 4) & 15]);
    out.push_back(digits[v & 15]);
  }
  return out;
}

// A direct implementation of the paper, one byte at a time, to compare with the fast one.
std::uint64_t plain_siphash(int word_rounds, int final_rounds, HashKey key, std::string_view text) {
  std::array<std::uint64_t, 4> v{key.k0 ^ 0x736f6d6570736575, key.k1 ^ 0x646f72616e646f6d, key.k0 ^ 0x6c7967656e657261,
                                 key.k1 ^ 0x7465646279746573};
  const auto rotate = [](std::uint64_t x, int by) { return x << by | x >> (64 - by); };
  const auto round = [&] {
    v[0] += v[1], v[1] = rotate(v[1], 13), v[1] ^= v[0], v[0] = rotate(v[0], 32);
    v[2] += v[3], v[3] = rotate(v[3], 16), v[3] ^= v[2];
    v[0] += v[3], v[3] = rotate(v[3], 21), v[3] ^= v[0];
    v[2] += v[1], v[1] = rotate(v[1], 17), v[1] ^= v[2], v[2] = rotate(v[2], 32);
  };
  std::vector<unsigned char> padded(text.begin(), text.end());
  while (padded.size() % 8 != 7) padded.push_back(0);
  padded.push_back(static_cast<unsigned char>(text.size() & 0xff));
  for (std::size_t i = 0; i < padded.size(); i += 8) {
    std::uint64_t m = 0;
    for (std::size_t j = 0; j < 8; ++j) m |= std::uint64_t{padded[i + j]} << (8 * j);
    v[3] ^= m;
    for (int r = 0; r < word_rounds; ++r) round();
    v[0] ^= m;
  }
  v[2] ^= 0xff;
  for (int r = 0; r < final_rounds; ++r) round();
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

TEST(Siphash, MatchesThePublishedVectorsForTwoFour) {
  const std::array<std::string_view, 8> vectors{"310e0edd47db6f72", "fd67dc93c539f874", "5a4fa9d909806c0d",
                                                "2d7efbd796666785", "b7877127e09427cf", "8da699cd64557618",
                                                "cee3fe586e46c9cb", "37d1018bf50002ab"};
  for (std::size_t size = 0; size < vectors.size(); ++size) {
    EXPECT_EQ(little_endian_hex(siphash::hash<2, 4>(kKey, counting_bytes(size))), vectors[size]) << size;
  }
  // The worked example of the paper's appendix: fifteen bytes.
  EXPECT_EQ((siphash::hash<2, 4>(kKey, counting_bytes(15))), 0xa129ca6149be45e5);
}

TEST(Siphash, OneThreeMatchesTheReferenceAtEveryLength) {
  for (std::size_t size = 0; size < 300; ++size) {
    const std::string text = counting_bytes(size);
    EXPECT_EQ(siphash13(kKey, text), plain_siphash(1, 3, kKey, text)) << size;
    EXPECT_EQ((siphash::hash<2, 4>(kKey, text)), plain_siphash(2, 4, kKey, text)) << size;
  }
}

TEST(Siphash, BatchMatchesSingleHashes) {
  // Runs of equal lengths, of lengths with the same number of words, and of other lengths, so that groups of four match
  // and do not match.
  std::vector<std::string> all;
  for (std::size_t i = 0; i < 200; ++i)
    all.push_back(counting_bytes(i < 40 ? 16 : i < 100 ? i / 8 * 8 + i % 5 : i * 7 % 60));
  for (std::size_t count = 0; count <= all.size(); count = count < 40 ? count + 1 : count + 20) {
    for (std::size_t from = 0; from + count <= all.size(); from += 11) {
      std::vector<std::vector<char>> blocks;  // of exactly the text's size: AddressSanitizer sees a read beyond it
      std::vector<std::string_view> texts;
      for (std::size_t i = from; i < from + count; ++i) blocks.emplace_back(all[i].begin(), all[i].end());
      for (const std::vector<char>& block : blocks) texts.emplace_back(block.data(), block.size());
      std::vector<std::uint64_t> hashes(count + 1, 42);
      siphash13(kKey, texts, hashes.data());
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(hashes[i], siphash13(kKey, texts[i])) << count << " from " << from;
      ASSERT_EQ(hashes[count], 42u) << "wrote past the end";
    }
  }
}

TEST(Siphash, ReadsOnlyTheBytesOfTheTextAtAnyAlignment) {
  for (std::size_t offset = 0; offset < 8; ++offset) {
    for (std::size_t size = 0; size < 40; ++size) {
      // A heap block of exactly this size: AddressSanitizer detects a read before or after it.
      std::vector<char> block(offset + size, 'x');
      block.shrink_to_fit();
      std::generate(block.begin() + static_cast<std::ptrdiff_t>(offset), block.end(),
                    [n = 0]() mutable { return static_cast<char>(n++); });
      const std::string_view text(block.data() + offset, size);
      EXPECT_EQ(siphash13(kKey, text), siphash13(kKey, counting_bytes(size)));
    }
  }
}

TEST(Siphash, DependsOnEveryBitOfKeyAndText) {
  const std::string text = counting_bytes(13);
  std::set<std::uint64_t> seen{siphash13(kKey, text)};
  for (int bit = 0; bit < 64; ++bit) {
    seen.insert(siphash13({kKey.k0 ^ std::uint64_t{1} << bit, kKey.k1}, text));
    seen.insert(siphash13({kKey.k0, kKey.k1 ^ std::uint64_t{1} << bit}, text));
  }
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string other = text;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
    seen.insert(siphash13(kKey, other));
  }
  EXPECT_EQ(seen.size(), 1 + 128 + 8 * text.size());
}

TEST(Siphash, DistinguishesTextsThatDifferOnlyInTrailingZeros) {
  std::set<std::uint64_t> seen;
  for (std::size_t size = 0; size < 64; ++size) seen.insert(siphash13(kKey, std::string(size, '\0')));
  EXPECT_EQ(seen.size(), 64u);
}

}  // namespace
}  // namespace weir::siphash_test
