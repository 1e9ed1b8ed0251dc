#include "weir/observe/metrics.h"

#include <bit>

#include "weir/base/text.h"

namespace weir {

void Histogram::add(Duration duration) noexcept {
  const std::int64_t ns = std::max<std::int64_t>(duration.count(), 1);
  const auto us = static_cast<std::uint64_t>((ns + 999) / 1000);
  const auto index = static_cast<std::size_t>(std::bit_width(us - 1));  // us in (2^(i-1), 2^i]
  counts_[std::min(index, kBuckets - 1)].add();
  sum_ns_.add(static_cast<std::uint64_t>(ns));
}

LimitCounters& LoopMetrics::of(const Label& label) {
  // Only this loop changes the map, so it may look without the lock.
  const auto found = limits_.find(label.limit);
  if (found != limits_.end()) return *found->second;
  auto fresh = std::make_unique<LimitCounters>();
  fresh->limit = std::string(label.limit);
  fresh->limiter_type = std::string(label.limiter_type);
  const std::lock_guard lock(growing_);
  return *limits_.emplace(fresh->limit, std::move(fresh)).first->second;
}

void LoopMetrics::record(const Answer& answer) {
  requests.add();
  if (!answer.verdict.allowed) denied.add();
  if (answer.access == Access::allow_listed) allow_listed.add();
  if (answer.access == Access::deny_listed) deny_listed.add();
  clients.record(answer);
  if (events_ != nullptr && events_->wanted()) events_->publish(answer);
  if (answer.access == Access::deny_listed) return;  // no limit was asked
  for (std::size_t i = 0; i < answer.verdict.all.size(); ++i) {
    // A limit's rate and its quota are two buckets under one key, next to each other, and one answer.
    bool allowed = answer.verdict.all[i].allowed;
    while (i + 1 < answer.verdict.all.size() && !answer.labels[i].bucket.empty() &&
           answer.labels[i + 1].bucket == answer.labels[i].bucket) {
      allowed &= answer.verdict.all[++i].allowed;
    }
    LimitCounters& limit = of(answer.labels[i]);
    if (allowed) {
      limit.allowed.add();
    } else if (answer.labels[i].shadow) {
      limit.shadow_denied.add();
    } else {
      limit.denied.add();
    }
  }
}

void LoopMetrics::record_listed(const Label& label, bool allowed) {
  LimitCounters& limit = of(label);
  (allowed ? limit.allow_listed : limit.deny_listed).add();
}

void LoopMetrics::visit(const std::function<void(const LimitCounters&)>& visit) const {
  const std::lock_guard lock(growing_);
  for (const auto& [name, counters] : limits_) visit(*counters);
}

std::string_view print(Speak speak) noexcept {
  switch (speak) {
    case Speak::http:
      return "http";
    case Speak::resp:
      return "resp";
    case Speak::admin:
      return "admin";
    case Speak::grpc:
      return "grpc";
  }
  return "";
}

namespace {

struct LimitSums {
  std::string type;
  std::uint64_t allowed = 0;
  std::uint64_t denied = 0;
  std::uint64_t shadow_denied = 0;
  std::uint64_t allow_listed = 0;
  std::uint64_t deny_listed = 0;
};

void head(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out.append("# HELP ")
      .append(name)
      .append(" ")
      .append(help)
      .append("\n# TYPE ")
      .append(name)
      .append(" ")
      .append(type)
      .append("\n");
}

void line(std::string& out, std::string_view name, std::string_view labels, std::string_view value) {
  out.append(name).append(labels).append(" ").append(value).append("\n");
}

void write_limits(std::string& out, const std::map<std::string, LimitSums>& limits) {
  head(out, "weir_rate_limit_requests_total", "counter", "Decisions by limit and outcome.");
  for (const auto& [name, sums] : limits) {
    const std::string labels = "{limit=\"" + name + "\",limiter_type=\"" + sums.type + "\",status=\"";
    line(out, "weir_rate_limit_requests_total", labels + "allowed\"}", std::to_string(sums.allowed));
    line(out, "weir_rate_limit_requests_total", labels + "denied\"}", std::to_string(sums.denied));
    line(out, "weir_rate_limit_requests_total", labels + "shadow_denied\"}", std::to_string(sums.shadow_denied));
    line(out, "weir_rate_limit_requests_total", labels + "allow_listed\"}", std::to_string(sums.allow_listed));
    line(out, "weir_rate_limit_requests_total", labels + "deny_listed\"}", std::to_string(sums.deny_listed));
  }
  head(out, "weir_rate_limit_exceeded_total", "counter", "Requests that a limit denied.");
  for (const auto& [name, sums] : limits) {
    line(out, "weir_rate_limit_exceeded_total", "{limit=\"" + name + "\",limiter_type=\"" + sums.type + "\"}",
         std::to_string(sums.denied));
  }
}

void write_active(std::string& out, const std::vector<ActiveClients>& limits) {
  head(out, "weir_rate_limit_active_clients", "gauge", "Buckets that are not full; an estimate beyond 65536.");
  for (const ActiveClients& active : limits) {
    const std::string labels = "{limit=\"" + active.limit + "\",limiter_type=\"" + active.limiter_type + "\"}";
    line(out, "weir_rate_limit_active_clients", labels, std::to_string(active.count));
  }
}

void write_histogram(std::string& out, const std::vector<const LoopMetrics*>& loops, const std::string& store) {
  head(out, "weir_decision_seconds", "histogram", "From the end of reading a question to its answer.");
  std::uint64_t total = 0;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < Histogram::kBuckets; ++i) {
    for (const LoopMetrics* loop : loops) total += loop->decision_seconds.count(i);
    const bool last = i + 1 == Histogram::kBuckets;
    const std::string bound = last ? "+Inf" : print_seconds(Histogram::upper_bound(i));
    line(out, "weir_decision_seconds_bucket", "{store=\"" + store + "\",le=\"" + bound + "\"}", std::to_string(total));
  }
  for (const LoopMetrics* loop : loops) sum += loop->decision_seconds.sum_ns();
  line(out, "weir_decision_seconds_sum", "{store=\"" + store + "\"}",
       print_seconds(Duration{static_cast<std::int64_t>(sum)}));
  line(out, "weir_decision_seconds_count", "{store=\"" + store + "\"}", std::to_string(total));
}

}  // namespace

