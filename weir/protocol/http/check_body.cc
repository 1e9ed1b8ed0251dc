#include "weir/protocol/http/check_body.h"

#include <array>
#include <string>

#include "weir/base/bounds.h"
#include "weir/base/inline_list.h"
#include "weir/base/text.h"

namespace weir {
namespace {

using Problem = std::optional<ApiError>;

ApiError bad_value(std::string message) {
  return {400, "bad_value", std::move(message)};
}

ApiError unknown_field(std::string_view field, std::string_view known) {
  return {400, "unknown_field", "unknown field " + quote(field) + "; known are " + std::string(known)};
}

ApiError wrong_kind(std::string_view field, std::string_view wanted, JsonValue value) {
  std::string message(field);
  message.append(" must be ").append(wanted).append(", not ").append(name_of(value.kind()));
  return bad_value(std::move(message));
}

ApiError missing(std::string_view field) {
  return bad_value(std::string(field) + " is missing");
}

Problem read_text(std::string_view field, JsonValue value, std::string_view& out) {
  if (!value.is(JsonKind::string)) return wrong_kind(field, "a string", value);
  out = value.string();
  return {};
}

// Clients whose ids are numbers may write them without quotes. A whole number is the id exactly as written.
Problem read_id(std::string_view field, JsonValue value, std::string_view& out) {
  if (!value.is(JsonKind::number)) {
    return value.is(JsonKind::string) ? read_text(field, value, out)
                                      : wrong_kind(field, "a string or a whole number", value);
  }
  out = value.number();
  if (out.find_first_not_of("0123456789", out.starts_with('-') ? 1 : 0) == std::string_view::npos) return {};
  return bad_value(std::string(field) + " " + quote(out) + " must be a string or a whole number");
}

Problem read_rate(JsonValue value, std::optional<Rate>& out) {
  const bool number = value.is(JsonKind::number);
  if (!number && !value.is(JsonKind::string)) {
    return wrong_kind("rate", "a rate such as \"100/s\", or a number per second", value);
  }
  const Result<Rate> rate = parse_rate(number ? std::string(value.number()) + "/s" : std::string(value.string()));
  if (!rate) return bad_value(rate.error().detail);  // the detail names the field
  out = *rate;
  return {};
}

Problem read_count(std::string_view field, JsonValue value, Count& out) {
  if (!value.is(JsonKind::number)) return wrong_kind(field, "a whole number", value);
  const auto number = value.integer();
  if (!number) {
    return bad_value(std::string(field) + " " + quote(value.number()) +
                     " must be a whole number in the range of 64 bits");
  }
  out = *number;
  return {};
}

Problem read_cost(JsonValue value, Count& out) {
  if (auto problem = read_count("cost", value, out)) return problem;
  if (out < 0) return bad_value("cost " + std::to_string(out) + " must not be negative; to give back, call /v1/refund");
  return {};
}

// The fields of one charge; a null member was absent.
struct ParsedCharge {
  std::optional<std::string_view> limit;
  std::optional<std::string_view> id;
  std::optional<std::string_view> tier;
  Count cost = 1;
  bool has_cost = false;

  // Returns false if a charge has no such field.
  bool read(const JsonValue::Member& member, Problem& problem) {
    if (member.key == "limit") {
      problem = read_text("limit", member.value, limit.emplace());
    } else if (member.key == "id") {
      problem = read_id("id", member.value, id.emplace());
    } else if (member.key == "tier") {
      problem = read_text("tier", member.value, tier.emplace());
    } else if (member.key == "cost") {
      problem = read_cost(member.value, cost);
      has_cost = true;
    } else {
      return false;
    }
    return true;
  }

