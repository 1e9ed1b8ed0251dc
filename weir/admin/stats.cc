// Totals per limit and overall: GET /ratelimit/stats, GET /metrics and the samples of GET /ratelimit/live. All report
// the active buckets of each limit, counted in the whole store or estimated from a part of it.
#include <algorithm>
#include <map>

#include "weir/admin/bucket_owner.h"
#include "weir/admin/calls.h"
#include "weir/admin/client_row.h"
#include "weir/admin/scan.h"
#include "weir/base/text.h"

namespace weir::admin {
namespace {

// Sample size for the estimate: hashes spread buckets evenly, so a limit with 1% of them is estimated to about 4%.
constexpr std::uint64_t kSample = 65'536;

// Limit of steps: a remote store may contain many other keys.
constexpr std::uint64_t kStepsMax = 1024;

// Heavy hitters in a sample of the dashboard.
constexpr std::size_t kTopShown = 10;

using Active = std::map<std::string, std::uint64_t>;
// `active` is null if it is unknown.
using MakeReply = Reply (*)(AdminShared& shared, const Active* active);

class ActiveCounter final : public Collector {
 public:
  ActiveCounter(AdminShared& shared, MakeReply make_reply)
      : shared_(shared), make_reply_(make_reply), owners_(shared.reloader.policy()) {
    for (const NamedLimit& limit : owners_.policy().limits()) active_.emplace(limit.name, 0);
  }

  bool take(const StoredBucket& bucket, Now) override {
    ++seen_;
    // A limit's quota is a second bucket of the same client.
    const auto owner = owners_.find(bucket.key.text);
    if (owner) ++active_[owner->limit == nullptr ? std::string() : owner->limit->name];
    return true;
  }

  bool enough(std::uint32_t millionths) override {
    if ((++steps_ < kStepsMax && seen_ < kSample) || millionths == 0) return false;
    for (auto& [limit, count] : active_) count = count * 1'000'000 / millionths;
    return true;
  }

  Outcome reply(const std::string&) override { return make_reply_(shared_, &active_); }
  std::optional<Reply> reply_without() override { return make_reply_(shared_, nullptr); }

 private:
  AdminShared& shared_;
  MakeReply make_reply_;
  BucketOwners owners_;
  Active active_;
  std::uint64_t seen_ = 0;
  std::uint64_t steps_ = 0;
};

struct Sums {
  std::uint64_t allowed = 0;
  std::uint64_t denied = 0;
  std::uint64_t shadow_denied = 0;
};

// Several loops' histograms added up.
struct Times {
  std::array<std::uint64_t, Histogram::kBuckets> counts{};
  std::uint64_t total = 0;

  void add(std::size_t i, std::uint64_t count) {
    counts[i] += count;
    total += count;
  }
  void add(const Histogram& histogram) {
    for (std::size_t i = 0; i < counts.size(); ++i) add(i, histogram.count(i));
  }

