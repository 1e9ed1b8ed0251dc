#include "bench/footprint.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "bench/machine.h"
#include "bench/workload.h"
#include "weir/base/clock.h"

namespace weir::bench {
namespace {

std::unique_ptr<Table> make_filled(std::uint64_t keys, bool names) {
  constexpr Limit kLimit = Limit::per_day(1);
  auto table = std::move(Table::create({.names = names}).value());
  const BootClock clock;
  std::atomic<bool> filled = false;
  std::thread maintaining([&] { maintain_until(*table, filled); });
  for (std::uint64_t id = 0; id < keys; ++id) {
    const Text text = key_of<Text>(id);
    const Key key{std::string_view(text.data(), text.size())};
    (void)table->spend(table->hash(key), key, kLimit, 1, clock.time());
  }
  filled = true;
  maintaining.join();
  return table;
}

}  // namespace

Footprint measure_footprint(std::uint64_t keys, bool names) {
  progress("memory of " + name_of_count(keys) + " buckets" + (names ? " with names" : ""));
  const std::vector<double> numbers = run_apart([&]() -> std::vector<double> {
    // Once for practice: the program's own code and the allocator's first pages are not the table's.
    make_filled(10'000, names).reset();
    const std::size_t before = resident_bytes();
    const auto table = make_filled(keys, names);
    const std::size_t after = resident_bytes();
    const Table::Stats stats = table->stats();
    const auto buckets = static_cast<double>(stats.buckets);
    return {static_cast<double>(after - before) / buckets, static_cast<double>(stats.bytes) / buckets};
  });
  if (numbers.size() != 2) return {keys, names, 0, 0};
  return {keys, names, numbers[0], numbers[1]};
}

}  // namespace weir::bench
