#include "bench/decisions.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <cstring>
#include <iterator>
#include <thread>

#include "bench/machine.h"
#include "weir/base/assert.h"
#include "weir/base/clock.h"
#include "weir/base/siphash.h"

namespace weir::bench {
namespace {

struct Score {
  double ns = 1e9;
  double allow = 0;

  void take(const Score& other) {
    if (other.ns < ns) *this = other;
  }
};

// One round: `threads` threads, each with its own part of the stream. One thread is timed by its CPU time, so that
// others on the machine count less; several by the wall, because some of them wait.
template <class K>
Score run_round(Contestant<K>& contestant, std::span<const K> stream, std::size_t from, std::size_t draws, int threads,
                const Limit& limit, Mode mode) {
  struct Lap {
    Duration start;
    Duration end;
    Count allowed;
  };
  std::vector<Lap> laps(static_cast<std::size_t>(threads));
  std::barrier ready(threads);
  const auto run = [&](std::size_t i) {
    const std::size_t at = (from + i * draws) % (stream.size() - draws + 1);
    ready.arrive_and_wait();
    laps[i].start = threads == 1 ? thread_cpu_time() : wall_time();
    laps[i].allowed = contestant.run(stream.subspan(at, draws), limit, mode);
    laps[i].end = threads == 1 ? thread_cpu_time() : wall_time();
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < laps.size(); ++i) others.emplace_back(run, i);
  run(0);
  for (std::thread& other : others) other.join();

  Lap all = laps[0];
  for (std::size_t i = 1; i < laps.size(); ++i) {
    all.start = std::min(all.start, laps[i].start);
    all.end = std::max(all.end, laps[i].end);
    all.allowed += laps[i].allowed;
  }
  const auto each = static_cast<double>(draws);
  return {static_cast<double>((all.end - all.start).count()) / each, static_cast<double>(all.allowed) / each / threads};
}

struct Cell {
  Draw draw;
  int threads;
  Mode mode;
};

constexpr int kThreadsMax = 2;
constexpr Mode kModes[] = {Mode::clock_each, Mode::clock_per_16, Mode::batch_of_16};

template <class K>
class Comparing {
 public:
  Comparing(std::uint64_t keys, const Effort& effort)
      : keys_(keys), effort_(effort), allowance_(keys, effort.draws * kThreadsMax) {}

  // All at once, a round of each in turn.
  std::vector<Score> interleaved(const std::vector<Peer>& peers) {
    const Bystander bystander;
    std::vector<std::unique_ptr<Contestant<K>>> contestants;
    std::vector<Count> rounds(peers.size(), 0);
    for (const Peer peer : peers) contestants.push_back(filled(peer));
    std::vector<Score> scores;
    for (const Draw draw : {Draw::zipf, Draw::uniform}) {
      const std::vector<K> stream = make_stream<K>(draw, keys_);
      for (int threads = 1; threads <= kThreadsMax; ++threads) {
        std::vector<std::array<Score, std::size(kModes)>> best(peers.size());
        // The mode outside the contestants: between two rounds of one contestant the others clear the caches.
        for (int rep = 0; rep < effort_.rounds; ++rep) {
          for (std::size_t m = 0; m < std::size(kModes); ++m) {
            for (std::size_t i = 0; i < peers.size(); ++i) {
              if (!contestants[i]->has(kModes[m])) continue;
              best[i][m].take(round(*contestants[i], stream, {draw, threads, kModes[m]}, rounds[i]++, rep));
            }
          }
        }
        for (std::size_t i = 0; i < peers.size(); ++i) {
          for (std::size_t m = 0; m < std::size(kModes); ++m) {
            if (contestants[i]->has(kModes[m])) scores.push_back(best[i][m]);
          }
        }
      }
    }
    bytes_ = contestants[0]->bytes();
    return scores;
  }

  std::size_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<Contestant<K>> filled(Peer peer) {
    auto contestant = make_contestant<K>(peer);
    progress(name_of_count(keys_) + " keys: filling " + contestant->name());
    contestant->fill(keys_, allowance_.in_round(0));
    return contestant;
  }

  Score round(Contestant<K>& contestant, const std::vector<K>& stream, const Cell& cell, Count number, int rep) {
    progress(name_of_count(keys_) + " keys, " + name_of(cell.draw) + ", " + std::to_string(cell.threads) +
             " threads, round " + std::to_string(rep + 1) + ": " + contestant.name());
    // Another part of the stream for every mode and round, the same for every contestant.
    const std::size_t part = static_cast<std::size_t>(rep) * std::size(kModes) + static_cast<std::size_t>(cell.mode);
    return run_round<K>(contestant, stream, part * effort_.draws * kThreadsMax, effort_.draws, cell.threads,
                        allowance_.in_round(number), cell.mode);
  }

