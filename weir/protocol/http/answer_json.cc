#include "weir/protocol/http/answer_json.h"

#include "weir/base/text.h"
#include "weir/protocol/http/ratelimit_headers.h"
#include "weir/wire/json.h"

namespace weir {
namespace {

constexpr std::string_view kTooMany = "Too many requests. Please try again later.";
constexpr std::string_view kBlocked = "This client is blocked.";

std::string_view message_of(const Answer& answer) noexcept {
  const Verdict& verdict = answer.verdict;
  return !verdict.all.empty() && verdict.all[verdict.strictest].retry_after == kNever ? kBlocked : kTooMany;
}

void write_seconds(JsonWriter& json, Duration wait) {
  if (wait == kNever) {
    json.number(std::int64_t{-1});
  } else {
    json.number(print_seconds(wait));
  }
}

void write_numbers(JsonWriter& json, const Decision& decision) {
  json.key("burst").number(decision.burst).key("remaining").number(decision.remaining);
  json.key("retry_after");
  write_seconds(json, decision.retry_after);
  json.key("reset_after");
  write_seconds(json, decision.reset_after);
}

void write_decision(JsonWriter& json, const Decision& decision, const Label& label, bool explain) {
  json.begin_object().key("limit").string(label.limit).key("id").string(label.id);
  json.key("allowed").boolean(decision.allowed);
  write_numbers(json, decision);
  json.key("shadow").boolean(label.shadow);
  if (explain) json.key("bucket").string(label.bucket).key("source").string(label.source);
  json.end_object();
}

}  // namespace

void write_answer(const Answer& answer, bool explain, Denial denial, std::string& out) {
  const Verdict& verdict = answer.verdict;
  JsonWriter json(out);
  json.begin_object().key("allowed").boolean(verdict.allowed);
  if (!verdict.all.empty()) {
    const Label& label = answer.labels[verdict.strictest];
    json.key("limit").string(label.limit).key("id").string(label.id);
    write_numbers(json, verdict.all[verdict.strictest]);
  }
  json.key("decisions").begin_array();
  for (std::size_t i = 0; i < verdict.all.size(); ++i) {
    write_decision(json, verdict.all[i], answer.labels[i], explain);
  }
  json.end_array();
  if (verdict.degraded) json.key("degraded").boolean(true);
  if (denial == Denial::explained) {
    json.key("error").string("rate limit exceeded").key("message").string(message_of(answer));
    if (!verdict.all.empty()) json.key("identifier").string(identifier_of(answer.labels[verdict.strictest]));
  }
  json.end_object();
}

void write_denial_problem(const Answer& answer, std::string& out) {
  const Verdict& verdict = answer.verdict;
  JsonWriter json(out);
  json.begin_object();
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

std::string identifier_of(const Label& label) {
  if (label.key == "global") return "global";
  if (label.limit.empty()) return std::string(label.id);
  const std::string_view kind = label.key == "ip" || label.key == "apikey" ? label.key : label.limit;
  std::string identifier(kind);
  return identifier.append(":").append(label.id);
}

}  // namespace weir
