// Peers are treated as kindly as they can be: all but one keep exactly 16 bytes inside their entries and never
// allocate, absl's hash is used for all, and the shard is picked by one multiplication. Weir hashes under a secret key.
#include <absl/container/flat_hash_map.h>
#include <absl/hash/hash.h>
#include <absl/strings/string_view.h>
#include <oneapi/tbb/concurrent_hash_map.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#ifdef WEIR_BENCH_BOOST
#include <boost/unordered/unordered_flat_map.hpp>
#endif

#include "bench/contestant.h"
#include "bench/machine.h"
#include "weir/algorithm/gcra.h"
#include "weir/base/assert.h"
#include "weir/base/clock.h"
#include "weir/store/memory/table.h"

namespace weir::bench {
namespace {

struct Hasher {
  using is_avalanching = void;
  std::size_t operator()(const Text& text) const noexcept {
    return absl::Hash<std::string_view>{}(std::string_view(text.data(), text.size()));
  }
  std::size_t operator()(Mixed mixed) const noexcept { return mixed; }
};

struct TbbHasher {
  template <class K>
  static std::size_t hash(const K& key) noexcept {
    return Hasher{}(key);
  }
  template <class K>
  static bool equal(const K& a, const K& b) noexcept {
    return a == b;
  }
};

inline constexpr std::size_t kShards = 256;

std::size_t shard_of(const Text& text) noexcept {
  Mixed tail;
  std::memcpy(&tail, text.data() + sizeof tail, sizeof tail);
  return (tail ^ tail >> 32) * 0x9e3779b97f4a7c15 >> 56;
}
std::size_t shard_of(Mixed mixed) noexcept {
  return mixed * 0x9e3779b97f4a7c15 >> 56;
}

// What a bucket is to everyone but the naive.
struct Tat {
  Time tat{};

  Decision spend(const Limit& limit, Time now) noexcept {
    const Step step = gcra::spend(limit, tat, 1, now);
    if (step.decision.allowed) tat = step.tat;
    return step.decision;
  }
};

// What one writes first: a number of tokens and the time it was true. Those used, not those left, so that a larger
// burst is felt at once.
struct Tokens {
  double used = 0;
  Time last{};

  Decision spend(const Limit& limit, Time now) noexcept {
    const auto burst = static_cast<double>(limit.burst());
    const auto interval = static_cast<double>(limit.interval().count());
    used = std::max(0.0, used - static_cast<double>((now - last).count()) / interval);
    last = now;
    const bool allowed = used + 1 <= burst;
    if (allowed) used += 1;
    const auto wait = [&](double tokens) { return Duration{static_cast<std::int64_t>(tokens * interval)}; };
    return {allowed, limit.burst(), static_cast<Count>(burst - used),
            allowed ? Duration::zero() : wait(used + 1 - burst), wait(used)};
  }
};

template <class Map, std::size_t kCount>
class Sharded {
 public:
  using Key = typename Map::key_type;

  Decision spend(const Key& key, const Limit& limit, Time now) {
    Shard& shard = shards_[kCount == 1 ? 0 : shard_of(key)];
    const std::lock_guard lock(shard.lock);
    return shard.map.try_emplace(key).first->second.spend(limit, now);
  }

 private:
  struct alignas(64) Shard {
    std::mutex lock;
    Map map;
  };
  std::array<Shard, kCount> shards_;
};

// Keys of any length.
class ShardedStrings {
 public:
  using Key = Text;

  Decision spend(const Text& text, const Limit& limit, Time now) {
    Shard& shard = shards_[shard_of(text)];
    const absl::string_view key(text.data(), text.size());
    const std::lock_guard lock(shard.lock);
    const auto found = shard.map.find(key);
    if (found != shard.map.end()) return found->second.spend(limit, now);
    return shard.map.try_emplace(std::string(key)).first->second.spend(limit, now);
  }

