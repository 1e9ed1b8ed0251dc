#include "weir/config/describe.h"

#include <algorithm>

#include "weir/base/text.h"
#include "weir/config/values.h"

namespace weir::config {
namespace {

std::string id_of(const NamedLimit& limit) {
  if (limit.id_kind == IdKind::address) return "ip";
  return limit.id.spelling();
}

std::string numbers_of(const NamedLimit& limit) {
  if (limit.numbers) return print(*limit.numbers);
  if (limit.unlimited) return "unlimited";
  if (limit.quota || !limit.schedule.empty()) return "";
  return "unlimited, except ids with an override";
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

std::string tiers_of(const NamedLimit& limit) {
  std::string out = limit.tier_source;
  for (const Tier& tier : limit.tiers) {
    out.append(out.empty() ? "" : "; ").append(tier.name).append(": ");
    if (tier.unlimited) out += "unlimited";
    if (tier.numbers) out += print(*tier.numbers);
    if (tier.quota) out.append(tier.numbers ? ", " : "").append("quota ").append(print_quota(*tier.quota));
  }
  return out;
}

void add_word(std::string& list, std::string_view word) {
  list.append(list.empty() ? "" : ", ").append(word);
}

std::string_view header_name(std::string_view attribute) {
  return attribute.substr(attribute.find(':') + 1);
}

std::string match_of(const Match& match) {
  std::string out;
  for (const std::string& method : match.methods) out.append(out.empty() ? "" : "|").append(method);
  out.append(out.empty() ? "" : " ").append(match.host.text()).append(match.path.text());
  for (const auto& [name, value] : match.headers) {
    out.append(", ").append(header_name(name)).append(": ").append(value);
  }
  return out;
}

}  // namespace

std::string print(const Limit& limit) {
  return std::to_string(limit.count()) + " per " + print_duration(limit.period()) + ", burst " +
         std::to_string(limit.burst());
}

std::string print(const Override& value, const NamedLimit& limit) {
  if (value.kind == Override::Kind::blocked) return "blocked";
  if (value.kind == Override::Kind::tier) return "tier " + limit.tiers[value.tier].name;
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
  row.tiers = tiers_of(limit);
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

DescribedRoute describe(const Route& route, const Policy& policy) {
  DescribedRoute row;
  row.name = route.name;
  row.match = match_of(route.match);
  for (const std::uint32_t index : route.limits) add_word(row.limits, policy.limits()[index].name);
  if (row.limits.empty()) row.limits = route.all_limits ? "every limit with a key" : "none";
  row.charge = route.order == Order::in_order ? "in-order" : "together";
  row.mode = std::string(print(route.mode));
  row.cost = route.cost_header.empty() ? std::to_string(route.cost) : route.cost_header;
  for (const std::string& backend : route.forwarding.backends) add_word(row.backend, backend);
  return row;
}

std::vector<DescribedRoute> describe_routes(const Policy& policy) {
  std::vector<DescribedRoute> rows;
  rows.reserve(policy.routes().size());
  for (const Route& route : policy.routes()) rows.push_back(describe(route, policy));
  return rows;
}

std::string shown_id(const NamedLimit& limit, std::string_view id) {
  return limit.hides_ids() ? "(hidden)" : std::string(id);
}

std::vector<Setting> in_force(const Loaded& loaded, std::size_t overrides_max) {
  std::vector<Setting> all = loaded.origins;
  const std::size_t most = all.size() + std::min(loaded.policy->override_count(), overrides_max);
  all.reserve(most);
  const std::string& file = loaded.policy->overrides_file();
  for (const NamedLimit& limit : loaded.policy->limits()) {
    for (std::uint32_t i = 0; i < limit.overrides.size() && all.size() < most; ++i) {
      const OverrideTable::Place place = limit.overrides.place(i);
      all.push_back({"overrides." + limit.name + ":" + shown_id(limit, limit.overrides.id(i)),
                     print(limit.overrides[i], limit),
                     file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column)});
    }
  }
  return all;
}

std::string show(const Loaded& loaded) {
  std::string out;
  for (const Setting& setting : in_force(loaded)) {
    out += setting.path + ": " + setting.value + "  # " + setting.origin + "\n";
  }
  return out;
}

}  // namespace weir::config
