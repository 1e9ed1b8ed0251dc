#include "weir/simulate/trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/text.h"

namespace weir::simulate {
namespace {

Error broken(std::string sentence) {
  return Error{Fault::invalid, std::move(sentence)};
}

Error wrong_kind(std::string_view key, std::string_view wanted, JsonValue found) {
  return broken(std::string(key) + " must be " + std::string(wanted) + ", not " + std::string(name_of(found.kind())));
}

// Returns a JSON number without its sign and exponent: "5e-05" becomes "0.00005". A number beyond any time, or much
// finer than a nanosecond, remains so but gets fewer digits.
std::string plain(std::string_view number) {
  constexpr std::int64_t kDigitsMax = 40;
  const std::size_t e = number.find_first_of("eE");
  const std::string_view mantissa = number.substr(0, e);
  std::string_view exponent = e == std::string_view::npos ? "0" : number.substr(e + 1);
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  constexpr std::int64_t kFar = std::int64_t{2} * bounds::json_bytes_max;
  std::int64_t power = exponent.starts_with('-') ? -kFar : kFar;
  std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);  // out of range: stays ±kFar
  const std::size_t dot = std::min(mantissa.find('.'), mantissa.size());
  std::string digits(mantissa.substr(0, dot));
  if (dot < mantissa.size()) digits += mantissa.substr(dot + 1);
  const std::size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  if (zeros == digits.size()) return "0";
  digits.erase(0, zeros);
  const std::int64_t before = std::clamp(static_cast<std::int64_t>(dot) - static_cast<std::int64_t>(zeros) + power,
                                         -kDigitsMax, kDigitsMax);  // digits before the point
  if (before <= 0) return "0." + std::string(static_cast<std::size_t>(-before), '0') + digits;
  const auto whole = static_cast<std::size_t>(before);
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  return digits.substr(0, whole) + (digits.size() > whole ? "." + digits.substr(whole) : "");
}

Result<Duration> read_time(std::optional<JsonValue> value) {
  if (!value) return broken("t is missing: the time of this line in seconds");
  if (!value->is(JsonKind::number)) return wrong_kind("t", "a number of seconds", *value);
  const std::string_view text = value->number();
  const bool negative = text.starts_with('-');
  const std::string number = plain(negative ? text.substr(1) : text);
  if (negative && number != "0") return broken("t " + quote(text) + " must not be negative");
  const Result<Duration> seconds = parse_seconds(number);
  if (seconds && *seconds <= bounds::trace_time_max) return seconds;
  if (seconds || seconds.error().fault == Fault::too_large) {
    return broken("t " + quote(text) + " is more than " + print_seconds(bounds::trace_time_max) + " seconds");
  }
  return broken("t " + quote(text) + " is finer than a nanosecond");
}

Result<void> read_text(std::string_view key, JsonValue value, std::string_view& out) {
  if (!value.is(JsonKind::string)) return wrong_kind(key, "a string", value);
  out = value.string();
  return {};
}

Result<void> read_cost(JsonValue value, Count& out) {
  if (!value.is(JsonKind::number)) return wrong_kind("cost", "a whole number", value);
  const std::optional<std::int64_t> cost = value.integer();
  if (!cost || *cost < 0)
    return broken("cost " + quote(value.number()) + " must be a whole number from 0 to 9223372036854775807");
  out = *cost;
  return {};
}

// Reads one of the words that a key may have, and returns what it means.
template <class T, std::size_t n>
Result<void> read_word(std::string_view key, JsonValue value,
                       const std::array<std::pair<std::string_view, T>, n>& words, T& out) {
  std::string_view text;
  if (auto read = read_text(key, value, text); !read) return read;
  std::string known;
  for (const auto& [word, meaning] : words) {
    if (word == text) {
      out = meaning;
      return {};
    }
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  return broken(std::string(key) + " " + quote(text) + " must be one of " + known);
}

constexpr std::array<std::pair<std::string_view, Mode>, 4> kModes{
    {{"spend", Mode::spend}, {"peek", Mode::peek}, {"refund", Mode::refund}, {"reset", Mode::reset}}};
constexpr std::array<std::pair<std::string_view, Order>, 2> kOrders{
    {{"together", Order::together}, {"in-order", Order::in_order}}};

Error unknown_key(std::string_view key, std::string_view known) {
  return broken("unknown key " + quote(key) + "; the keys are " + std::string(known));
}

// Which keys a charge has.
struct Seen {
  bool limit = false;
  bool id = false;
  bool cost = false;
  bool any() const noexcept { return limit || id || cost; }
};

// Reads limit, id or cost; returns false for any other key.
Result<bool> read_charge_key(const JsonValue::Member& member, NamedCharge& charge, Seen& seen) {
  Result<void> read;
  if (member.key == "limit") {
    seen.limit = true;
    read = read_text("limit", member.value, charge.limit);
  } else if (member.key == "id") {
    seen.id = true;
    read = read_text("id", member.value, charge.id);
  } else if (member.key == "cost") {
    seen.cost = true;
    read = read_cost(member.value, charge.cost);
  } else {
    return false;
  }
  if (!read) return read.error();
  return true;
}

Result<void> complete(const Seen& seen) {
  if (!seen.limit) return broken("limit is missing: the name of the limit to charge");
  if (!seen.id) return broken("id is missing: whose bucket of the limit to charge");
  return {};
}

Result<void> read_charges(JsonValue value, std::vector<NamedCharge>& out) {
  if (!value.is(JsonKind::array)) return wrong_kind("charges", "an array", value);
  for (const JsonValue item : value.items()) {
    const std::string place = "charges[" + std::to_string(out.size()) + "]";
    if (out.size() == bounds::charges_max) {
      return broken("charges has more than " + std::to_string(bounds::charges_max) + " entries");
    }
    if (!item.is(JsonKind::object)) return wrong_kind(place, "an object", item);
    NamedCharge& charge = out.emplace_back();
    Seen seen;
    for (const JsonValue::Member member : item.members()) {
      const Result<bool> taken = read_charge_key(member, charge, seen);
      if (!taken) return broken(place + ": " + taken.error().detail);
      if (!*taken) return broken(place + ": " + unknown_key(member.key, "limit, id and cost").detail);
    }
    if (auto whole = complete(seen); !whole) return broken(place + ": " + whole.error().detail);
  }
  if (out.empty()) return broken("charges is empty: there is nothing to charge");
  return {};
}

void write_seconds(std::string_view key, Duration seconds, JsonWriter& json) {
  json.key(key).number(seconds == kNever ? "-1" : print_seconds(seconds));
}

}  // namespace

Query TraceLine::query() const noexcept {
  return {NamedCharges{charges, order}, mode};
}

Result<void> TraceReader::read(std::string_view line, TraceLine& out) {
  out.t.reset();
  out.charges.clear();
  out.mode = Mode::spend;
  out.order = Order::together;
  const Result<JsonValue> root = json_.read(line);
  if (!root) return root.error();
  if (!root->is(JsonKind::object)) return wrong_kind("a line", "an object", *root);
  const Result<Duration> time = read_time(root->find("t"));
  if (!time) return time.error();
  out.t = *time;

  NamedCharge single;
  Seen seen;
  std::optional<JsonValue> charges;
  bool ordered = false;
  for (const JsonValue::Member member : root->members()) {
    if (member.key == "t") continue;
    const Result<bool> taken = read_charge_key(member, single, seen);
    if (!taken) return taken.error();
    if (*taken) continue;
    if (member.key == "charges") {
      charges = member.value;
    } else if (member.key == "op") {
      if (auto read = read_word("op", member.value, kModes, out.mode); !read) return read;
    } else if (member.key == "charge") {
      ordered = true;
      if (auto read = read_word("charge", member.value, kOrders, out.order); !read) return read;
    } else {
      return unknown_key(member.key, "t, limit, id, cost, op, charges and charge");
    }
  }
  if (charges) {
    if (seen.any()) return broken("limit, id and cost stand inside charges when there is charges");
    return read_charges(*charges, out.charges);
  }
  if (ordered) return broken("charge says how charges are taken, and there is no charges");
  if (auto whole = complete(seen); !whole) return whole;
  out.charges.push_back(single);
  return {};
}

void write_answer(Duration t, const Answer& answer, std::string& out) {
  const Decision& decision = answer.decision;
  JsonWriter json(out);
  json.begin_object();
  write_seconds("t", t, json);
  json.key("limit").string(answer.limit).key("id").string(answer.id);
  json.key("allowed").boolean(decision.allowed);
  json.key("remaining").number(answer.bounded ? decision.remaining : -1);
  write_seconds("retry_after", decision.retry_after, json);
  write_seconds("reset_after", decision.reset_after, json);
  write_seconds("tat", decision.reset_after == kNever ? kNever : t + decision.reset_after, json);
  json.end_object();
  out += '\n';
}

void write_error(std::optional<Duration> t, std::string_view sentence, std::string& out) {
  JsonWriter json(out);
  json.begin_object().key("t");
  if (t) {
    json.number(print_seconds(*t));
  } else {
    json.null();
  }
  json.key("error").string(sentence).end_object();
  out += '\n';
}

}  // namespace weir::simulate
