#include "bench/growth.h"

#include <sys/mman.h>

#include <array>
#include <bit>
#include <thread>

#include "bench/machine.h"
#include "bench/workload.h"
#include "weir/base/assert.h"
#include "weir/base/clock.h"
#include "weir/store/memory/region.h"

namespace weir::bench {
namespace {

// Counts durations to within 1/16: 16 buckets for every power of two.
class Histogram {
 public:
  void add(std::uint64_t ns) {
    ++counts_[place(ns)];
    ++total_;
    max_ = std::max(max_, ns);
    if (ns > 1'000'000) ++over_1ms_;
  }
  // An upper bound of the duration that a share `q` of all do not exceed.
  double quantile(double q) const {
    auto left = static_cast<std::uint64_t>(static_cast<double>(total_) * (1 - q));
    for (std::size_t at = counts_.size(); at-- > 0;) {
      if (counts_[at] > left) return static_cast<double>(std::min(upper(at), max_));
      left -= counts_[at];
    }
    return 0;
  }
  std::uint64_t max() const { return max_; }
  std::uint64_t over_1ms() const { return over_1ms_; }

 private:
  static std::size_t place(std::uint64_t ns) {
    if (ns < 16) return static_cast<std::size_t>(ns);
    const auto power = static_cast<unsigned>(std::bit_width(ns)) - 5;
    return power * 16 + static_cast<std::size_t>(ns >> power);
  }
  static std::uint64_t upper(std::size_t at) {
    if (at < 32) return at;
    const std::size_t power = at / 16 - 1;
    return ((at % 16 + 17) << power) - 1;
  }

  std::array<std::uint64_t, 1024> counts_{};
  std::uint64_t total_ = 0;
  std::uint64_t max_ = 0;
  std::uint64_t over_1ms_ = 0;
};

// What maintain() does for a growing table and nothing else: makes `bytes` ready, spread evenly over `total`.
void make_ready(std::size_t bytes, Duration total) {
  constexpr std::size_t kStep = std::size_t{4} << 20;
  auto region = Region::anonymous(bytes);
  WEIR_ASSERT(region);
  const std::size_t steps = region->bytes_max() / kStep;
  for (std::size_t i = 0; i < steps; ++i) {
    region->populate(i * kStep, (i + 1) * kStep, true);
    std::this_thread::sleep_for(total / static_cast<std::int64_t>(steps));
  }
}

// The control: touches fresh pages, each timed alone, for as long as the growth took; returns the longest touch in ns.
// As long, because what disturbs a thread of a shared machine comes by the second: half the time sees half of it. And
// beside as much memory made ready by another thread: that alone disturbs a thread that touches none of it.
std::uint64_t touch_pages(Duration total, std::size_t ready_bytes) {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  std::thread neighbour([&] {
    if (ready_bytes != 0) make_ready(ready_bytes, total);
  });
  Duration longest{};
  for (const Duration start = thread_cpu_time(); thread_cpu_time() - start < total;) {
    void* const raw = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    WEIR_ASSERT(raw != MAP_FAILED);
    auto* const memory = static_cast<volatile char*>(raw);
    Duration before = thread_cpu_time();
    for (std::size_t at = 0; at < kBytes && before - start < total; at += kPage) {
      memory[at] = 1;
      const Duration after = thread_cpu_time();
      longest = std::max(longest, after - before);
      before = after;
    }
    munmap(raw, kBytes);
  }
  neighbour.join();
  return static_cast<std::uint64_t>(longest.count());
}

std::vector<double> grow(std::uint64_t keys, bool maintained) {
  constexpr Limit kLimit = Limit::per_day(1);
  const auto table = Table::create({.buckets_max = std::max<std::uint64_t>(keys, 50'000'000)});
  if (!table) return {};
  std::atomic<bool> done = false;
  std::thread maintaining([&] {
    if (maintained) maintain_until(**table, done);
  });
  Histogram histogram;
  const BootClock clock;
  const Duration start = thread_cpu_time();
  Duration before = start;
  for (std::uint64_t id = 0; id < keys; ++id) {
    const Text text = key_of<Text>(id);
    const Key key{std::string_view(text.data(), text.size())};
    (void)(*table)->spend((*table)->hash(key), key, kLimit, 1, clock.time());
    const Duration after = thread_cpu_time();
    histogram.add(static_cast<std::uint64_t>((after - before).count()));
    before = after;
  }
  done = true;
  maintaining.join();
  const std::uint64_t control = touch_pages(before - start, maintained ? (*table)->stats().bytes : 0);
  return {histogram.quantile(0.999999) / 1e3, static_cast<double>(histogram.max()) / 1e3,
          static_cast<double>(histogram.over_1ms()), static_cast<double>(control) / 1e3,
          static_cast<double>((before - start).count()) / static_cast<double>(keys)};
}

}  // namespace

Growth measure_growth(std::uint64_t keys, bool maintained) {
  progress("growing to " + name_of_count(keys) + " buckets" + (maintained ? ", maintained" : ", alone"));
  const std::vector<double> numbers = run_apart([&] { return grow(keys, maintained); });
  if (numbers.size() != 5) return {keys, maintained, 0, 0, 0, 0, 0};
  return {keys, maintained, numbers[0], numbers[1], static_cast<std::uint64_t>(numbers[2]), numbers[3], numbers[4]};
}

}  // namespace weir::bench
