#include "weir/observe/service_metrics.h"

#include "weir/base/text.h"
#include "weir/base/time.h"

namespace weir {
namespace {

class ServiceSeries {
 public:
  ServiceSeries(const std::vector<const ServiceMetrics*>& loops, std::string& out) : loops_(loops), out_(out) {}

  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    out_.append("# HELP ").append(name).append(" ").append(help);
    out_.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
  }
  void add(std::string_view suffix, const std::string& labels, std::string_view value) {
    out_.append(name_).append(suffix).append(labels).append(" ").append(value).append("\n");
  }
  void gauge(std::string_view name, std::string_view help, std::uint64_t value) {
    begin(name, "gauge", help);
    add("", "", std::to_string(value));
  }
  // One sample for each word, over all loops.
  template <std::size_t kSize>
  void count(std::array<Counter, kSize> ServiceMetrics::*counters, std::string_view label,
             const std::array<std::string_view, kSize>& words) {
    for (std::size_t i = 0; i < kSize; ++i) {
      std::uint64_t sum = 0;
      for (const ServiceMetrics* const loop : loops_) sum += (loop->*counters)[i].value();
      add("", "{" + std::string(label) + "=\"" + std::string(words[i]) + "\"}", std::to_string(sum));
    }
  }
  void write_seconds() {
    begin("weir_external_seconds", "histogram", "How long calls to limits services took.");
    std::uint64_t total = 0;
    std::uint64_t sum_ns = 0;
    for (std::size_t i = 0; i < Histogram::kBuckets; ++i) {
      for (const ServiceMetrics* const loop : loops_) total += loop->seconds.count(i);
      const bool last = i + 1 == Histogram::kBuckets;
      const std::string bound = last ? "+Inf" : print_seconds(Histogram::upper_bound(i));
      add("_bucket", "{le=\"" + bound + "\"}", std::to_string(total));
    }
    for (const ServiceMetrics* const loop : loops_) sum_ns += loop->seconds.sum_ns();
    add("_sum", "", print_seconds(Duration{static_cast<std::int64_t>(sum_ns)}));
    add("_count", "", std::to_string(total));
  }

 private:
  const std::vector<const ServiceMetrics*>& loops_;
  std::string& out_;
  std::string_view name_;
};

}  // namespace

void write_service_metrics(const std::vector<const ServiceMetrics*>& loops, const ServiceGauges& gauges,
                           std::string& out) {
  if (!gauges.any) return;
  ServiceSeries series(loops, out);
  series.begin("weir_external_requests_total", "counter", "Calls to limits services by result.");
  series.count(&ServiceMetrics::results, "result", ServiceMetrics::kResults);
  series.write_seconds();
  series.begin("weir_external_cache_total", "counter", "Where the answers of limits services came from.");
  series.count(&ServiceMetrics::cache, "result", ServiceMetrics::kCache);
  series.begin("weir_external_ignored_total", "counter", "Invalid optional fields of answers, which were ignored.");
  series.count(&ServiceMetrics::ignored, "field", ServiceMetrics::kFields);
  series.begin("weir_backend_refused_total", "counter", "Requests whose backend_url was refused, by reason.");
  series.count(&ServiceMetrics::refused_backends, "reason", ServiceMetrics::kRefusals);
  series.gauge("weir_external_in_flight", "Calls to limits services on their way.", gauges.in_flight);
  series.gauge("weir_external_waiting", "Requests that wait for a limits service.", gauges.waiting);
  series.gauge("weir_external_answers", "Answers of limits services kept in this process.", gauges.answers);
  if (gauges.shared_up) {
    series.gauge("weir_external_shared_up", "1 while servers share answers through Redis.", *gauges.shared_up ? 1 : 0);
  }
  series.gauge("weir_breaker_open", "Keys that limits services are not asked for because calls failed.",
               gauges.breakers_open);
  series.begin("weir_external_service_open", "gauge", "1 while a limits service is only probed because it failed.");
  for (const auto& [limit, open] : gauges.services) series.add("", "{limit=\"" + limit + "\"}", open ? "1" : "0");
}

}  // namespace weir
