#include "weir/config/routes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/config/check.h"
#include "weir/config/forwarding.h"
#include "weir/config/values.h"

namespace weir::config {
namespace {

// "header:" and the name in lower case: what a request's attribute is called.
std::string header_attribute(std::string_view name) {
  return "header:" + to_lower(name);
}

// Reads one entry of `routes`.
class RouteReader {
 public:
  RouteReader(const Document& document, NodeId entry, const Limits& limits, Complaints& complaints)
      : document_(document), entry_(entry), limits_(limits), complaints_(complaints) {}

  Route read() {
    Route route;
    route.name = text("name");
    read_match(route.match);
    read_limits(route);
    if (text("charge") == "in-order") route.order = Order::in_order;
    if (text("mode") == "shadow") route.mode = Enforcement::shadow;
    if (text("mode") == "off") route.mode = Enforcement::off;
    read_cost(route);
    route.forwarding = read_forwarding(document_, entry_, complaints_);
    return route;
  }

 private:
  NodeId find(NodeId section, std::string_view key) const { return document_.usable(section, key); }
  std::string_view text(std::string_view key) const { return document_.text(entry_, key); }
  void refuse(NodeId at, std::string sentence) { complaints_.add(at, std::move(sentence)); }

  // The start of a message. A missing name is reported elsewhere.
  std::string this_route() const {
    const std::string_view name = text("name");
    return name.empty() ? "this route" : "route " + quote(name);
  }

  void read_match(Match& match) {
    const NodeId section = document_.find(entry_, "match");
    if (!document_.is(section, NodeKind::map)) return;
    if (const NodeId path = find(section, "path"); path != kNoNode) {
      Result<PathPattern> pattern =
          PathPattern::parse(document_.value(path), document_.text(section, "ignore_case") == "true");
      if (!pattern) refuse(path, pattern.error().detail);
      if (pattern) match.path = std::move(*pattern);
    }
    for (const NodeId method : document_.items(section, "methods")) {
      std::string word(document_.value(method));
      if (!check_key_source("header:" + word)) {
        refuse(method, "methods: " + quote(word) + " is not a method");
        continue;
      }
      std::transform(word.begin(), word.end(), word.begin(), to_upper);
      match.methods.push_back(std::move(word));
    }
    if (const NodeId host = find(section, "host"); host != kNoNode) {
      Result<HostPattern> pattern = HostPattern::parse(document_.value(host));
      if (!pattern) refuse(host, pattern.error().detail);
      if (pattern) match.host = std::move(*pattern);
    }
    const NodeId headers = find(section, "headers");
    for (const NodeId header : document_.children(headers)) {
      const std::string_view name = document_.key(header);
      if (!check_key_source("header:" + std::string(name))) {
        complaints_.add_at_key(header, "headers: " + quote(name) + " is not a header's name");
        continue;
      }
      std::string attribute = header_attribute(name);
      const bool twice = std::ranges::any_of(match.headers, [&](const auto& had) { return had.first == attribute; });
      // The checker has already reported duplicates with the same spelling.
      if (twice && document_.find(headers, name) == header) {
        complaints_.add_at_key(header,
                               "headers: " + quote(name) + " is given twice: header names are case-insensitive");
      }
      match.headers.emplace_back(std::move(attribute), document_.value(header));
    }
  }

  void read_limits(Route& route) {
    const NodeId limits = document_.find(entry_, "limits");
    route.all_limits = limits == kNoNode;
    if (limits == kNoNode) return;
    const bool scalar = document_.node(limits).kind == NodeKind::scalar;
    if (scalar && document_.value(limits) == "none") return;
    for (const NodeId item : document_.items(entry_, "limits")) {
      const std::string_view name = document_.value(item);
      const auto found = limits_.by_name.find(name);
      if (found == limits_.by_name.end()) {
        refuse_unknown(item, name);
        continue;
      }
      const auto index = static_cast<std::uint32_t>(found->second);
      // If the limit was refused, its missing key may follow from a reported problem.
      const NamedLimit& limit = limits_.made[index];
      if (limit.key.empty() && !document_.node(limits_.nodes[index]).refused) {
        refuse(item, this_route() + " names the limit " + quote(name) +
                         ", which has no key: nothing in a request says who is counted");
      }
      if (std::ranges::find(route.limits, index) != route.limits.end()) {
        refuse(item, this_route() + " names the limit " + quote(name) + " twice");
        continue;
      }
      route.limits.push_back(index);
    }
    if (route.limits.size() > bounds::charges_max) {
      refuse(limits, this_route() + " names " + std::to_string(route.limits.size()) + " limits; at most " +
                         std::to_string(bounds::charges_max) + " can be charged at once");
    }
  }

