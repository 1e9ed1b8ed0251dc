// Who asks, in which order: streams of keys, drawn before anything is timed.
//
// The limits make every contestant give the same answers, so that none is faster for denying more. A token takes far
// longer to come back than a run lasts, so buckets stay alive and only spending counts; and each round raises the burst
// by the same tokens, so every round finds every bucket with at least that many left. Under uniform draws nobody runs
// out; under Zipf the busiest keys do.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "weir/core/limit.h"

namespace weir::bench {

// The main rows: a key as callers have it. It is hashed inside the measurement.
using Text = std::array<char, 16>;
// The secondary rows: a key that is a good hash already.
using Mixed = std::uint64_t;

enum class Draw { uniform, zipf };

inline constexpr double kZipfExponent = 0.99;
inline constexpr std::size_t kStreamLength = std::size_t{4} << 20;

std::string name_of(Draw draw);
// "1k", "1M", "50M".
std::string name_of_count(std::uint64_t count);

template <class K>
K key_of(std::uint64_t id) noexcept;

// kStreamLength draws of `keys` keys. A key's rank says nothing about where it lies: ranks are scattered over the ids.
template <class K>
std::vector<K> make_stream(Draw draw, std::uint64_t keys);

class Allowance {
 public:
  // For rounds of `draws` over `keys` keys.
  Allowance(std::uint64_t keys, std::size_t draws);
  Limit in_round(Count round) const;

 private:
  Duration interval_;
  Count tokens_;
};

}  // namespace weir::bench
