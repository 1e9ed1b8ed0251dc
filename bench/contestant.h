// The things compared. Each keeps a bucket per key and answers the same question with the same numbers.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/workload.h"

namespace weir::bench {

enum class Mode {
  clock_each,    // one request at a time, each with its own reading of the clock
  clock_per_16,  // the same, the clock read for every sixteenth
  batch_of_16,   // sixteen requests known at once
};
inline constexpr std::size_t kBatch = 16;

std::string name_of(Mode mode);

template <class K>
class Contestant {
 public:
  virtual ~Contestant() = default;
  virtual std::string name() const = 0;
  virtual bool has(Mode mode) const { return mode != Mode::batch_of_16; }
  // Puts in keys 0 to n-1, one token spent of each.
  virtual void fill(std::uint64_t keys, const Limit& limit) = 0;
  // Spends one token per key of the stream and returns how many were allowed. Any number of threads at once.
  virtual Count run(std::span<const K> stream, const Limit& limit, Mode mode) = 0;
  // Memory it knows of, 0 if it does not.
  virtual std::size_t bytes() const { return 0; }
};

// In the order of the report.
enum class Peer {
  weir,
  absl,         // keys of any length, as Weir takes them: std::string
  absl_inline,  // this and all below: keys of exactly 16 bytes inside the entry, the kindest case
  boost,
  std_one_mutex,
  tbb,
  naive,
};
// Those that can be had with keys of this kind.
template <class K>
std::vector<Peer> all_peers();

template <class K>
std::unique_ptr<Contestant<K>> make_contestant(Peer peer);

}  // namespace weir::bench