  void refuse_unknown(NodeId item, std::string_view name) {
    if (!limits_.complete) return;
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < limits_.made.size() && i < 1000; ++i) names.push_back(limits_.made[i].name);
    refuse(item, this_route() + " names an unknown limit " + quote(name) + did_you_mean(names, name));
  }

  void read_cost(Route& route) {
    const NodeId cost = find(entry_, "cost");
    if (cost == kNoNode) return;
    const std::string_view written = document_.value(cost);
    if (!written.starts_with("header:")) {
      route.cost = *parse_integer(written);
      return;
    }
    if (!check_key_source(written)) {
      return refuse(cost, "cost " + quote(written) + " must name its header after the colon");
    }
    route.cost_header = header_attribute(written.substr(written.find(':') + 1));
  }

  const Document& document_;
  NodeId entry_;
  const Limits& limits_;
  Complaints& complaints_;
};

// Returns the highest cost that the limit's default numbers allow at once; nullopt if it has none.
std::optional<Count> most_at_once(const NamedLimit& limit) {
  std::optional<Count> most;
  if (limit.numbers) most = limit.numbers->burst();
  if (limit.quota) most = std::min(most.value_or(limit.quota->size), limit.quota->size);
  return most;
}

// Only a warning, because overrides and schedules may allow the cost.
void warn_of_cost(const Document& document, NodeId entry, const Route& route, const Limits& limits,
                  std::vector<std::string>& warnings) {
  if (!route.cost_header.empty() || route.cost == 1 || route.mode != Enforcement::enforce) return;
  const NodeId cost = document.find(entry, "cost");
  for (const std::uint32_t index : route.limits) {
    const NamedLimit& limit = limits.made[index];
    const std::optional<Count> most = most_at_once(limit);
    if (!most || route.cost <= *most || limit.mode != Enforcement::enforce) continue;
    warnings.push_back(document.where(document.mark(cost)) + ": route " + quote(route.name) + " costs " +
                       std::to_string(route.cost) + ", more than the limit " + quote(limit.name) + " ever lets pass (" +
                       std::to_string(*most) + "): such requests are refused");
  }
}

using Names = std::map<std::string, NodeId, std::less<>>;

void check_name(const Document& document, NodeId name, Names& names, Complaints& complaints) {
  const std::string_view text = document.value(name);
  if (!is_name(text)) {
    complaints.add(name, "route name " + quote(text) + " must be 1 to 63 of the characters A-Z a-z 0-9 . _ -");
    return;
  }
  const auto [first, fresh] = names.emplace(text, name);
  if (fresh) return;
  complaints.add(name, "route " + quote(text) + " is defined twice; the first is at " +
                           document.where(document.mark(first->second)));
}

}  // namespace

std::vector<Route> read_routes(const Document& document, NodeId root, const Limits& limits, Complaints& complaints,
                               std::vector<std::string>& warnings) {
  std::vector<Route> routes;
  Names names;
  const NodeId section = document.find(root, "routes");
  if (!document.is(section, NodeKind::sequence)) return routes;
  for (const NodeId entry : document.children(section)) {
    if (document.node(entry).kind != NodeKind::map) continue;
    const NodeId name = document.find(entry, "name");
    if (name != kNoNode && !document.node(name).refused) check_name(document, name, names, complaints);
    routes.push_back(RouteReader(document, entry, limits, complaints).read());
    warn_of_cost(document, entry, routes.back(), limits, warnings);
  }
  if (routes.size() > bounds::routes_max) {
    complaints.add(section,
                   std::to_string(routes.size()) + " routes are more than " + std::to_string(bounds::routes_max));
  }
  return routes;
}

}  // namespace weir::config
