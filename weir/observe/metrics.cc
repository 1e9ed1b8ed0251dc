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
  // Only this loop changes the map, so it may search without the lock.
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
  if (answer.access == Access::deny_listed) return;  // no limit was checked
  for (std::size_t i = 0; i < answer.verdict.all.size(); ++i) {
    LimitCounters& limit = of(answer.labels[i]);
    if (answer.verdict.all[i].allowed()) {
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

std::string_view print(Protocol protocol) noexcept {
  switch (protocol) {
    case Protocol::http:
      return "http";
    case Protocol::resp:
      return "resp";
    case Protocol::admin:
      return "admin";
    case Protocol::grpc:
      return "grpc";
    case Protocol::proxy:
      return "proxy";
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
  std::uint64_t tier_unknown = 0;

  void add(const LimitCounters& counters) {
    type = counters.limiter_type;
    allowed += counters.allowed.value();
    denied += counters.denied.value();
    shadow_denied += counters.shadow_denied.value();
    allow_listed += counters.allow_listed.value();
    deny_listed += counters.deny_listed.value();
    tier_unknown += counters.tier_unknown.value();
  }
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
  head(out, "weir_tier_unknown_total", "counter", "Requests whose tier the limit does not know.");
  for (const auto& [name, sums] : limits) {
    line(out, "weir_tier_unknown_total", "{limit=\"" + name + "\"}", std::to_string(sums.tier_unknown));
  }
}

void write_active(std::string& out, const std::vector<ActiveClients>& limits) {
  head(out, "weir_rate_limit_active_clients", "gauge", "Buckets that are not full; an estimate beyond 65536.");
  for (const ActiveClients& active : limits) {
    const std::string labels = "{limit=\"" + active.limit + "\",limiter_type=\"" + active.limiter_type + "\"}";
    line(out, "weir_rate_limit_active_clients", labels, std::to_string(active.count));
  }
}

// `label` is one label or empty.
void write_histogram(std::string& out, std::string_view name, const std::string& label,
                     const std::vector<const Histogram*>& loops) {
  std::uint64_t total = 0;
  std::uint64_t sum = 0;
  const std::string series(name);
  for (std::size_t i = 0; i < Histogram::kBuckets; ++i) {
    for (const Histogram* loop : loops) total += loop->count(i);
    const bool last = i + 1 == Histogram::kBuckets;
    const std::string bound = last ? "+Inf" : print_seconds(Histogram::upper_bound(i));
    line(out, series + "_bucket", "{" + label + (label.empty() ? "" : ",") + "le=\"" + bound + "\"}",
         std::to_string(total));
  }
  for (const Histogram* loop : loops) sum += loop->sum_ns();
  const std::string labels = label.empty() ? "" : "{" + label + "}";
  line(out, series + "_sum", labels, print_seconds(Duration{static_cast<std::int64_t>(sum)}));
  line(out, series + "_count", labels, std::to_string(total));
}

void write_decisions(std::string& out, const std::vector<const LoopMetrics*>& loops, const std::string& store) {
  head(out, "weir_decision_seconds", "histogram", "From the end of reading a question to its answer.");
  std::vector<const Histogram*> histograms;
  for (const LoopMetrics* loop : loops) histograms.push_back(&loop->decision_seconds);
  write_histogram(out, "weir_decision_seconds", "store=\"" + store + "\"", histograms);
}

// Omits the series of statuses that never occurred, except ShouldRateLimit's OK and UNAVAILABLE.
void write_grpc(std::string& out, const std::vector<const LoopMetrics*>& loops) {
  head(out, "weir_grpc_requests_total", "counter", "Calls of gRPC by method and status.");
  for (std::size_t method = 0; method < GrpcCounters::kMethods.size(); ++method) {
    for (std::size_t status = 0; status < grpc::kStatuses; ++status) {
      std::uint64_t total = 0;
      for (const LoopMetrics* loop : loops) total += loop->grpc.calls[method][status].value();
      const bool always =
          method == 0 && (status == 0 || static_cast<grpc::Status>(status) == grpc::Status::unavailable);
      if (total == 0 && !always) continue;
      const std::string labels = "{method=\"" + std::string(GrpcCounters::kMethods[method]) + "\",code=\"" +
                                 std::string(grpc::print(static_cast<grpc::Status>(status))) + "\"}";
      line(out, "weir_grpc_requests_total", labels, std::to_string(total));
    }
  }
  head(out, "weir_grpc_seconds", "histogram", "From the head of a ShouldRateLimit call to its response.");
  std::vector<const Histogram*> histograms;
  for (const LoopMetrics* loop : loops) histograms.push_back(&loop->grpc.seconds);
  write_histogram(out, "weir_grpc_seconds", "", histograms);
}

void write_one(std::string& out, std::string_view name, std::string_view type, std::string_view help,
               std::string_view value) {
  head(out, name, type, help);
  line(out, name, "", value);
}

void write_blocks(std::string& out, const Gauges& gauges) {
  std::map<std::string, std::uint64_t> made = gauges.blocks_made;
  for (const ConfiguredLimit& limit : gauges.limits) made.try_emplace(limit.name);
  head(out, "weir_blocks_total", "counter", "Automatic blocks by the limit whose denials caused them.");
  for (const auto& [limit, count] : made) {
    line(out, "weir_blocks_total", "{limit=\"" + limit + "\"}", std::to_string(count));
  }
}

void write_reloads(std::string& out, const Gauges& gauges) {
  head(out, "weir_config_reloads_total", "counter", "Reloads of the configuration by result.");
  line(out, "weir_config_reloads_total", "{result=\"ok\"}", std::to_string(gauges.reloads_ok));
  line(out, "weir_config_reloads_total", "{result=\"failed\"}", std::to_string(gauges.reloads_failed));
  write_one(out, "weir_config_last_reload_timestamp_seconds", "gauge",
            "Unix time of the last attempt to reload the configuration, or of the start.",
            print_seconds(gauges.last_reload.time_since_epoch()));
  write_one(out, "weir_config_last_reload_successful", "gauge",
            "1 if the last reload was applied, 0 if it was rejected.", gauges.last_reload_ok ? "1" : "0");
}

void write_snapshots(std::string& out, const Gauges& gauges) {
  if (!gauges.snapshot_age) return;
  write_one(out, "weir_snapshot_age_seconds", "gauge",
            "Seconds since the last snapshot was written, or since the start.", print_seconds(*gauges.snapshot_age));
  write_one(out, "weir_snapshot_failures_total", "counter", "Snapshots that could not be written.",
            std::to_string(gauges.snapshot_failures));
}

void write_process(std::string& out, const ProcessStats& process) {
  write_one(out, "process_cpu_seconds_total", "counter", "User and system CPU time in seconds.",
            print_seconds(process.cpu));
  write_one(out, "process_resident_memory_bytes", "gauge", "Resident memory size in bytes.",
            std::to_string(process.resident_bytes));
  write_one(out, "process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.",
            std::to_string(process.virtual_bytes));
  write_one(out, "process_open_fds", "gauge", "Number of open file descriptors.", std::to_string(process.open_fds));
  write_one(out, "process_max_fds", "gauge", "Maximum number of open file descriptors.",
            std::to_string(process.max_fds));
  write_one(out, "process_start_time_seconds", "gauge", "Unix time at which the process started.",
            print_seconds(process.started.time_since_epoch()));
}

void write_tokens(const Gauges& gauges, std::string& out) {
  if (gauges.jwt_rejected.empty()) return;
  head(out, "weir_jwt_rejected_total", "counter", "Tokens that did not verify, by reason.");
  for (const auto& [reason, count] : gauges.jwt_rejected) {
    line(out, "weir_jwt_rejected_total", "{reason=\"" + reason + "\"}", std::to_string(count));
  }
  write_one(out, "weir_jwt_key_failures_total", "counter", "Times the key file of tokens could not be used.",
            std::to_string(gauges.jwt_key_failures));
}

void write_store(std::string& out, const std::vector<const LoopMetrics*>& loops, const Gauges& gauges) {
  std::uint64_t errors = 0;
  std::uint64_t overloaded = 0;
  for (const LoopMetrics* loop : loops) {
    errors += loop->store_errors.value();
    overloaded += loop->overloaded.value();
  }
  const auto counter = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    write_one(out, name, "counter", help, std::to_string(value));
  };
  write_one(out, "weir_store_up", "gauge", "1 while the store answers.", gauges.store_up ? "1" : "0");
  head(out, "weir_store_errors_total", "counter", "Questions that the store could not answer.");
  if (gauges.store_errors.empty())
    line(out, "weir_store_errors_total", "{kind=\"unavailable\"}", std::to_string(errors));
  for (const auto& [kind, count] : gauges.store_errors) {
    line(out, "weir_store_errors_total", "{kind=\"" + kind + "\"}", std::to_string(count));
  }
  counter("weir_overloaded_total", "Questions answered `overloaded`: the store was too busy to be asked.", overloaded);
  counter("weir_denial_cache_hits_total", "Repeated denials answered without asking the store.",
          gauges.denial_cache_hits);
  counter("weir_lease_hits_total", "Requests answered from a lease without asking the store.", gauges.lease_hits);
  counter("weir_store_unreplicated_total", "Writes to the store that too few replicas confirmed in time.",
          gauges.unreplicated);
  head(out, "weir_store_fallback_total", "counter", "Requests that got a failure policy instead of the store.");
  constexpr std::array<std::string_view, 3> kPolicies = {"passThrough", "failClosed", "inMemoryFallback"};
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    line(out, "weir_store_fallback_total", "{policy=\"" + std::string(kPolicies[i]) + "\"}",
         std::to_string(gauges.store_fallbacks[i]));
  }
}

}  // namespace

