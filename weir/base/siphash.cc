#include "weir/base/siphash.h"

#include <algorithm>

namespace weir {
namespace {

constexpr std::size_t kLanes = 4;

bool lanes_agree(std::span<const std::string_view, kLanes> texts) noexcept {
  return std::all_of(texts.begin(), texts.end(),
                     [&](std::string_view text) { return text.size() / 8 == texts[0].size() / 8; });
}

#if defined(__x86_64__)
using Lanes [[gnu::vector_size(kLanes * sizeof(std::uint64_t))]] = std::uint64_t;

bool have_lanes() noexcept {
  return __builtin_cpu_supports("avx2") != 0;
}

// REQUIRES: have_lanes(), lanes_agree(texts).
[[gnu::target("avx2")]] void hash_lanes(HashKey key, std::span<const std::string_view, kLanes> texts,
                                        std::uint64_t* hashes) noexcept {
  siphash::State<Lanes> s(key);
  const std::size_t whole = texts[0].size() & ~std::size_t{7};
  for (std::size_t i = 0; i < whole; i += 8) {
    const Lanes words{siphash::load_word(texts[0].data() + i), siphash::load_word(texts[1].data() + i),
                      siphash::load_word(texts[2].data() + i), siphash::load_word(texts[3].data() + i)};
    s.absorb<1>(words);
  }
  const Lanes last{siphash::last_word(texts[0]), siphash::last_word(texts[1]), siphash::last_word(texts[2]),
                   siphash::last_word(texts[3])};
  s.absorb<1>(last);
  Lanes h;
  s.finish<3>(h);
  std::memcpy(hashes, &h, sizeof h);
}
#else
bool have_lanes() noexcept {
  return false;
}
void hash_lanes(HashKey, std::span<const std::string_view, kLanes>, std::uint64_t*) noexcept {}
#endif

}  // namespace

void siphash13(HashKey key, std::span<const std::string_view> texts, std::uint64_t* hashes) noexcept {
  std::size_t done = 0;
  if (have_lanes()) {
    for (; done + kLanes <= texts.size(); done += kLanes) {
      const auto four = texts.subspan(done).first<kLanes>();
      if (lanes_agree(four)) {
        hash_lanes(key, four, hashes + done);
      } else {
        for (std::size_t i = 0; i < kLanes; ++i) hashes[done + i] = siphash13(key, four[i]);
      }
    }
  }
  for (; done < texts.size(); ++done) hashes[done] = siphash13(key, texts[done]);
}

}  // namespace weir
