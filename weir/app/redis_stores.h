// The stores of `store: redis`: one per loop on one Redis, and what the loops share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/app/redis_admin.h"
#include "weir/base/clock.h"
#include "weir/base/result.h"
#include "weir/config/problem.h"
#include "weir/config/settings.h"
#include "weir/net/loop.h"
#include "weir/net/resolve.h"
#include "weir/observe/metrics.h"
#include "weir/policy/policy.h"
#include "weir/redis/health.h"
#include "weir/redis/topology_probe.h"
#include "weir/store/failover/failover_store.h"
#include "weir/store/memory/table.h"
#include "weir/store/redis/leasing_store.h"
#include "weir/store/redis/redis_store.h"
#include "weir/store/store.h"

namespace weir::app {

class RedisStores {
 public:
  using Log = redis::Health::Log;

  // `log` may be called from any thread. Fails on invalid endpoints and unreadable certificates.
  static Result<std::unique_ptr<RedisStores>> make(const config::Redis& settings, Log log);

  // Creates the store of one loop, whose thread need not run yet. Applies the failure policies, with the buckets of
  // inMemoryFallback in `fallback`. Does not block: Redis may be down. Table and clock must outlive the store.
  std::unique_ptr<Store> store(Loop& loop, Table& fallback, const Clock& clock);

  // Creates the connection for everything except decisions. The stores must outlive it.
  Result<std::unique_ptr<RedisAdmin>> admin() const;

  bool is_up() const noexcept { return health_.is_up(); }
  // The configured failure_policy, for the log.
  void set_failure_policy(std::string_view policy) { health_.set_failure_policy(policy); }
  void fill(Gauges& gauges) const;

 private:
  struct Place {
    Loop* loop;
    redis::RedisStore* store;
  };

  RedisStores(config::Redis settings, Log log) : settings_(std::move(settings)), health_(std::move(log)) {}
  void probe_others(const Loop& than);
  redis::MakeTopology topology(redis::OnDiscoveryFailed on_discovery_failed = {}) const;

  config::Redis settings_;
  std::vector<Target> endpoints_;
  redis::RedisStore::Options options_;
  Resolver resolver_;
  redis::Health health_;
  std::unique_ptr<redis::Leases> leases_;
  FallbackCounts fallbacks_;
  std::vector<Place> places_;
};

}  // namespace weir::app