std::string exposition(const std::vector<const LoopMetrics*>& loops, const Gauges& gauges) {
  std::map<std::string, LimitSums> limits;
  std::uint64_t errors = 0;
  for (const LoopMetrics* loop : loops) {
    errors += loop->store_errors.value();
    loop->visit([&](const LimitCounters& counters) {
      LimitSums& sums = limits[counters.limit];
      sums.type = counters.limiter_type;
      sums.allowed += counters.allowed.value();
      sums.denied += counters.denied.value();
      sums.shadow_denied += counters.shadow_denied.value();
      sums.allow_listed += counters.allow_listed.value();
      sums.deny_listed += counters.deny_listed.value();
    });
  }
  std::string out;
  write_limits(out, limits);
  write_active(out, gauges.active);
  write_histogram(out, loops, gauges.store);
  const auto gauge = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    head(out, name, "gauge", help);
    line(out, name, "", std::to_string(value));
  };
  const auto counter = [&](std::string_view name, std::string_view help, std::string_view labels, std::uint64_t value) {
    line((head(out, name, "counter", help), out), name, labels, std::to_string(value));
  };
  gauge("weir_store_up", "1 while the store answers.", gauges.store_up ? 1 : 0);
  head(out, "weir_store_errors_total", "counter", "Questions that the store could not answer.");
  if (gauges.store_errors.empty())
    line(out, "weir_store_errors_total", "{kind=\"unavailable\"}", std::to_string(errors));
  for (const auto& [kind, count] : gauges.store_errors) {
    line(out, "weir_store_errors_total", "{kind=\"" + kind + "\"}", std::to_string(count));
  }
  counter("weir_denial_cache_hits_total", "Repeated denials answered without asking the store.", "",
          gauges.denial_cache_hits);
  counter("weir_lease_hits_total", "Requests answered from a lease without asking the store.", "", gauges.lease_hits);
  counter("weir_store_unreplicated_total", "Writes to the store that too few replicas confirmed in time.", "",
          gauges.unreplicated);
  head(out, "weir_store_fallback_total", "counter", "Requests that got a failure policy instead of the store.");
  constexpr std::array<std::string_view, 3> kPolicies = {"passThrough", "failClosed", "inMemoryFallback"};
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    line(out, "weir_store_fallback_total", "{policy=\"" + std::string(kPolicies[i]) + "\"}",
         std::to_string(gauges.store_fallbacks[i]));
  }
  gauge("weir_buckets", "Buckets in memory, expired ones included until they are cleaned.", gauges.buckets);
  counter("weir_buckets_evicted_total", "Buckets forgotten before they were full, for want of room.", "",
          gauges.buckets_evicted);
  gauge("weir_table_bytes", "Memory of the table.", gauges.table_bytes);
  gauge("weir_blocks", "Clients blocked automatically.", gauges.blocks);
  counter("weir_blocks_refused_total", "Clients not blocked, for want of room.", "", gauges.blocks_refused);
  counter("weir_denial_counters_forgotten_total", "Clients whose denials were forgotten early, for want of room.", "",
          gauges.denial_counters_forgotten);
  head(out, "weir_connections", "gauge", "Open connections by protocol.");
  for (const Speak speak : {Speak::http, Speak::resp, Speak::admin}) {
    std::uint64_t open = 0;
    for (const LoopMetrics* loop : loops) open += loop->connections[static_cast<std::size_t>(speak)].value();
    line(out, "weir_connections", "{speak=\"" + std::string(print(speak)) + "\"}", std::to_string(open));
  }
  head(out, "weir_config_reloads_total", "counter", "Reloads of the configuration.");
  line(out, "weir_config_reloads_total", "{result=\"ok\"}", std::to_string(gauges.reloads_ok));
  line(out, "weir_config_reloads_total", "{result=\"failed\"}", std::to_string(gauges.reloads_failed));
  gauge("weir_uptime_seconds", "Since the server started.",
        static_cast<std::uint64_t>(gauges.uptime / std::chrono::seconds{1}));
  head(out, "weir_build_info", "gauge", "Always 1; the version is in the label.");
  line(out, "weir_build_info", "{version=\"" + gauges.version + "\"}", "1");
  return out;
}

}  // namespace weir