 private:
  struct alignas(64) Shard {
    std::mutex lock;
    absl::flat_hash_map<std::string, Tat> map;
  };
  std::array<Shard, kShards> shards_;
};

template <class K>
class Tbb {
 public:
  using Key = K;

  Decision spend(const K& key, const Limit& limit, Time now) {
    typename Map::accessor entry;
    map_.insert(entry, key);
    return entry->second.spend(limit, now);
  }

 private:
  using Map = tbb::concurrent_hash_map<K, Tat, TbbHasher>;
  Map map_;
};

template <class Store, class K>
Count run_one_by_one(Store& store, std::span<const K> stream, const Limit& limit, std::size_t readings_apart) {
  const BootClock clock;
  Count allowed = 0;
  for (std::size_t at = 0; at < stream.size();) {
    const Time now = clock.time();
    const std::size_t end = std::min(at + readings_apart, stream.size());
    for (; at < end; ++at) {
      const Decision decision = store.spend(stream[at], limit, now);
      keep(decision);
      allowed += decision.allowed ? 1 : 0;
    }
  }
  return allowed;
}

template <class Store>
class PeerContestant final : public Contestant<typename Store::Key> {
 public:
  using K = typename Store::Key;

  explicit PeerContestant(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  void fill(std::uint64_t keys, const Limit& limit) override {
    const BootClock clock;
    for (std::uint64_t id = 0; id < keys; ++id) (void)store_.spend(key_of<K>(id), limit, clock.time());
  }
  Count run(std::span<const K> stream, const Limit& limit, Mode mode) override {
    return mode == Mode::clock_each ? run_one_by_one(store_, stream, limit, 1)
                                    : run_one_by_one(store_, stream, limit, kBatch);
  }

 private:
  std::string name_;
  Store store_;
};

std::pair<std::uint64_t, Key> ask(const Table& table, const Text& text) noexcept {
  const Key key{std::string_view(text.data(), text.size())};
  return {table.hash(key), key};
}
std::pair<std::uint64_t, Key> ask(const Table&, Mixed mixed) noexcept {
  return {mixed, Key{}};
}

template <class K>
class Weir final : public Contestant<K> {
 public:
  Weir() : table_(std::move(Table::create(Table::Options{}).value())) {}

  std::string name() const override { return "Weir"; }
  bool has(Mode) const override { return true; }

  void fill(std::uint64_t keys, const Limit& limit) override {
    const BootClock clock;
    std::atomic<bool> filled = false;
    std::thread maintaining([&] { maintain_until(*table_, filled); });
    for (std::uint64_t id = 0; id < keys; ++id) (void)spend(key_of<K>(id), limit, clock.time());
    filled = true;
    maintaining.join();
  }

  Count run(std::span<const K> stream, const Limit& limit, Mode mode) override {
    switch (mode) {
      case Mode::clock_each:
        return run_clock_each(stream, limit);
      case Mode::clock_per_16:
        return run_one_by_one(*this, stream, limit, kBatch);
      case Mode::batch_of_16:
        return run_batches(stream, limit);
    }
    return 0;
  }

  std::size_t bytes() const override { return table_->stats().bytes; }

  Decision spend(const K& k, const Limit& limit, Time now) noexcept {
    const auto [h, key] = ask(*table_, k);
    return table_->spend(h, key, limit, 1, now);
  }

 private:
  // As the library's Limiter does: the line is on its way while the clock is read.
  Count run_clock_each(std::span<const K> stream, const Limit& limit) {
    const BootClock clock;
    Count allowed = 0;
    for (const K& k : stream) {
      const auto [h, key] = ask(*table_, k);
      table_->prefetch_line(h);
      const Decision decision = table_->spend(h, key, limit, 1, clock.time());
      keep(decision);
      allowed += decision.allowed ? 1 : 0;
    }
    return allowed;
  }

