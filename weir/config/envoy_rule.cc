#include "weir/config/envoy_rule.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>

#include "weir/base/ascii.h"
#include "weir/base/nearest.h"
#include "weir/base/text.h"

namespace weir::config {
namespace {

struct EnvoyUnit {
  std::string_view name;
  Duration length;
};
// As the service counts them: a month is 30 days, a year 365.
constexpr std::array kEnvoyUnits = std::to_array<EnvoyUnit>({
    {"second", std::chrono::seconds{1}},
    {"minute", std::chrono::minutes{1}},
    {"hour", std::chrono::hours{1}},
    {"day", std::chrono::days{1}},
    {"week", std::chrono::days{7}},
    {"month", std::chrono::days{30}},
    {"year", std::chrono::days{365}},
});

constexpr std::array<std::string_view, 6> kRateLimitKeys = {"unit", "requests_per_unit", "unlimited",
                                                            "name", "replaces",          "unit_multiplier"};
constexpr std::array<std::string_view, 1> kReplacesKeys = {"name"};

bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, [](char x, char y) { return to_lower(x) == to_lower(y); });
}

// A whole number that is not in quotes.
std::optional<std::uint32_t> read_count(const Document& document, NodeId map, std::string_view key, std::uint32_t least,
                                        std::uint32_t absent, Complaints& complaints) {
  const NodeId id = document.find(map, key);
  if (id == kNoNode || document.is(id, NodeKind::null)) return absent;
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  if (document.is(id, NodeKind::scalar) && !document.node(id).quoted) {
    const Result<std::int64_t> number = parse_integer(document.value(id));
    if (number && *number >= least && *number <= most) return static_cast<std::uint32_t>(*number);
  }
  complaints.add(id, std::string(key) + " " + quote(document.value(id)) + " must be a whole number from " +
                         std::to_string(least) + " to " + std::to_string(most));
  return {};
}

bool read_replaces(const Document& document, NodeId map, EnvoyRule& rule, Complaints& complaints) {
  const NodeId list = document.find(map, "replaces");
  if (list == kNoNode || document.is(list, NodeKind::null)) return true;
  if (!document.is(list, NodeKind::sequence)) {
    complaints.add(list, "replaces must be a list of maps");
    return false;
  }
  const std::size_t before = complaints.size();
  for (const NodeId item : document.children(list)) {
    if (!check_envoy_keys(document, item, "an entry of replaces", kReplacesKeys, complaints)) continue;
    const std::string name(document.text(item, "name"));
    if (name.empty()) {
      complaints.add(item, "an entry of replaces must have a name");
    } else if (name == rule.name) {
      complaints.add(item, "replaces: " + quote(name) + " is the name of this rate_limit itself");
    } else {
      rule.replaces.push_back(name);
    }
  }
  return complaints.size() == before;
}

bool is_json_number(std::string_view text) noexcept {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const std::size_t digits = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  if (at == digits || (text[digits] == '0' && at > digits + 1)) return false;
  if (at == text.size()) return true;
  if (text[at] != '.') return false;
  const std::size_t fraction = ++at;
  while (at < text.size() && is_digit(text[at])) ++at;
  return at > fraction && at == text.size();
}

void append_json_text(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      append_hex(static_cast<unsigned char>(c), out);
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_json(const Document& document, NodeId id, std::string& out) {
  const Node& node = document.node(id);
  const std::string_view value = document.value(id);
  if (node.kind == NodeKind::null) {
    out += "null";
  } else if (node.kind == NodeKind::scalar) {
    const bool plain = !node.quoted && (value == "true" || value == "false" || is_json_number(value));
    if (plain) {
      out += value;
    } else {
      append_json_text(value, out);
    }
  } else {
    const bool map = node.kind == NodeKind::map;
    out += map ? '{' : '[';
    bool first = true;
    for (const NodeId child : document.children(id)) {
      if (!first) out += ',';
      first = false;
      if (map) {
        append_json_text(document.key(child), out);
        out += ':';
      }
      append_json(document, child, out);
    }
    out += map ? '}' : ']';
  }
}

}  // namespace

