#include "weir/protocol/resp/resp_session.h"

#include <charconv>
#include <chrono>
#include <limits>
#include <optional>

#include "weir/base/bounds.h"
#include "weir/core/limit.h"
#include "weir/protocol/resp/fault_error.h"

namespace weir {
namespace {

constexpr std::string_view kNotAnInteger = "ERR value is not an integer or out of range";

std::optional<std::int64_t> integer(std::string_view text) {
  // Nearly all are short and have no sign, and a number of 18 digits is never too large.
  constexpr std::size_t kSafeDigits = 18;
  if (!text.empty() && text.size() <= kSafeDigits) {
    std::uint64_t plain = 0;
    bool digits = true;
    for (const char c : text) {
      digits = digits && c >= '0' && c <= '9';
      plain = plain * 10 + (static_cast<unsigned char>(c) - std::uint64_t{'0'});
    }
    if (digits) return static_cast<std::int64_t>(plain);
  }
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// As Redis words it: the name and the first words after it, cut to a length that fits a line.
std::string unknown_command(std::span<const std::string_view> words) {
  std::string text = "ERR unknown command '" + std::string(words[0].substr(0, 128)) + "', with args beginning with: ";
  std::size_t room = 128;
  for (const std::string_view word : words.subspan(1)) {
    if (room == 0) break;
    const std::string_view shown = word.substr(0, room);
    text.append("'").append(shown).append("' ");
    room -= shown.size();
  }
  return text;
}

// How many queries a command asks at most.
std::size_t queries_of(const CommandRow* row, std::span<const std::string_view> words) {
  return row != nullptr && row->id == CommandId::del ? words.size() - 1 : 1;
}

// The view, or a copy that lives as long as the queries where the view would not.
std::string_view kept(std::string_view view, const resp::Request& request, Queries& queries) {
  return request.copied() ? queries.keep(std::string(view)) : view;
}

std::string not_negative(std::string_view field, std::int64_t value) {
  return "ERR " + std::string(field) + " " + std::to_string(value) + " must not be negative";
}

}  // namespace

Result<std::size_t> RespSession::receive(std::string_view bytes, Queries& queries, std::string& out) {
  const std::size_t already = out.size();
  std::size_t taken = 0;
  resp::Request request;
  while (!ending_) {
    if (out.size() - already >= bounds::session_held_bytes_max) return taken;
    if (owed_.after_bytes() >= bounds::session_held_bytes_max) return taken;
    const resp::Parsed parsed = request.parse(bytes.substr(taken));
    if (parsed == resp::Parsed::more) return taken;
    if (parsed == resp::Parsed::broken) return lose(request.problem(), bytes.size(), out);
    const Words words = request.arguments();
    const CommandRow* row = words.empty() ? nullptr : find_command(words[0]);
    if (queries.all().size() + queries_of(row, words) > bounds::queries_per_turn_max) return taken;
    taken += request.size();
    if (words.empty()) continue;
    // A web page can make a browser send a form here, and its body would be read as inline commands.
    if (request.is_inline() && (equal_in_any_case(words[0], "post") || equal_in_any_case(words[0], "host:"))) {
      return lose("Protocol error: this is HTTP, and here RESP is spoken", bytes.size(), out);
    }
    run(row, request, queries, out);
  }
  return bytes.size();
}

// `row` is null if there is no such command.
void RespSession::run(const CommandRow* row, const resp::Request& request, Queries& queries, std::string& out) {
  const Words words = request.arguments();
  if (!client_.authenticated() && (row == nullptr || !row->before_auth)) {
    return refuse("NOAUTH Authentication required.", out);
  }
  if (row == nullptr) return refuse(unknown_command(words), out);
  const int count = static_cast<int>(words.size());
  if (count < row->words_min || (row->words_max > 0 && count > row->words_max)) {
    return refuse("ERR wrong number of arguments for '" + std::string(row->name) + "' command", out);
  }
  switch (row->id) {
    case CommandId::cl_throttle:
      return ask_bucket(ReplyForm::cell, request, queries, out);
    case CommandId::throttle:
      return ask_bucket(ReplyForm::crab, request, queries, out);
    case CommandId::weir_check:
      return ask_limit(Mode::spend, ReplyForm::numbers, request, queries, out);
    case CommandId::weir_peek:
      return ask_limit(Mode::peek, ReplyForm::numbers, request, queries, out);
    case CommandId::weir_refund:
      return ask_limit(Mode::refund, ReplyForm::numbers, request, queries, out);
    case CommandId::weir_reset:
      return ask_limit(Mode::reset, ReplyForm::forgotten, request, queries, out);
    case CommandId::del:
      return ask_forget(request, queries, out);
    case CommandId::quit:
      ending_ = true;
      [[fallthrough]];
    default:
      owed_.say(out, [&](std::string& place) { client_.answer(*row, words, place); });
  }
}

// key max_burst count period [cost]. The one place where max_burst becomes a burst: redis-cell's bucket holds one more.
void RespSession::ask_bucket(ReplyForm form, const resp::Request& request, Queries& queries, std::string& out) {
  const Words words = request.arguments();
  const auto max_burst = integer(words[2]);
  const auto count = integer(words[3]);
  const auto period = integer(words[4]);
  const auto cost = words.size() > 5 ? integer(words[5]) : 1;
  if (!max_burst || !count || !period || !cost) return refuse(kNotAnInteger, out);
  if (*count < 1 || *period < 1) return refuse("ERR rate must be positive", out);
  if (*cost < 0) return refuse(not_negative("cost", *cost), out);
  if (words[1].empty()) return refuse("ERR key must not be empty", out);
  const std::int64_t least = form == ReplyForm::cell ? 0 : 1;
  if (*max_burst < least) {
    return refuse("ERR max_burst " + std::to_string(*max_burst) + " must be at least " + std::to_string(least), out);
  }
  constexpr std::int64_t period_max = std::chrono::duration_cast<std::chrono::seconds>(Duration::max()).count();
  if (*period > period_max) {
    return refuse("ERR period " + std::to_string(*period) + " is more than " + std::to_string(period_max) + " seconds",
                  out);
  }
  // The largest of all integers has no next one, and is too large either way.
  const bool one_more = form == ReplyForm::cell && *max_burst < std::numeric_limits<std::int64_t>::max();
  const Result<Limit> limit = Limit::make(*count, std::chrono::seconds{*period}, *max_burst + (one_more ? 1 : 0));
  if (!limit) return refuse(error_text(limit.error()), out);
  Query& query = queries.add(owed_.push(form));
  query.key = kept(words[1], request, queries);
  query.limit = *limit;
  query.cost = *cost;
  query.mode = *cost == 0 ? Mode::peek : Mode::spend;
}

// limit id [cost].
void RespSession::ask_limit(Mode mode, ReplyForm form, const resp::Request& request, Queries& queries,
                            std::string& out) {
  const Words words = request.arguments();
  const auto cost = words.size() > 3 ? integer(words[3]) : 1;
  if (!cost) return refuse(kNotAnInteger, out);
  if (*cost < 0) return refuse(not_negative("cost", *cost), out);
  Query& query = queries.add(owed_.push(form));
  query.charges = queries.keep(NamedCharge{kept(words[1], request, queries), kept(words[2], request, queries), *cost});
  query.cost = *cost;
  query.mode = *cost == 0 && mode == Mode::spend ? Mode::peek : mode;
}

// key …: one query each, one reply for all.
void RespSession::ask_forget(const resp::Request& request, Queries& queries, std::string& out) {
  const Words keys = request.arguments().subspan(1);
  for (const std::string_view key : keys) {
    if (key.empty()) return refuse("ERR key must not be empty", out);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Query& query = queries.add(owed_.push(i + 1 == keys.size() ? ReplyForm::sum : ReplyForm::part));
    query.key = kept(keys[i], request, queries);
    query.mode = Mode::reset;
  }
}

void RespSession::refuse(std::string_view text, std::string& out) {
  owed_.say(out, [&](std::string& place) { resp::ReplyWriter(place, client_.version()).error(text); });
}

// The framing is lost: what is owed is still answered, then the last words, and nothing more is read.
Result<std::size_t> RespSession::lose(std::string_view problem, std::size_t size, std::string& out) {
  ending_ = true;
  refuse("ERR " + std::string(problem), out);
  if (!owed_.empty()) return size;
  return Error{Fault::invalid, std::string(problem)};
}

void RespSession::reply(std::uint64_t sequence, const Result<Answer>& answer, std::string& out) {
  owed_.settle(sequence, answer, out);
}

void RespSession::drain(std::string& out) {
  (void)out;
  ending_ = true;
}

}  // namespace weir
