// Counters of services that supply limits (external/). Like LoopMetrics: one loop writes, any thread may read.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/observe/counter.h"

namespace weir {

struct ServiceMetrics {
  // Where an answer came from. `miss`: from the service, or there is none.
  enum class Cache : unsigned char { hit, stale, miss, shared };
  static constexpr std::array<std::string_view, 4> kCache = {"hit", "stale", "miss", "shared"};
  // How a call ended. Any other word counts as the last one.
  static constexpr std::array<std::string_view, 9> kResults = {"ok",         "timeout",     "unavailable",
                                                               "bad_status", "bad_average", "bad_burst",
                                                               "bad_period", "bad_numbers", "bad_body"};
  static constexpr std::array<std::string_view, 5> kFields = {"tenant_key", "failure_policy", "failure_code",
                                                              "cache_max_age_seconds", "cache_no_store"};
  // Why a backend_url was not used. Any other word counts as the last one.
  static constexpr std::array<std::string_view, 3> kRefusals = {"private_address", "bad_scheme", "bad_url"};

  std::array<Counter, kCache.size()> cache;
  std::array<Counter, kResults.size()> results;
  std::array<Counter, kFields.size()> ignored;
  std::array<Counter, kRefusals.size()> refused_backends;
  Histogram seconds;  // of calls

  void found(Cache where) noexcept { cache[static_cast<std::size_t>(where)].add(); }
  void ended(std::string_view result) noexcept { count(results, kResults, result); }
  void ignore(std::string_view field) noexcept { count(ignored, kFields, field); }
  void refuse_backend(std::string_view reason) noexcept { count(refused_backends, kRefusals, reason); }

 private:
  template <std::size_t kSize>
  static void count(std::array<Counter, kSize>& counters, const std::array<std::string_view, kSize>& words,
                    std::string_view word) noexcept {
    std::size_t i = 0;
    while (i + 1 < kSize && words[i] != word) ++i;
    counters[i].add();
  }
};

// Values that belong to no loop.
struct ServiceGauges {
  bool any = false;  // some limit has, or had, a service; otherwise no series are written
  std::uint64_t in_flight = 0;
  std::uint64_t waiting = 0;
  std::uint64_t breakers_open = 0;
  std::uint64_t answers = 0;
  std::optional<bool> shared_up{};                     // whether sharing answers works; absent: not configured
  std::vector<std::pair<std::string, bool>> services;  // by limit, and whether its breaker is open

  // Adds the service of a limit that was not asked yet, so that its series begin at 0.
  void add_configured(const std::string& limit) {
    any = true;
    const bool known = std::ranges::find(services, limit, &std::pair<std::string, bool>::first) != services.end();
    if (!known) services.emplace_back(limit, false);
  }
};

// Appends the series in Prometheus text format.
void write_service_metrics(const std::vector<const ServiceMetrics*>& loops, const ServiceGauges& gauges,
                           std::string& out);

}  // namespace weir
