// What the server counts. Every loop counts in its own LoopMetrics, without sharing a cache line with another; a scrape
// sums them up. Uses Answers only, never the bytes of a reply. Labels are names of limits, so their number is bounded
// by the configuration, not by clients.
//
// Thread safety: one loop writes its LoopMetrics; any thread may read it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/time.h"
#include "weir/core/answer.h"
#include "weir/observe/clients.h"
#include "weir/observe/counter.h"
#include "weir/observe/events.h"
#include "weir/observe/process.h"
#include "weir/observe/proxy_metrics.h"
#include "weir/observe/service_metrics.h"
#include "weir/wire/grpc.h"

namespace weir {

struct LimitCounters {
  std::string limit;
  std::string limiter_type;  // the sources of its key
  Counter allowed;
  Counter denied;
  Counter shadow_denied;
  Counter allow_listed;
  Counter deny_listed;
  Counter tier_unknown;
};

// gRPC calls.
struct GrpcCounters {
  enum class Method : unsigned char { should_rate_limit, health, other };
  static constexpr std::array<std::string_view, 3> kMethods = {"ShouldRateLimit", "Health", "other"};

  std::array<std::array<Counter, grpc::kStatuses>, kMethods.size()> calls;  // by method and status
  Histogram seconds;                                                        // of ShouldRateLimit

  void record(Method method, grpc::Status status) noexcept {
    calls[static_cast<std::size_t>(method)][static_cast<std::size_t>(status)].add();
  }
};

class LoopMetrics {
 public:
  // `events`, if not null, receives every decision; it must outlive the metrics.
  explicit LoopMetrics(Events* events = nullptr) noexcept : events_(events) {}

  void record(const Answer& answer);
  // Records that the access lists decided for one limit before it was checked.
  void record_listed(const Label& label, bool allowed);
  // Records a client whose tier the limit does not define.
  void record_unknown_tier(const Label& label) { of(label).tier_unknown.add(); }
  void store_failed() noexcept { store_errors.add(); }

  Counter requests;
  Counter denied;  // requests denied by limits or by the deny list
  Counter allow_listed;
  Counter deny_listed;
  Counter store_errors;
  Counter overloaded;  // questions not sent because the store was busy
  Histogram decision_seconds;
  std::array<Counter, 5> connections;  // by Protocol
  ProxyMetrics proxy;
  GrpcCounters grpc;
  ServiceMetrics services;
  LoopClients clients;

  // For /metrics.
  void visit(const std::function<void(const LimitCounters&)>& visit) const;

 private:
  LimitCounters& of(const Label& label);

  Events* events_;
  mutable std::mutex growing_;  // locked by the loop to add a limit and by readers to iterate; never to count
  std::map<std::string, std::unique_ptr<LimitCounters>, std::less<>> limits_;
};

enum class Protocol : unsigned char { http, resp, admin, grpc, proxy };
std::string_view print(Protocol protocol) noexcept;

// Buckets of one limit that are not full, or were not a moment ago.
struct ActiveClients {
  std::string limit;
  std::string limiter_type;
  std::uint64_t count = 0;
};

// A limit of the configuration. Its series exist from the start, at 0.
struct ConfiguredLimit {
  std::string name;
  std::string limiter_type;
};

// Values that belong to no loop, read for each scrape.
struct Gauges {
  std::vector<ConfiguredLimit> limits;
  std::vector<ActiveClients> active;
  std::uint64_t buckets = 0;
  std::uint64_t buckets_evicted = 0;
  std::uint64_t table_bytes = 0;
  bool store_up = true;
  std::string store = "memory";
  std::uint64_t blocks = 0;
  std::map<std::string, std::uint64_t> blocks_made;  // by limit, since the start
  std::uint64_t blocks_refused = 0;
  std::uint64_t denial_counters_forgotten = 0;
  std::vector<std::pair<std::string, std::uint64_t>> store_errors;  // by kind, if the store distinguishes them
  std::vector<std::pair<std::string, std::uint64_t>> jwt_rejected;  // tokens, by reason
  std::uint64_t jwt_key_failures = 0;
  std::uint64_t denial_cache_hits = 0;
  std::uint64_t lease_hits = 0;
  std::uint64_t unreplicated = 0;
  std::array<std::uint64_t, 3> store_fallbacks{};  // requests decided by the failure policy, by FailurePolicy
  std::uint64_t reloads_ok = 0;
  std::uint64_t reloads_failed = 0;
  Wall last_reload{};  // or the start
  bool last_reload_ok = true;
  std::optional<Duration> snapshot_age;  // absent: snapshots are not configured
  std::uint64_t snapshot_failures = 0;
  std::vector<BackendState> backends;  // of the proxy
  ServiceGauges services;
  ProcessStats process;
  std::string version;
  Duration uptime{};
};

// Prometheus text exposition format 0.0.4.
std::string exposition(const std::vector<const LoopMetrics*>& loops, const Gauges& gauges);

}  // namespace weir
