#include "weir/app/redis_stores.h"

#include <algorithm>
#include <utility>

#include "weir/app/random.h"
#include "weir/base/siphash.h"
#include "weir/net/tls.h"
#include "weir/redis/cluster_topology.h"
#include "weir/redis/master_topology.h"
#include "weir/redis/topology.h"

namespace weir::app {
namespace {

constexpr std::size_t kHolderBytes = 8;  // no two servers have the same

}  // namespace

Result<std::unique_ptr<RedisStores>> RedisStores::make(const config::Redis& settings, Log log) {
  std::unique_ptr<RedisStores> stores(new RedisStores(settings, std::move(log)));
  for (const std::string& endpoint : settings.endpoints) {
    auto target = Target::parse(endpoint);
    if (!target) return Error{Fault::invalid, "redis.endpoints: " + target.error().detail};
    // A server that is named twice is asked once.
    if (std::ranges::find(stores->endpoints_, *target) != stores->endpoints_.end()) continue;
    stores->endpoints_.push_back(std::move(*target));
  }
  const auto secret = random_bytes(sizeof(HashKey));
  if (!secret) return secret.error();
  redis::RedisStore::Options& options = stores->options_;
  std::copy_n(secret->data(), sizeof(HashKey), reinterpret_cast<char*>(&options.denial_key));
  const auto holder = random_bytes(kHolderBytes);
  if (!holder) return holder.error();
  stores->leases_ = std::make_unique<redis::Leases>(
      redis::Leases::Options{.holder = hexadecimal(*holder), .key = options.denial_key});
  options.denials = std::make_shared<redis::DenialCache>(options.denial_key);
  options.link.client.username = settings.username;
  options.link.client.password = settings.password;
  options.link.client.db = settings.db;
  options.link.client.wait_replicas = settings.wait_replicas;
  options.link.timeout = settings.timeout;
  options.link.replicas_timeout = settings.timeout / 2;
  options.link.connect_timeout = std::max<Duration>(settings.timeout, std::chrono::seconds{1});
  options.link.transport.resolver = &stores->resolver_;
  options.pool_size = static_cast<std::size_t>(std::max<std::int64_t>(settings.pool_size, 1));
  options.key_prefix = settings.key_prefix;
  options.hash_tag = settings.hash_tag;
  if (settings.tls.enabled) {
    auto tls = TlsClient::make({settings.tls.ca_file, {settings.tls.cert_file, settings.tls.key_file}, {}});
    if (!tls) return Error{Fault::invalid, "redis.tls: " + tls.error().detail};
    options.link.transport.tls = std::move(*tls);
    options.link.transport.server_name = settings.tls.server_name;
  }
  return stores;
}

redis::MakeTopology RedisStores::topology(redis::OnDiscoveryFailed on_discovery_failed) const {
  return [this, on_discovery_failed](Loop& loop, redis::MakeNode make_node) -> std::unique_ptr<redis::Topology> {
    if (settings_.mode == "single") return std::make_unique<redis::SingleTopology>(make_node, endpoints_.front());
    redis::RedisLink::Options link = options_.link;
    link.client.wait_replicas = 0;  // these ask only
    if (settings_.mode == "cluster") {
      return std::make_unique<redis::ClusterTopology>(
          loop, std::move(make_node),
          redis::ClusterTopology::Options{endpoints_, std::move(link), on_discovery_failed});
    }
    const bool sentinel = settings_.mode == "sentinel";
    // Sentinels have no databases, and users of their own.
    if (sentinel) link.client = {};
    return std::make_unique<redis::MasterTopology>(
        loop, std::move(make_node),
        redis::MasterTopology::Options{endpoints_, sentinel ? settings_.master_name : "", std::move(link),
                                       on_discovery_failed});
  };
}

std::unique_ptr<Store> RedisStores::store(Loop& loop, Table& fallback, const Clock& clock) {
  // If discovery finds no masters, there is no link that could report the failure.
  const auto on_discovery_failed = [this, &loop](std::string_view why) {
    if (!health_.is_up()) health_.went_down(false, why, loop.now().time);
  };
  redis::RedisStore::Options options = options_;
  options.in_doubt = [this, &loop] { probe_others(loop); };
  auto store = std::make_unique<redis::RedisStore>(loop, std::move(options), health_, topology(on_discovery_failed));
  places_.push_back({&loop, store.get()});
  auto leasing = std::make_unique<redis::LeasingStore>(loop, std::move(store), *leases_);
  return std::make_unique<FailoverStore>(std::move(leasing), Fallback(fallback, settings_.share, fallbacks_, clock),
                                         clock);
}

Result<std::unique_ptr<RedisAdmin>> RedisStores::admin() const {
  redis::RedisStore::Options options = options_;
  options.pool_size = 1;
  // An operator may wait longer than a request.
  options.link.timeout = std::max<Duration>(settings_.timeout, std::chrono::seconds{1});
  return RedisAdmin::make(std::move(options), topology());
}

// The other loops find out by a probe, before one of their clients has to wait.
void RedisStores::probe_others(const Loop& than) {
  for (const Place& place : places_) {
    if (place.loop != &than) place.loop->post([store = place.store] { store->probe(); });
  }
}

void RedisStores::fill(Gauges& gauges) const {
  gauges.store = "redis";
  gauges.store_up = health_.is_up();
  for (std::size_t i = 0; i < redis::kTroubles; ++i) {
    const auto trouble = static_cast<redis::Trouble>(i);
    gauges.store_errors.emplace_back(print(trouble), health_.troubles(trouble));
  }
  gauges.denial_cache_hits = health_.denial_hits();
  gauges.lease_hits = health_.leased();
  gauges.unreplicated = health_.unreplicated();
  for (std::size_t i = 0; i < gauges.store_fallbacks.size(); ++i) {
    gauges.store_fallbacks[i] = fallbacks_.of(static_cast<FailurePolicy>(i));
  }
}

}  // namespace weir::app