std::string to_json(const Document& document, NodeId id) {
  std::string out;
  append_json(document, id, out);
  return out;
}

bool check_envoy_keys(const Document& document, NodeId map, std::string_view what,
                      std::span<const std::string_view> keys, Complaints& complaints) {
  if (!document.is(map, NodeKind::map)) {
    complaints.add(map, std::string(what) + " must be a map");
    return false;
  }
  const std::size_t before = complaints.size();
  std::map<std::string_view, NodeId> seen;
  for (const NodeId entry : document.children(map)) {
    const std::string_view key = document.key(entry);
    if (std::ranges::find(keys, key) == keys.end()) {
      const std::string_view near = nearest_word(keys, key);
      complaints.add_at_key(
          entry, "unknown key " + quote(key) + (near.empty() ? std::string() : "; did you mean " + quote(near) + "?"));
    } else if (const auto [twin, fresh] = seen.emplace(key, entry); !fresh) {
      complaints.add_at_key(entry, "key " + quote(key) + " is written twice; the first is at " +
                                       document.where(document.key_mark(twin->second)));
    }
  }
  return complaints.size() == before;
}

bool read_envoy_flag(const Document& document, NodeId map, std::string_view key, Complaints& complaints) {
  const NodeId id = document.find(map, key);
  if (id == kNoNode || document.is(id, NodeKind::null)) return false;
  const std::string_view text = document.value(id);
  // What YAML 1.1 calls true and false.
  for (const std::string_view word : {"true", "yes", "on", "y"}) {
    if (!document.node(id).quoted && equals_ignoring_case(text, word)) return true;
  }
  for (const std::string_view word : {"false", "no", "off", "n"}) {
    if (!document.node(id).quoted && equals_ignoring_case(text, word)) return false;
  }
  complaints.add(id, std::string(key) + " " + quote(text) + " must be true or false");
  return false;
}

std::optional<EnvoyRule> read_envoy_rule(const Document& document, NodeId rate_limit, Complaints& complaints) {
  if (!check_envoy_keys(document, rate_limit, "rate_limit", kRateLimitKeys, complaints)) return {};
  const std::size_t before = complaints.size();
  EnvoyRule rule;
  rule.name = document.text(rate_limit, "name");
  rule.unlimited = read_envoy_flag(document, rate_limit, "unlimited", complaints);
  const auto count = read_count(document, rate_limit, "requests_per_unit", 0, 0, complaints);
  const auto multiplier = read_count(document, rate_limit, "unit_multiplier", 1, 1, complaints);
  if (count) rule.count = *count;
  if (multiplier) rule.multiplier = *multiplier;
  const NodeId unit = document.find(rate_limit, "unit");
  const std::string_view text = document.text(rate_limit, "unit");
  const auto found = std::ranges::find_if(
      kEnvoyUnits, [text](const EnvoyUnit& known) { return equals_ignoring_case(known.name, text); });
  const bool known = found != kEnvoyUnits.end();
  if (known) rule.unit = found->length;
  const NodeId at = unit == kNoNode ? rate_limit : unit;
  if (rule.unlimited && known) complaints.add(at, "a rate_limit that is unlimited must not have a unit");
  if (!rule.unlimited && !known) {
    const std::string which = "second, minute, hour, day, week, month or year";
    complaints.add(
        at, text.empty() ? "rate_limit must have a unit: " + which : "unit " + quote(text) + " must be " + which);
  }
  if (known && rule.multiplier > bounds::window_max / rule.unit) {
    complaints.add(at, "unit_multiplier " + std::to_string(rule.multiplier) + " makes more than " +
                           print_duration(bounds::window_max));
  }
  (void)read_replaces(document, rate_limit, rule, complaints);
  if (complaints.size() != before) return {};
  return rule;
}

}  // namespace weir::config
