#include "weir/protocol/http/answer_json.h"

#include <algorithm>

#include "weir/base/text_writer.h"
#include "weir/core/identifier.h"
#include "weir/protocol/http/ratelimit_headers.h"
#include "weir/wire/json.h"

namespace weir {
namespace {

constexpr std::string_view kTooMany = "Too many requests. Please try again later.";
constexpr std::string_view kBlocked = "This client is blocked.";
constexpr std::string_view kNeverPasses = "This request can never pass the limit.";
constexpr std::string_view kNoAccess = "Access is denied to this client.";

// Most of what this server writes: the punctuation is spelt out, only values are computed.
void write_text(std::string_view name, std::string_view value, TextWriter& out) {
  out.text(name);
  if (std::all_of(value.begin(), value.end(), JsonWriter::is_plain)) {
    out.character('"').text(value).character('"');
    return;
  }
  std::string escaped;
  JsonWriter(escaped).string(value);
  out.text(escaped);
}

void write_seconds(std::string_view name, Duration wait, TextWriter& out) {
  out.text(name);
  if (wait == kNever) {
    out.text("-1");
  } else {
    out.seconds(wait);
  }
}

void write_names(const Label& label, TextWriter& out) {
  write_text("\"limit\":", label.limit, out);
  write_text(",\"id\":", label.id, out);
}

void write_numbers(const Decision& decision, TextWriter& out) {
  out.text(",\"burst\":").integer(decision.burst);
  out.text(",\"remaining\":").integer(decision.remaining);
  write_seconds(",\"retry_after\":", decision.retry_after, out);
  write_seconds(",\"reset_after\":", decision.reset_after, out);
}

// Where the strictest decision's names and numbers are in the output. write_decision() copies them from there.
struct SpeakerText {
  std::size_t names = 0;
  std::size_t numbers = 0;
  std::size_t end = 0;
};

SpeakerText write_speaker(const Decision& decision, const Label& label, TextWriter& out) {
  SpeakerText text;
  text.names = out.character(',').size();
  write_names(label, out);
  text.numbers = out.size();
  write_numbers(decision, out);
  text.end = out.size();
  return text;
}

std::string_view print_allowed(const Decision& decision) noexcept {
  return decision.allowed ? "\"allowed\":true" : "\"allowed\":false";
}

void write_origin(const BucketLabel& bucket, TextWriter& out) {
  write_text(",\"bucket\":", bucket.key, out);
  write_text(",\"source\":", print(bucket.source), out);
}

// One half of a limit that has a rate and a quota.
void write_half(std::string_view name, const Decision& decision, const BucketLabel& bucket, bool explain,
                TextWriter& out) {
  out.text(name).text(print_allowed(decision));
  write_numbers(decision, out);
  if (explain) write_origin(bucket, out);
  out.character('}');
}

// `text`: null unless this is the strictest decision.
void write_decision(const LimitDecision& decided, const Label& label, const SpeakerText* text, bool explain,
                    TextWriter& out) {
  const Decision& decision = decided.strictest();
  out.character('{');
  if (text != nullptr) {
    out.again(text->names, text->numbers).character(',').text(print_allowed(decision)).again(text->numbers, text->end);
  } else {
    write_names(label, out);
    out.character(',').text(print_allowed(decision));
    write_numbers(decision, out);
  }
  out.text(label.shadow ? ",\"shadow\":true" : ",\"shadow\":false");
  if (explain) write_origin(label.half(decided.stricter()), out);
  if (decided.has_both()) {
    write_half(",\"rate\":{", *decided.half(Kind::bucket), label.rate, explain, out);
    write_half(",\"quota\":{", *decided.half(Kind::quota), label.quota, explain, out);
  }
  out.character('}');
}

void write_explanation(const Answer& answer, TextWriter& out) {
  if (answer.route.empty()) {
    out.text(",\"route\":null");
  } else {
    write_text(",\"route\":", answer.route, out);
  }
  out.text(",\"limits\":[");
  std::string_view before;
  for (std::size_t i = 0; i < answer.labelled; ++i) {
    const std::string_view limit = answer.labels[i].limit;
    if (limit.empty() || limit == before) continue;
    write_text(before.empty() ? "" : ",", limit, out);
    before = limit;
  }
  out.character(']');
}

}  // namespace

void write_answer(const Answer& answer, bool explain, Denial denial, std::string& to) {
  const Verdict& verdict = answer.verdict;
  TextWriter out(to);
  out.text(verdict.allowed ? "{\"allowed\":true" : "{\"allowed\":false");
  SpeakerText text;
  bool as_decided = true;
  if (!verdict.all.empty()) {
    Decision speaker = verdict.speaker();
    // Only a shadow denied: no client waits.
    as_decided = !verdict.allowed || speaker.allowed;
    if (!as_decided) speaker.retry_after = Duration::zero();
    text = write_speaker(speaker, answer.labels[verdict.strictest], out);
  }
  out.text(",\"decisions\":[");
  for (std::size_t i = 0; i < verdict.all.size(); ++i) {
    if (i > 0) out.character(',');
    const bool said_before = as_decided && i == verdict.strictest;
    write_decision(verdict.all[i], answer.labels[i], said_before ? &text : nullptr, explain, out);
  }
  out.character(']');
  if (explain) write_explanation(answer, out);
  if (verdict.degraded) out.text(",\"degraded\":true");
  if (denial == Denial::explained) {
    const bool no_access = answer.access == Access::deny_listed;
    write_text(",\"error\":", no_access ? "access denied" : "rate limit exceeded", out);
    write_text(",\"message\":", denial_message(answer), out);
    if (!verdict.all.empty()) write_text(",\"identifier\":", identifier_of(answer.labels[verdict.strictest]), out);
  }
  out.character('}');
}

std::string_view denial_message(const Answer& answer) noexcept {
  if (answer.access == Access::deny_listed) return kNoAccess;
  const Verdict& verdict = answer.verdict;
  if (verdict.all.empty() || verdict.speaker().retry_after != kNever) return kTooMany;
  return verdict.speaker().burst == 0 ? kBlocked : kNeverPasses;
}

void write_denial_problem(const Answer& answer, std::string& out) {
  const Verdict& verdict = answer.verdict;
  JsonWriter json(out);
  json.begin_object();
  if (answer.access == Access::deny_listed) {
    json.key("type").string("about:blank").key("title").string("Forbidden").key("status").number(std::int64_t{403});
    json.key("detail").string(denial_message(answer)).end_object();
    return;
  }
  json.key("type").string("https://iana.org/assignments/http-problem-types#quota-exceeded");
  json.key("title").string("Request cannot be satisfied as assigned quota has been exceeded");
  json.key("status").number(std::int64_t{429});
  json.key("detail").string(denial_message(answer));
  json.key("violated-policies").begin_array();
  for (std::size_t i = 0; i < verdict.all.size(); ++i) {
    if (answer.labels[i].shadow) continue;
    for (const Kind kind : {Kind::bucket, Kind::quota}) {
      const Decision* const half = verdict.all[i].half(kind);
      if (half == nullptr || half->allowed) continue;
      std::string name(policy_name(answer.labels[i]));
      if (verdict.all[i].has_both() && kind == Kind::quota) name += kQuotaSuffix;
      json.string(name);
    }
  }
  json.end_array().end_object();
}

}  // namespace weir
