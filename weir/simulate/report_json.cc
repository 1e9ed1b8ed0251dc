#include "weir/simulate/report_json.h"

#include "weir/base/text.h"
#include "weir/wire/json.h"

namespace weir::simulate {
namespace {

class ReportWriter {
 public:
  explicit ReportWriter(std::string& out) : json_(out) {}

  void write(const Report& report) {
    json_.begin_object();
    write_log(report.log);
    write_policy(report.policy);
    if (report.comparison) write_comparison(*report.comparison);
    json_.end_object();
  }

 private:
  void number(std::string_view key, std::uint64_t value) { json_.key(key).number(static_cast<std::int64_t>(value)); }
  void instant(std::string_view key, const std::optional<Wall>& wall) {
    json_.key(key);
    wall ? json_.string(print_instant(*wall)) : json_.null();
  }

  void write_log(const LogReport& log) {
    number("lines", log.lines);
    number("skipped", log.skipped());
    number("malformed", log.malformed);
    number("late", log.late);
    instant("from", log.first);
    instant("to", log.last);
    json_.key("files").begin_array();
    for (const auto& [name, format] : log.files) {
      json_.begin_object().key("file").string(name).key("format").string(format).end_object();
    }
    json_.end_array();
    json_.key("skipped_lines").begin_array();
    for (const LogReport::Malformed& line : log.shown) {
      json_.begin_object().key("file").string(line.file);
      number("line", line.line);
      json_.key("reason").string(line.reason).end_object();
    }
    json_.end_array();
  }

  void write_policy(const PolicyReport& policy) {
    json_.key("config").string(policy.name);
    number("requests", policy.requests);
    number("allowed", policy.allowed);
    number("denied", policy.denied);
    number("refused", policy.refused);
    number("unjudged_requests", policy.unjudged);
    number("allow_listed", policy.allow_listed);
    number("deny_listed", policy.deny_listed);
    number("blocks", policy.blocks);
    number("forgotten_buckets", policy.forgotten);
    json_.key("limits").begin_array();
    for (const LimitReport& limit : policy.limits) write_limit(limit);
    json_.end_array();
    json_.key("routes").begin_array();
    for (const RouteReport& route : policy.routes) {
      json_.begin_object().key("route").string(route.name);
      number("allowed", route.allowed);
      number("denied", route.denied);
      json_.end_object();
    }
    json_.end_array();
    json_.key("unjudged").begin_array();
    for (const Lack& lack : policy.lacks) write_lack(lack);
    json_.end_array();
    write_timeline(policy.timeline);
  }

  void write_lack(const Lack& lack) {
    if (lack.what == Lack::What::counted) return;
    const bool lists = lack.what == Lack::What::access_list;
    json_.begin_object().key(lack.what == Lack::What::limit ? "limit" : lists ? "section" : "route").string(lack.name);
    json_.key("lacks").begin_array();
    for (const std::string& source : lack.sources) json_.string(source);
    json_.end_array().end_object();
  }

  void write_limit(const LimitReport& limit) {
    json_.begin_object().key("limit").string(limit.name).key("key").string(limit.key).key("mode").string(limit.mode);
    json_.key("judged").boolean(limit.judged);
    if (limit.numbers) write_numbers(*limit.numbers);
    number("allowed", limit.allowed);
    number("denied", limit.denied);
    number("shadow_denied", limit.shadow_denied);
    number("clients", limit.clients);
    number("clients_denied", limit.clients_denied);
    json_.key("rest").begin_object();
    number("clients", limit.rest.clients);
    number("allowed", limit.rest.counts.allowed);
    number("denied", limit.rest.counts.denied);
    json_.end_object();
    instant("first_denied", limit.first_denied);
    instant("last_denied", limit.last_denied);
    json_.key("denied_clients");
    write_clients(limit.hit);
    write_advice(limit.advice);
    write_timeline(limit.timeline);
    json_.end_object();
  }

  void write_numbers(const Limit& limit) {
    json_.key("burst").number(limit.burst()).key("count").number(limit.count());
    json_.key("period").string(print_duration(limit.period()));
  }

  void write_clients(const std::vector<HitClient>& clients) {
    json_.begin_array();
    for (const HitClient& client : clients) {
      json_.begin_object().key("limit").string(client.limit).key("id").string(client.id);
      json_.key("identifier").string(client.identifier);
      number("allowed", client.counts.allowed);
      number("denied", client.counts.denied);
      instant("first_denied", client.first_denied);
      instant("last_denied", client.last_denied);
      json_.end_object();
    }
    json_.end_array();
  }

  void write_advice(const Advice& advice) {
    if (advice.requests == 0) return;
    json_.key("advice").begin_object();
    number("requests", advice.requests);
    number("tolerated", advice.tolerated);
    if (!advice.none.empty()) json_.key("none").string(advice.none);
    write_found("burst", advice.burst);
    write_found("rate", advice.rate);
    json_.end_object();
  }

  void write_found(std::string_view key, const std::optional<Advice::Found>& found) {
    json_.key(key);
    if (!found) {
      json_.null();
      return;
    }
    json_.begin_object();
    write_numbers(found->limit);
    number("denied", found->denied);
    json_.end_object();
  }

  void write_timeline(const Timeline& timeline) {
    json_.key("timeline").begin_object();
    json_.key("from").string(print_instant(timeline.start()));
    json_.key("column_seconds").number(print_seconds(timeline.width()));
    json_.key("allowed").begin_array();
    for (const Timeline::Column& column : timeline.columns()) json_.number(static_cast<std::int64_t>(column.allowed));
    json_.end_array().key("denied").begin_array();
    for (const Timeline::Column& column : timeline.columns()) json_.number(static_cast<std::int64_t>(column.denied));
    json_.end_array().end_object();
  }

  void write_comparison(const Comparison& comparison) {
    json_.key("compare").begin_object();
    write_policy(comparison.other);
    number("newly_denied_count", comparison.newly_denied_clients);
    json_.key("newly_denied");
    write_clients(comparison.newly_denied);
    number("no_longer_denied_count", comparison.spared_clients);
    json_.key("no_longer_denied");
    write_clients(comparison.spared);
    json_.end_object();
  }

  JsonWriter json_;
};

}  // namespace

std::string write_json(const Report& report) {
  std::string out;
  ReportWriter(out).write(report);
  out += '\n';
  return out;
}

}  // namespace weir::simulate