  Count run_batches(std::span<const K> stream, const Limit& limit) {
    const BootClock clock;
    Count allowed = 0;
    std::array<Decision, kBatch> decisions;
    for (std::size_t at = 0; at + kBatch <= stream.size(); at += kBatch) {
      const Time now = clock.time();
      spend_batch(stream.subspan(at).template first<kBatch>(), limit, now, decisions);
      for (const Decision& decision : decisions) {
        keep(decision);
        allowed += decision.allowed ? 1 : 0;
      }
    }
    return allowed;
  }

  void spend_batch(std::span<const K, kBatch> keys, const Limit& limit, Time now,
                   std::array<Decision, kBatch>& decisions) noexcept {
    if constexpr (std::is_same_v<K, Text>) {
      std::array<Table::Spend, kBatch> asked;
      for (std::size_t i = 0; i < kBatch; ++i) asked[i] = {std::string_view(keys[i].data(), keys[i].size()), &limit, 1};
      table_->hash(asked);
      table_->spend_batch(asked, now, decisions.data());
    } else {
      for (const K h : keys) table_->prefetch_group(h);
      for (const K h : keys) table_->prefetch_line(h);
      for (std::size_t i = 0; i < kBatch; ++i) decisions[i] = table_->spend(keys[i], Key{}, limit, 1, now);
    }
  }

  std::unique_ptr<Table> table_;
};

}  // namespace

std::string name_of(Mode mode) {
  switch (mode) {
    case Mode::clock_each:
      return "clock each";
    case Mode::clock_per_16:
      return "clock per 16";
    case Mode::batch_of_16:
      return "batch of 16";
  }
  return "";
}

template <class K>
std::vector<Peer> all_peers() {
  std::vector<Peer> peers = {Peer::weir};
  if (std::is_same_v<K, Text>) peers.push_back(Peer::absl);
  peers.push_back(Peer::absl_inline);
#ifdef WEIR_BENCH_BOOST
  peers.push_back(Peer::boost);
#endif
  peers.insert(peers.end(), {Peer::std_one_mutex, Peer::tbb, Peer::naive});
  return peers;
}
template std::vector<Peer> all_peers<Text>();
template std::vector<Peer> all_peers<Mixed>();

template <class K>
std::unique_ptr<Contestant<K>> make_contestant(Peer peer) {
  using Absl = Sharded<absl::flat_hash_map<K, Tat, Hasher>, kShards>;
  using OneMutex = Sharded<std::unordered_map<K, Tat, Hasher>, 1>;
  using Naive = Sharded<std::unordered_map<K, Tokens, Hasher>, kShards>;
  switch (peer) {
    case Peer::weir:
      return std::make_unique<Weir<K>>();
    case Peer::absl:
      if constexpr (std::is_same_v<K, Text>)
        return std::make_unique<PeerContestant<ShardedStrings>>("absl::flat_hash_map of std::string, 256 mutexes");
      break;
    case Peer::absl_inline:
      return std::make_unique<PeerContestant<Absl>>("absl::flat_hash_map, 256 mutexes");
    case Peer::boost:
#ifdef WEIR_BENCH_BOOST
      return std::make_unique<PeerContestant<Sharded<boost::unordered::unordered_flat_map<K, Tat, Hasher>, kShards>>>(
          "boost::unordered_flat_map, 256 mutexes");
#else
      break;
#endif
    case Peer::std_one_mutex:
      return std::make_unique<PeerContestant<OneMutex>>("std::unordered_map, one mutex");
    case Peer::tbb:
      return std::make_unique<PeerContestant<Tbb<K>>>("tbb::concurrent_hash_map");
    case Peer::naive:
      return std::make_unique<PeerContestant<Naive>>("naive token bucket, std::unordered_map, 256 mutexes");
  }
  WEIR_ASSERT(false);
}

template std::unique_ptr<Contestant<Text>> make_contestant<Text>(Peer);
template std::unique_ptr<Contestant<Mixed>> make_contestant<Mixed>(Peer);

}  // namespace weir::bench