  // Returns the upper bound of the histogram bucket that contains this quantile, in thousandths.
  Duration quantile(std::uint64_t thousandths) const {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      below += counts[i];
      if (below > 0 && below * 1000 >= total * thousandths) return Histogram::upper_bound(i);
    }
    return Duration::zero();  // none yet
  }
};

std::int64_t whole(std::uint64_t count) {
  return static_cast<std::int64_t>(count);
}

void write_limits(JsonWriter& json, const std::map<std::string, Sums>& limits, const Active* active) {
  json.key("limits").begin_array();
  for (const auto& [name, sums] : limits) {
    json.begin_object().key("limit").string(name).key("allowed").number(whole(sums.allowed));
    json.key("denied").number(whole(sums.denied)).key("shadow_denied").number(whole(sums.shadow_denied));
    json.key("active");
    if (active == nullptr) {
      json.null().end_object();
      continue;
    }
    const auto found = active->find(name);
    json.number(whole(found == active->end() ? 0 : found->second)).end_object();
  }
  json.end_array();
}

// The fields of /ratelimit/stats.
void write_numbers(AdminShared& shared, const Active* active, const Gauges& gauges, JsonWriter& json) {
  const std::vector<const LoopMetrics*> loops = shared.loops();
  std::map<std::string, Sums> limits;
  for (const NamedLimit& limit : shared.reloader.policy()->limits()) limits.try_emplace(limit.name);
  for (const auto& [name, count] : active == nullptr ? Active() : *active) limits.try_emplace(name);
  std::uint64_t requests = 0;
  std::uint64_t denied = 0;
  std::uint64_t allow_listed = 0;
  std::uint64_t deny_listed = 0;
  std::uint64_t shadow_denied = 0;
  for (const LoopMetrics* loop : loops) {
    requests += loop->requests.value();
    denied += loop->denied.value();
    allow_listed += loop->allow_listed.value();
    deny_listed += loop->deny_listed.value();
    loop->visit([&](const LimitCounters& counters) {
      Sums& sums = limits[counters.limit];
      sums.allowed += counters.allowed.value();
      sums.denied += counters.denied.value();
      sums.shadow_denied += counters.shadow_denied.value();
      shadow_denied += counters.shadow_denied.value();
    });
  }
  json.key("uptime_seconds").number(print_seconds(gauges.uptime));
  json.key("policy_version").number(whole(shared.reloader.version() + 1));
  json.key("store").begin_object().key("kind").string(gauges.store).key("up").boolean(gauges.store_up).end_object();
  json.key("totals").begin_object().key("requests").number(whole(requests));
  json.key("allowed").number(whole(requests - std::min(requests, denied + allow_listed)));
  json.key("denied").number(whole(denied - std::min(denied, deny_listed)));
  json.key("shadow_denied").number(whole(shadow_denied)).key("allow_listed").number(whole(allow_listed));
  json.key("deny_listed").number(whole(deny_listed)).end_object();
  write_limits(json, limits, active);
  Times times;
  for (const LoopMetrics* loop : loops) times.add(loop->decision_seconds);
  json.key("latency_seconds").begin_object().key("p50").number(print_seconds(times.quantile(500)));
  json.key("p99").number(print_seconds(times.quantile(990)));
  json.key("p999").number(print_seconds(times.quantile(999))).end_object();
}

// The proxy's totals and backends; nothing if no request came through one.
void write_proxy(AdminShared& shared, const Gauges& gauges, JsonWriter& json) {
  std::uint64_t active = 0;
  std::uint64_t responses = 0;
  std::uint64_t failed = 0;
  Times times;
  for (const LoopMetrics* loop : shared.loops()) {
    active += loop->proxy.active.value();
    loop->proxy.visit([&](const ProxyRouteCounters& route) {
      for (const Counter& counter : route.by_class) responses += counter.value();
      for (const Counter& counter : route.errors) failed += counter.value();
      times.add(route.upstream_seconds);
    });
  }
  if (responses > 0 || active > 0) {
    json.key("proxy").begin_object().key("responses").number(whole(responses)).key("failed").number(whole(failed));
    json.key("active").number(whole(active)).key("p99").number(print_seconds(times.quantile(990))).end_object();
  }
  json.key("backends").begin_array();
  for (const BackendState& one : gauges.backends) {
    Times of_one;
    for (std::size_t i = 0; i < one.seconds.size(); ++i) of_one.add(i, one.seconds[i]);
    json.begin_object().key("backend").string(one.backend).key("up").boolean(one.up);
    json.key("responses").number(whole(one.responses)).key("failed").number(whole(one.failed));
    json.key("p50").number(print_seconds(of_one.quantile(500)));
    json.key("p99").number(print_seconds(of_one.quantile(990))).end_object();
  }
  json.end_array();
}

Reply write_stats(AdminShared& shared, const Active* active) {
  Reply reply;
  JsonWriter json(reply.content);
  json.begin_object();
  write_numbers(shared, active, shared.gauges(), json);
  json.end_object();
  return reply;
}

// One sample of GET /ratelimit/live.
Reply write_sample(AdminShared& shared, const Active* active) {
  const Gauges gauges = shared.gauges();
  Reply reply;
  JsonWriter json(reply.content);
  json.begin_object().key("time").string(print_instant(shared.clock.now().wall));
  json.key("server").string(shared.server_name).key("version").string(gauges.version);
  json.key("buckets").number(whole(gauges.buckets));
  write_numbers(shared, active, gauges, json);
  write_proxy(shared, gauges, json);
  json.key("top").begin_object();
  for (const TopBy by : {TopBy::denied, TopBy::requests, TopBy::shadow_denied}) {
    json.key(name_of(by));
    write_top(shared, by, kTopShown, json);
  }
  json.end_object().end_object();
  return reply;
}

Reply write_metrics(AdminShared& shared, const Active* active) {
  Gauges gauges = shared.gauges();
  const std::shared_ptr<const Policy> policy = shared.reloader.policy();
  for (const NamedLimit& limit : policy->limits()) gauges.limits.push_back({limit.name, limit.limiter_type});
  for (const auto& [name, count] : active == nullptr ? Active() : *active) {
    const NamedLimit* const limit = policy->find(name);
    gauges.active.push_back({name, limit == nullptr ? std::string() : limit->limiter_type, count});
  }
  Reply reply;
  reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
  reply.content = exposition(shared.loops(), gauges);
  return reply;
}

}  // namespace

Outcome stats(AdminShared& shared, const Request&) {
  return std::make_unique<Scan>(shared.bucket_scan, BucketScan::Look::keys,
                                std::make_unique<ActiveCounter>(shared, write_stats), std::string());
}

Outcome metrics(AdminShared& shared, const Request&) {
  return std::make_unique<Scan>(shared.bucket_scan, BucketScan::Look::keys,
                                std::make_unique<ActiveCounter>(shared, write_metrics), std::string());
}

std::unique_ptr<Work> sample_numbers(AdminShared& shared) {
  return std::make_unique<Scan>(shared.bucket_scan, BucketScan::Look::keys,
                                std::make_unique<ActiveCounter>(shared, write_sample), std::string());
}

}  // namespace weir::admin