  std::uint64_t keys_;
  Effort effort_;
  Allowance allowance_;
  std::size_t bytes_ = 0;
};

// The scores of interleaved() in the same order, with what they belong to.
std::vector<Row> label(std::uint64_t keys, bool text, const std::vector<Peer>& peers,
                       const std::vector<Score>& scores) {
  std::vector<Row> rows;
  for (const Draw draw : {Draw::zipf, Draw::uniform}) {
    for (int threads = 1; threads <= kThreadsMax; ++threads) {
      for (const Peer peer : peers) {
        for (const Mode mode : kModes) {
          if (mode == Mode::batch_of_16 && peer != Peer::weir) continue;
          if (rows.size() == scores.size()) return rows;
          const Score& score = scores[rows.size()];
          rows.push_back({keys, text, draw, threads, peer, mode, score.ns, score.allow});
        }
      }
    }
  }
  return rows;
}

}  // namespace

template <class K>
Comparison compare(std::uint64_t keys, const std::vector<Peer>& peers, const Effort& effort) {
  constexpr bool kText = std::is_same_v<K, Text>;
  Comparison comparison;
  std::size_t bytes = 0;
  if (keys <= kInterleavedMax) {
    Comparing<K> comparing(keys, effort);
    comparison.rows = label(keys, kText, peers, comparing.interleaved(peers));
    bytes = comparing.bytes();
  } else {
    for (const Peer peer : peers) {
      const std::vector<double> numbers = run_apart([&] {
        Comparing<K> comparing(keys, {effort.draws, std::min(effort.rounds, 3)});
        std::vector<double> flat = {0};
        for (const Score& score : comparing.interleaved({peer})) flat.insert(flat.end(), {score.ns, score.allow});
        flat[0] = static_cast<double>(comparing.bytes());
        return flat;
      });
      std::vector<Score> scores;
      for (std::size_t i = 1; i + 1 < numbers.size(); i += 2) scores.push_back({numbers[i], numbers[i + 1]});
      if (peer == Peer::weir && !numbers.empty()) bytes = static_cast<std::size_t>(numbers[0]);
      const std::vector<Row> rows = label(keys, kText, {peer}, scores);
      comparison.rows.insert(comparison.rows.end(), rows.begin(), rows.end());
    }
  }
  progress(name_of_count(keys) + " keys: one dependent random line");
  if (bytes != 0) comparison.floor_ns = dependent_line_ns(bytes);
  return comparison;
}

template Comparison compare<Text>(std::uint64_t, const std::vector<Peer>&, const Effort&);
template Comparison compare<Mixed>(std::uint64_t, const std::vector<Peer>&, const Effort&);

std::vector<HotRow> compare_on_one_key(const Effort& effort) {
  // A nanosecond per token: nobody can spend faster.
  constexpr Limit kAmple = Limit::per_second(1'000'000'000);
  constexpr Limit kScarce = Limit::per_day(1);
  const std::vector<Text> stream(effort.draws * kThreadsMax, key_of<Text>(0));
  const Bystander bystander;
  std::vector<HotRow> rows;
  for (const bool allowed : {true, false}) {
    std::vector<std::unique_ptr<Contestant<Text>>> contestants;
    for (const Peer peer : all_peers<Text>()) contestants.push_back(make_contestant<Text>(peer));
    for (auto& contestant : contestants) contestant->fill(1, allowed ? kAmple : kScarce);
    for (int threads = 1; threads <= kThreadsMax; ++threads) {
      std::vector<Score> scores(contestants.size());
      for (int rep = 0; rep < effort.rounds; ++rep) {
        for (std::size_t i = 0; i < contestants.size(); ++i) {
          progress("one key: " + contestants[i]->name());
          scores[i].take(run_round<Text>(*contestants[i], stream, 0, effort.draws, threads, allowed ? kAmple : kScarce,
                                         Mode::clock_each));
        }
      }
      for (std::size_t i = 0; i < scores.size(); ++i)
        rows.push_back({all_peers<Text>()[i], allowed, threads, scores[i].ns, scores[i].allow});
    }
  }
  return rows;
}

Costs measure_costs() {
  progress("clock and hash");
  constexpr std::size_t kTimes = 1'000'000;
  constexpr int kReps = 5;
  const auto best_of = [](auto&& work) {
    double best = 1e9;
    for (int rep = 0; rep < kReps; ++rep) {
      const Duration start = thread_cpu_time();
      work();
      best = std::min(best, static_cast<double>((thread_cpu_time() - start).count()) / kTimes);
    }
    return best;
  };
  const BootClock clock;
  const HashKey seed{1, 2};
  const std::vector<Text> stream = make_stream<Text>(Draw::uniform, 1'000'000);
  Costs costs{};
  costs.clock_ns = best_of([&] {
    for (std::size_t i = 0; i < kTimes; ++i) {
      const Time now = clock.time();
      asm volatile("" : : "r"(now.time_since_epoch().count()));
    }
  });
  costs.siphash_ns = best_of([&] {
    for (std::size_t i = 0; i < kTimes; ++i) {
      const std::uint64_t h = siphash13(seed, std::string_view(stream[i].data(), stream[i].size()));
      asm volatile("" : : "r"(h));
    }
  });
  costs.siphash_latency_ns = best_of([&] {
    Text text = stream[0];
    for (std::size_t i = 0; i < kTimes; ++i) {
      const std::uint64_t h = siphash13(seed, std::string_view(text.data(), text.size()));
      std::memcpy(text.data(), &h, sizeof h);
    }
    asm volatile("" : : "r"(text.data()) : "memory");
  });
  return costs;
}

}  // namespace weir::bench
