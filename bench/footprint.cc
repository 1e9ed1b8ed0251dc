#include "bench/footprint.h"

#include <thread>

#include "bench/machine.h"
#include "bench/workload.h"
#include "weir/base/clock.h"

namespace weir::bench {

Footprint measure_footprint(std::uint64_t keys, bool names) {
  progress("memory of " + name_of_count(keys) + " buckets" + (names ? " with names" : ""));
  const std::vector<double> numbers = run_apart([&]() -> std::vector<double> {
    constexpr Limit kLimit = Limit::per_day(1);
    const std::size_t before = resident_bytes();
    const auto table = Table::create({.names = names});
    if (!table) return {};
    const BootClock clock;
    std::atomic<bool> filled = false;
    std::thread maintaining([&] { maintain_until(**table, filled); });
    for (std::uint64_t id = 0; id < keys; ++id) {
      const Text text = key_of<Text>(id);
      const Key key{std::string_view(text.data(), text.size())};
      (void)(*table)->spend((*table)->hash(key), key, kLimit, 1, clock.time());
    }
    filled = true;
    maintaining.join();
    const auto buckets = static_cast<double>((*table)->stats().buckets);
    return {static_cast<double>(resident_bytes() - before) / buckets,
            static_cast<double>((*table)->stats().bytes) / buckets};
  });
  if (numbers.size() != 2) return {keys, names, 0, 0};
  return {keys, names, numbers[0], numbers[1]};
}

}  // namespace weir::bench