std::string exposition(const std::vector<const LoopMetrics*>& loops, const Gauges& gauges) {
  std::map<std::string, LimitSums> limits;
  for (const ConfiguredLimit& limit : gauges.limits) limits[limit.name].type = limit.limiter_type;
  for (const LoopMetrics* loop : loops) {
    loop->visit([&](const LimitCounters& counters) { limits[counters.limit].add(counters); });
  }
  std::string out;
  write_limits(out, limits);
  write_active(out, gauges.active);
  write_decisions(out, loops, gauges.store);
  write_grpc(out, loops);
  const auto gauge = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    head(out, name, "gauge", help);
    line(out, name, "", std::to_string(value));
  };
  const auto counter = [&](std::string_view name, std::string_view help, std::string_view labels, std::uint64_t value) {
    line((head(out, name, "counter", help), out), name, labels, std::to_string(value));
  };
  write_store(out, loops, gauges);
  write_tokens(gauges, out);
  gauge("weir_buckets", "Buckets in memory, expired ones included until they are cleaned.", gauges.buckets);
  counter("weir_buckets_evicted_total", "Buckets evicted before they were full because the table is full.", "",
          gauges.buckets_evicted);
  gauge("weir_table_bytes", "Memory used by the table of buckets.", gauges.table_bytes);
  gauge("weir_blocks", "Automatic blocks in force.", gauges.blocks);
  write_blocks(out, gauges);
  counter("weir_blocks_refused_total", "Automatic blocks dropped because the table is full.", "",
          gauges.blocks_refused);
  counter("weir_denial_counters_forgotten_total", "Denial counters dropped early because the table is full.", "",
          gauges.denial_counters_forgotten);
  head(out, "weir_connections", "gauge", "Open connections by protocol.");
  for (const Protocol protocol : {Protocol::http, Protocol::resp, Protocol::admin, Protocol::proxy}) {
    std::uint64_t open = 0;
    for (const LoopMetrics* loop : loops) open += loop->connections[static_cast<std::size_t>(protocol)].value();
    line(out, "weir_connections", "{speak=\"" + std::string(print(protocol)) + "\"}", std::to_string(open));
  }
  std::vector<const ProxyMetrics*> proxies;
  for (const LoopMetrics* loop : loops) proxies.push_back(&loop->proxy);
  write_proxy_metrics(proxies, gauges.backends, out);
  std::vector<const ServiceMetrics*> services;
  for (const LoopMetrics* loop : loops) services.push_back(&loop->services);
  write_service_metrics(services, gauges.services, out);
  write_reloads(out, gauges);
  write_snapshots(out, gauges);
  gauge("weir_uptime_seconds", "Seconds since the server started.",
        static_cast<std::uint64_t>(gauges.uptime / std::chrono::seconds{1}));
  head(out, "weir_build_info", "gauge", "Always 1; the version is in the label.");
  line(out, "weir_build_info", "{version=\"" + gauges.version + "\"}", "1");
  write_process(out, gauges.process);
  return out;
}

}  // namespace weir