  Problem finish(Queries& queries, NamedCharge& out) const {
    if (!limit) return missing("limit");
    if (!id) return missing("id");
    out = {queries.copy(*limit), queries.copy(*id), cost, tier ? queries.copy(*tier) : std::string_view{}};
    return {};
  }
};

Problem read_charge(JsonValue value, Queries& queries, NamedCharge& out) {
  if (!value.is(JsonKind::object)) return wrong_kind("a charge", "an object", value);
  ParsedCharge parsed;
  for (const JsonValue::Member member : value.members()) {
    Problem problem;
    if (!parsed.read(member, problem)) return unknown_field(member.key, "limit, id, cost and tier");
    if (problem) return problem;
  }
  return parsed.finish(queries, out);
}

Problem read_charges(JsonValue value, Queries& queries, std::span<const NamedCharge>& out) {
  if (!value.is(JsonKind::array)) return wrong_kind("charges", "an array", value);
  std::array<NamedCharge, bounds::charges_max> charges;
  std::size_t size = 0;
  for (const JsonValue item : value.items()) {
    if (size == charges.size()) {
      return bad_value("charges has more than " + std::to_string(bounds::charges_max) + " entries");
    }
    if (auto problem = read_charge(item, queries, charges[size])) {
      problem->message = "charges[" + std::to_string(size) + "]: " + problem->message;
      return problem;
    }
    ++size;
  }
  if (size == 0) return bad_value("charges must name at least one limit");
  out = queries.copy(std::span<const NamedCharge>(charges.data(), size));
  return {};
}

Problem read_order(JsonValue value, Order& out) {
  std::string_view word;
  if (auto problem = read_text("charge", value, word)) return problem;
  if (word != "together" && word != "in-order") {
    return bad_value("charge must be \"together\" or \"in-order\", not " + quote(word));
  }
  out = word == "together" ? Order::together : Order::in_order;
  return {};
}

// Headers and form fields of a request, beside its ip, method, path and host.
constexpr std::size_t kFieldsMax = bounds::attributes_max - 4;

// Collects the attributes of a request.
class RequestBody {
 public:
  explicit RequestBody(Queries& queries) noexcept : queries_(queries) {}

  Problem read(JsonValue value) {
    if (!value.is(JsonKind::object)) return wrong_kind("request", "an object", value);
    for (const JsonValue::Member member : value.members()) {
      if (auto problem = read_member(member)) return problem;
    }
    // A request always has a path, and a query always has attributes.
    if (!path_) attributes_.push_back({"path", "/"});
    return {};
  }

  std::span<const Attribute> take() { return queries_.copy(std::span<const Attribute>(attributes_)); }

 private:
  Problem read_member(const JsonValue::Member& member) {
    constexpr std::string_view known = "ip, method, path, host, headers and form";
    if (member.key == "headers") return read_headers(member.value);
    if (member.key == "form") return read_form(member.value);
    for (const std::string_view name : {"ip", "method", "path", "host"}) {
      if (member.key != name) continue;
      if (!member.value.is(JsonKind::string)) {
        return wrong_kind("request." + std::string(name), "a string", member.value);
      }
      const std::string_view value = member.value.string();
      if (name == "ip" && value.empty()) return bad_value("request.ip must not be empty");
      path_ |= name == "path";
      attributes_.push_back({name, queries_.copy(value)});
      return {};
    }
    return unknown_field(member.key, known);
  }

  Problem read_headers(JsonValue value) {
    if (!value.is(JsonKind::object)) return wrong_kind("request.headers", "an object", value);
    for (const JsonValue::Member header : value.members()) {
      const std::string_view name = queries_.copy_lower("header:", header.key);
      if (header.value.is(JsonKind::string)) {
        if (auto problem = add_field(name, queries_.copy(header.value.string()))) return problem;
        continue;
      }
      // An array holds the values of a header that was sent more than once.
      if (!header.value.is(JsonKind::array)) return wrong_kind("a header", "a string or an array", header.value);
      for (const JsonValue line : header.value.items()) {
        if (!line.is(JsonKind::string)) return wrong_kind("a line of a header", "a string", line);
        if (auto problem = add_field(name, queries_.copy(line.string()))) return problem;
      }
    }
    return {};
  }

  Problem read_form(JsonValue value) {
    if (!value.is(JsonKind::object)) return wrong_kind("request.form", "an object", value);
    for (const JsonValue::Member field : value.members()) {
      if (!field.value.is(JsonKind::string)) return wrong_kind("a field of the form", "a string", field.value);
      const std::string_view name = queries_.copy(std::string("form:").append(field.key));
      if (auto problem = add_field(name, queries_.copy(field.value.string()))) return problem;
    }
    return {};
  }

  // A header or a form field. The other attributes occur once each, and always have room.
  Problem add_field(std::string_view name, std::string_view value) {
    if (fields_++ == kFieldsMax) {
      return ApiError{413, "too_large",
                      "request has more than " + std::to_string(kFieldsMax) + " headers and form fields"};
    }
    attributes_.push_back({name, value});
    return {};
  }

