// Decisions per second of Weir and its peers, side by side.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/contestant.h"

namespace weir::bench {

struct Effort {
  std::size_t draws;  // per thread and round
  int rounds;         // the best counts
};

struct Row {
  std::uint64_t keys;
  bool text;  // 16-byte texts that are hashed; else hashes
  Draw draw;
  int threads;
  Peer peer;
  Mode mode;
  double ns;     // per decision and thread
  double allow;  // share of decisions that allowed, in the best round
};

struct Comparison {
  std::vector<Row> rows;
  double floor_ns = 0;  // one dependent random line in as many bytes as Weir's table has
};

// Up to this many keys everyone is filled at once and rounds are interleaved; beyond, one after the other, each in a
// process of its own.
inline constexpr std::uint64_t kInterleavedMax = 10'000'000;

// K is Text or Mixed.
template <class K>
Comparison compare(std::uint64_t keys, const std::vector<Peer>& peers, const Effort& effort);

struct HotRow {
  Peer peer;
  bool allowed;
  int threads;
  double ns;
  double allow;
};

// Everyone asks for one key.
std::vector<HotRow> compare_on_one_key(const Effort& effort);

struct Costs {
  double clock_ns;
  double siphash_ns;          // of 16 bytes, many at once
  double siphash_latency_ns;  // each waits for the one before
};
Costs measure_costs();

}  // namespace weir::bench
