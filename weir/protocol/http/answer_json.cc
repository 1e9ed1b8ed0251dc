#include "weir/protocol/http/answer_json.h"

#include "weir/base/text.h"
#include "weir/core/identifier.h"
#include "weir/protocol/http/ratelimit_headers.h"
#include "weir/wire/json.h"

namespace weir {
namespace {

constexpr std::string_view kTooMany = "Too many requests. Please try again later.";
constexpr std::string_view kBlocked = "This client is blocked.";
constexpr std::string_view kNoAccess = "Access is denied to this client.";

std::string_view message_of(const Answer& answer) noexcept {
  if (answer.access == Access::deny_listed) return kNoAccess;
  const Verdict& verdict = answer.verdict;
  return !verdict.all.empty() && verdict.all[verdict.strictest].retry_after == kNever ? kBlocked : kTooMany;
}

// Most of what this server writes: the punctuation is spelt out, only values are computed.
void write_text(std::string_view name, std::string_view value, std::string& out) {
  out += name;
  JsonWriter(out).string(value);
}

void write_seconds(std::string_view name, Duration wait, std::string& out) {
  out += name;
  if (wait == kNever) {
    out += "-1";
  } else {
    append_seconds(wait, out);
  }
}

void write_numbers(const Decision& decision, std::string& out) {
  out += ",\"burst\":";
  append_integer(decision.burst, out);
  out += ",\"remaining\":";
  append_integer(decision.remaining, out);
  write_seconds(",\"retry_after\":", decision.retry_after, out);
  write_seconds(",\"reset_after\":", decision.reset_after, out);
}

void write_decision(const Decision& decision, const Label& label, bool explain, std::string& out) {
  write_text("{\"limit\":", label.limit, out);
  write_text(",\"id\":", label.id, out);
  out += decision.allowed ? ",\"allowed\":true" : ",\"allowed\":false";
  write_numbers(decision, out);
  out += label.shadow ? ",\"shadow\":true" : ",\"shadow\":false";
  if (explain) {
    write_text(",\"bucket\":", label.bucket, out);
    write_text(",\"source\":", label.source, out);
  }
  out += '}';
}

// A limit's bucket and quota stand side by side and are named once.
void write_explanation(const Answer& answer, std::string& out) {
  out += ",\"route\":";
  if (answer.route.empty()) {
    out += "null";
  } else {
    JsonWriter(out).string(answer.route);
  }
  out += ",\"limits\":[";
  std::string_view before;
  for (std::size_t i = 0; i < answer.labelled; ++i) {
    const std::string_view limit = answer.labels[i].limit;
    if (limit.empty() || limit == before) continue;
    if (!before.empty()) out += ',';
    JsonWriter(out).string(limit);
    before = limit;
  }
  out += ']';
}

}  // namespace

void write_answer(const Answer& answer, bool explain, Denial denial, std::string& out) {
  const Verdict& verdict = answer.verdict;
  out += verdict.allowed ? "{\"allowed\":true" : "{\"allowed\":false";
  if (!verdict.all.empty()) {
    const Label& label = answer.labels[verdict.strictest];
    write_text(",\"limit\":", label.limit, out);
    write_text(",\"id\":", label.id, out);
    write_numbers(verdict.all[verdict.strictest], out);
  }
  out += ",\"decisions\":[";
  for (std::size_t i = 0; i < verdict.all.size(); ++i) {
    if (i > 0) out += ',';
    write_decision(verdict.all[i], answer.labels[i], explain, out);
  }
  out += ']';
  if (explain) write_explanation(answer, out);
  if (verdict.degraded) out += ",\"degraded\":true";
  if (denial == Denial::explained) {
    const bool no_access = answer.access == Access::deny_listed;
    write_text(",\"error\":", no_access ? "access denied" : "rate limit exceeded", out);
    write_text(",\"message\":", message_of(answer), out);
    if (!verdict.all.empty()) write_text(",\"identifier\":", identifier_of(answer.labels[verdict.strictest]), out);
  }
  out += '}';
}

void write_denial_problem(const Answer& answer, std::string& out) {
  const Verdict& verdict = answer.verdict;
  JsonWriter json(out);
  json.begin_object();
  if (answer.access == Access::deny_listed) {
    json.key("type").string("about:blank").key("title").string("Forbidden").key("status").number(std::int64_t{403});
    json.key("detail").string(message_of(answer)).end_object();
    return;
  }
  json.key("type").string("https://iana.org/assignments/http-problem-types#quota-exceeded");
  json.key("title").string("Request cannot be satisfied as assigned quota has been exceeded");
  json.key("status").number(std::int64_t{429});
  json.key("detail").string(message_of(answer));
  json.key("violated-policies").begin_array();
  for (std::size_t i = 0; i < verdict.all.size(); ++i) {
    if (!verdict.all[i].allowed && !answer.labels[i].shadow) json.string(policy_name(answer.labels[i]));
  }
  json.end_array().end_object();
}

void write_error(std::string_view code, std::string_view message, std::string& out) {
  JsonWriter(out).begin_object().key("error").string(code).key("message").string(message).end_object();
}

}  // namespace weir