  Queries& queries_;
  InlineList<Attribute, bounds::attributes_max> attributes_;
  std::size_t fields_ = 0;
  bool path_ = false;
};

// The fields of a check; read_check() decides which may be combined.
struct ParsedCheck {
  ParsedCharge parsed;
  std::span<const NamedCharge> charges;
  std::optional<Order> order;
  std::span<const Attribute> attributes;
};

Problem read_request(JsonValue value, Queries& queries, std::span<const Attribute>& out) {
  RequestBody body(queries);
  if (auto problem = body.read(value)) return problem;
  out = body.take();
  return {};
}

Problem read_member(const JsonValue::Member& member, Queries& queries, ParsedCheck& check) {
  Problem problem;
  if (check.parsed.read(member, problem)) return problem;
  if (member.key == "charges") return read_charges(member.value, queries, check.charges);
  if (member.key == "charge") return read_order(member.value, check.order.emplace(Order::together));
  if (member.key == "request") return read_request(member.value, queries, check.attributes);
  return unknown_field(member.key, "limit, id, cost, tier, charges, charge and request");
}

}  // namespace

std::optional<ApiError> read_check(JsonValue value, Queries& queries, Query& query) {
  query = {};
  if (!value.is(JsonKind::object)) return wrong_kind("a check", "an object", value);
  ParsedCheck check;
  for (const JsonValue::Member member : value.members()) {
    if (auto problem = read_member(member, queries, check)) return problem;
  }
  const ParsedCharge& parsed = check.parsed;
  if (!check.attributes.empty()) {
    if (parsed.limit || parsed.id || parsed.tier || check.order || !check.charges.empty()) {
      return bad_value("request stands alone or with cost: its route says which limits are charged, and how");
    }
    RequestFacts& facts = query.subject.emplace<RequestFacts>();
    facts.attributes = check.attributes;
    if (parsed.has_cost) facts.cost = parsed.cost;
    return {};
  }
  NamedCharges& named = query.subject.emplace<NamedCharges>();
  if (!check.charges.empty()) {
    if (parsed.limit || parsed.id || parsed.tier || parsed.has_cost) {
      return bad_value("limit, id, cost and tier stand inside the charges, not beside them");
    }
    named = {check.charges, check.order.value_or(Order::together)};
    return {};
  }
  if (check.order) return bad_value("charge goes with charges");
  NamedCharge charge;
  if (auto problem = parsed.finish(queries, charge)) return problem;
  named.charges = queries.copy(std::span<const NamedCharge>(&charge, 1));
  return {};
}

std::optional<ApiError> read_throttle(JsonValue value, Queries& queries, Query& query) {
  query = {};
  OwnBucket& own = query.subject.emplace<OwnBucket>();
  if (!value.is(JsonKind::object)) return wrong_kind("a throttle", "an object", value);
  std::optional<std::string_view> key;
  std::optional<std::string_view> period_text;
  std::optional<Count> burst;
  std::optional<Count> count;
  std::optional<Rate> rate;
  for (const JsonValue::Member member : value.members()) {
    Problem problem;
    if (member.key == "key") {
      problem = read_id("key", member.value, key.emplace());
    } else if (member.key == "burst") {
      problem = read_count("burst", member.value, burst.emplace());
    } else if (member.key == "count") {
      problem = read_count("count", member.value, count.emplace());
    } else if (member.key == "period") {
      problem = read_text("period", member.value, period_text.emplace());
    } else if (member.key == "rate") {
      problem = read_rate(member.value, rate);
    } else if (member.key == "cost") {
      problem = read_cost(member.value, own.cost);
    } else {
      problem = unknown_field(member.key, "key, burst, count, period, rate and cost");
    }
    if (problem) return problem;
  }
  if (!key) return missing("key");
  if (key->empty()) return bad_value("key must not be empty");
  if (rate && (count || period_text)) return bad_value("rate replaces count and period; send one or the other");
  if (!rate) {
    if (!count) return missing("count");
    if (!period_text) return missing("period");
    const Result<Duration> period = parse_duration(*period_text);
    if (!period) return bad_value("period: " + period.error().detail);
    rate = Rate{*count, *period};
  }
  const Result<Limit> limit = Limit::make(rate->count, rate->period, burst.value_or(rate->count));
  if (!limit) return bad_value(limit.error().detail);
  own.key = queries.copy(*key);
  own.limit = *limit;
  return {};
}

}  // namespace weir
