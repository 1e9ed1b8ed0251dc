#include "weir/policy/describe.h"

#include <algorithm>

#include "weir/base/text.h"
#include "weir/policy/values.h"

namespace weir::policy {
namespace {

std::string id_of(const NamedLimit& limit) {
  if (limit.id_kind == IdKind::address) return "ip";
  return limit.id.spelling();
}

std::string numbers_of(const NamedLimit& limit) {
  if (limit.numbers) return print(*limit.numbers);
  if (limit.unlimited) return "unlimited";
  if (limit.quota || !limit.schedule.empty()) return "";
  return "only ids with an override";
}

std::string schedule_of(const NamedLimit& limit) {
  std::string out;
  for (const ScheduleEntry& entry : limit.schedule) {
    if (!out.empty()) out += "; ";
    out += print_days(entry.days) + " " + print_hours(entry.hours) + " " + std::string(entry.zone.name()) + ": " +
           print(entry.numbers);
  }
  return out;
}

}  // namespace

std::string print(const Limit& limit) {
  return std::to_string(limit.count()) + " per " + print_duration(limit.period()) + ", burst " +
         std::to_string(limit.burst());
}

std::string print(const Override& value) {
  if (value.kind == Override::Kind::blocked) return "blocked";
  if (value.kind == Override::Kind::unlimited) return "unlimited";
  std::string out = value.has_limit ? print(value.limit) : "";
  if (value.has_quota) out += (out.empty() ? "quota " : ", quota ") + print_quota(value.quota);
  return out;
}

Described describe(const NamedLimit& limit) {
  Described row;
  row.name = limit.name;
  if (limit.number) row.number = std::to_string(*limit.number);
  for (const std::string& source : limit.key) row.key += (row.key.empty() ? "" : ", ") + source;
  row.id = id_of(limit);
  row.numbers = numbers_of(limit);
  if (limit.quota) row.quota = print_quota(*limit.quota) + " (" + std::string(limit.zone.name()) + ")";
  row.schedule = schedule_of(limit);
  row.mode = std::string(print(limit.mode));
  row.overrides = std::to_string(limit.overrides.size());
  return row;
}

std::vector<Described> describe(const Policy& policy) {
  std::vector<Described> rows;
  rows.reserve(policy.limits().size());
  for (const NamedLimit& limit : policy.limits()) rows.push_back(describe(limit));
  return rows;
}

std::string show(const Loaded& loaded) {
  std::string out;
  for (const Setting& setting : loaded.origins) {
    out += setting.path + ": " + setting.value + "  # " + setting.origin + "\n";
  }
  const std::string& file = loaded.policy->overrides_file();
  for (const NamedLimit& limit : loaded.policy->limits()) {
    for (std::uint32_t i = 0; i < limit.overrides.size(); ++i) {
      out += "overrides." + limit.name + ":" + std::string(limit.overrides.id(i)) + ": " + print(limit.overrides[i]) +
             "  # " + file + ":" + std::to_string(limit.overrides.line(i)) + "\n";
    }
  }
  return out;
}

}  // namespace weir::policy
