// What `store: redis` stands for: every loop's store on one Redis, and what the loops share.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/siphash.h"
#include "weir/net/loop.h"
#include "weir/net/resolve.h"
#include "weir/net/tls.h"
#include "weir/policy/policy.h"
#include "weir/policy/settings.h"
#include "weir/store/redis/health.h"
#include "weir/store/redis/redis_store.h"
#include "weir/store/store.h"

namespace weir::cli {

// The limits that Redis's arithmetic cannot hold, one sentence each; empty: none.
std::string unfit_for_redis(const Policy& policy);

class RedisStores {
 public:
  using Log = std::function<void(std::string_view)>;

  // Errors: endpoints that are none, certificates that cannot be read.
  static Result<std::unique_ptr<RedisStores>> make(const policy::Redis& settings, Log log);

  // For one loop, whose thread need not run yet. Wait for nobody: Redis may be away.
  std::unique_ptr<redis::RedisStore> store(Loop& loop);
  redis::Health& health() noexcept { return health_; }

  // The key of hashed limits that all servers on this Redis share; made if there is none. `unavailable`: Redis cannot
  // be asked now. Blocks for a second at most.
  Result<std::string> shared_hash_key();

 private:
  RedisStores(policy::Redis settings, Log log) : settings_(std::move(settings)), health_(std::move(log)) {}
  redis::MakeTopology topology() const;

  policy::Redis settings_;
  std::vector<Target> endpoints_;
  redis::RedisStore::Options options_;
  Resolver resolver_;
  redis::Health health_;
};

}  // namespace weir::cli
