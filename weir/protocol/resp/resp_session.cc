#include "weir/protocol/resp/resp_session.h"

#include <charconv>
#include <chrono>
#include <limits>
#include <optional>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/core/limit.h"
#include "weir/protocol/bad_request.h"
#include "weir/protocol/resp/fault_error.h"

namespace weir {
namespace {

constexpr std::string_view kNotAnInteger = "ERR value is not an integer or out of range";

std::optional<std::int64_t> integer(std::string_view text) {
  // Nearly all numbers are short and unsigned, and 18 digits never overflow.
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

// Worded as in Redis: the name and the first words after it, cut to fit on a line.
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

// True if this turn has room for the command's queries.
bool has_room(const Queries& queries, const CommandRow* row, std::span<const std::string_view> words) {
  const std::size_t asks = row != nullptr && row->id == CommandId::del ? words.size() - 1 : 1;
  return queries.all().size() + asks <= bounds::queries_per_turn_max;
}

// True for commands that run at once inside MULTI; all others wait for EXEC.
bool runs_inside_multi(CommandId id) noexcept {
  switch (id) {
    case CommandId::multi:
    case CommandId::exec:
    case CommandId::discard:
    case CommandId::watch:
    case CommandId::quit:
    case CommandId::reset:
      return true;
    default:
      return false;
  }
}

// True for commands with which a client could undo a limit.
bool gives_back(CommandId id) {
  return id == CommandId::weir_refund || id == CommandId::weir_reset || id == CommandId::del;
}

std::string not_negative(std::string_view field, std::int64_t value) {
  return "ERR " + std::string(field) + " " + std::to_string(value) + " must not be negative";
}

}  // namespace

// Returns the view, or a copy that lives as long as the queries if the viewed bytes do not.
std::string_view RespSession::kept(std::string_view view, const resp::Request& request, Queries& queries) const {
  return request.copied() || transaction_.is_running() ? queries.copy(view) : view;
}

bool RespSession::must_pause(std::size_t already, const std::string& out) const noexcept {
  return out.size() - already >= bounds::session_held_bytes_max || !reading();
}

Result<std::size_t> RespSession::receive(std::string_view bytes, Queries& queries, Now) {
  std::string& out = output_.bytes;
  const std::size_t already = out.size();
  output_.touch();
  std::size_t taken = 0;
  resp::Request request;
  while (!ending_ && !must_pause(already, out)) {
    const resp::Parsed parsed = request.parse(bytes.substr(taken));
    if (parsed == resp::Parsed::more) return taken;
    if (parsed == resp::Parsed::broken) return lose(request.problem(), bytes.size(), out);
    const Words words = request.arguments();
    const CommandRow* row = words.empty() ? nullptr : find_command(words[0]);
    if (row != nullptr && row->id == CommandId::exec && words.size() == 1 && transaction_.is_open() &&
        !transaction_.is_aborted()) {
      // EXEC stays at the front of the input until all of its commands have run.
      if (!execute(already, queries, out)) return taken;
      taken += request.size();
      continue;
    }
    if (!has_room(queries, row, words)) return taken;
    const std::string_view command = bytes.substr(taken, request.size());
    taken += request.size();
    if (words.empty()) continue;
    // A web page can make a browser send a form here, whose body would be read as inline commands.
    if (request.is_inline() && (equal_in_any_case(words[0], "post") || equal_in_any_case(words[0], "host:"))) {
      return lose("Protocol error: this looks like HTTP, but this port speaks RESP", bytes.size(), out);
    }
    if (!accept(row, words, out)) continue;
    if (transaction_.is_open() && !runs_inside_multi(row->id)) {
      queue(row->id, command, out);
    } else {
      run(*row, request, queries, out);
    }
  }
  return ending_ ? bytes.size() : taken;
}

// Returns whether the client may send the command with this number of words; if not, replies with the reason. A refused
// command aborts an open transaction, as in Redis. `row` is null if there is no such command.
bool RespSession::accept(const CommandRow* row, Words words, std::string& out) {
  const bool authenticated = client_.authenticated() || (row != nullptr && row->before_auth);
  const int count = static_cast<int>(words.size());
  const bool complete = row != nullptr && count >= row->words_min && (row->words_max == 0 || count <= row->words_max);
  const bool permitted = row == nullptr || !gives_back(row->id) || client_.may_write();
  if (authenticated && complete && permitted) return true;
  if (transaction_.is_open()) transaction_.abort();
  if (!authenticated) {
    refuse("NOAUTH Authentication required.", out);
  } else if (row == nullptr) {
    refuse(unknown_command(words), out);
  } else if (!complete) {
    refuse("ERR wrong number of arguments for '" + std::string(row->name) + "' command", out);
  } else {
    refuse("NOPERM '" + std::string(row->name) + "' needs AUTH with the write password", out);
  }
  return false;
}

// REQUIRES: the transaction is open.
void RespSession::queue(CommandId id, std::string_view command, std::string& out) {
  // Replies depend on the current version and user, so neither may change in the middle of EXEC.
  if (id == CommandId::auth || id == CommandId::hello) {
    transaction_.abort();
    return refuse("ERR Command not allowed inside a transaction", out);
  }
  if (!transaction_.add(command)) {
    return refuse("ERR a transaction holds at most " + std::to_string(bounds::resp_transaction_commands_max) +
                      " commands and " + std::to_string(bounds::resp_transaction_bytes_max) + " bytes",
                  out);
  }
  owed_.write(out, [&](std::string& place) { resp::ReplyWriter(place, client_.version()).simple("QUEUED"); });
}

// Runs the queued commands as far as this turn has room for their queries and replies. Returns false if some are left.
bool RespSession::execute(std::size_t already, Queries& queries, std::string& out) {
  if (!transaction_.is_running()) {
    transaction_.run();
    owed_.write(
        out, [&](std::string& place) { resp::ReplyWriter(place, client_.version()).array(transaction_.commands()); });
  }
  resp::Request request;
  while (!transaction_.rest().empty()) {
    if (must_pause(already, out)) return false;
    const resp::Parsed parsed = request.parse(transaction_.rest());
    WEIR_ASSERT(parsed == resp::Parsed::done);
    const CommandRow* const row = find_command(request.arguments()[0]);
    if (!has_room(queries, row, request.arguments())) return false;
    run(*row, request, queries, out);
    transaction_.done(request.size());
  }
  transaction_.close();
  return true;
}

void RespSession::control_transaction(CommandId id, std::string& out) {
  const bool was_open = transaction_.is_open();
  if (id == CommandId::watch) {
    return refuse(was_open ? "ERR WATCH inside MULTI is not allowed" : "ERR WATCH is not supported", out);
  }
  if (id == CommandId::multi) {
    if (was_open) return refuse("ERR MULTI calls can not be nested", out);
    transaction_.open();
  } else {
    if (!was_open) return refuse(id == CommandId::exec ? "ERR EXEC without MULTI" : "ERR DISCARD without MULTI", out);
    transaction_.close();
    if (id == CommandId::exec) {
      return refuse("EXECABORT Transaction discarded because of previous errors.", out);
    }
  }
  owed_.write(out, [&](std::string& place) { resp::ReplyWriter(place, client_.version()).simple("OK"); });
}

// REQUIRES: accept() returned true.
void RespSession::run(const CommandRow& row, const resp::Request& request, Queries& queries, std::string& out) {
  switch (row.id) {
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
    case CommandId::multi:
    case CommandId::exec:
    case CommandId::discard:
    case CommandId::watch:
      return control_transaction(row.id, out);
    case CommandId::quit:
      ending_ = true;
      break;
    case CommandId::reset:
      transaction_.close();
      break;
    default:
      break;
  }
  owed_.write(out, [&](std::string& place) { client_.answer(row, request.arguments(), place); });
}

// key max_burst count period [cost]. Only here max_burst becomes a burst: redis-cell's bucket holds one token more.
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
  // The maximum cannot be incremented, and is too large either way.
  const bool one_more = form == ReplyForm::cell && *max_burst < std::numeric_limits<std::int64_t>::max();
  const Result<Limit> limit = Limit::make(*count, std::chrono::seconds{*period}, *max_burst + (one_more ? 1 : 0));
  if (!limit) return refuse(error_text(limit.error()), out);
  Query& query = queries.add(owed_.push(form));
  OwnBucket& own = query.subject.emplace<OwnBucket>();
  own.key = kept(words[1], request, queries);
  own.limit = *limit;
  own.cost = *cost;
  query.mode = *cost == 0 ? Mode::peek : Mode::spend;
}

// limit id [cost [tier]].
void RespSession::ask_limit(Mode mode, ReplyForm form, const resp::Request& request, Queries& queries,
                            std::string& out) {
  const Words words = request.arguments();
  const auto cost = words.size() > 3 ? integer(words[3]) : 1;
  if (!cost) return refuse(kNotAnInteger, out);
  if (*cost < 0) return refuse(not_negative("cost", *cost), out);
  Query& query = queries.add(owed_.push(form));
  const std::string_view tier = words.size() > 4 ? kept(words[4], request, queries) : std::string_view{};
  query.subject.emplace<NamedCharges>().charges =
      queries.keep(NamedCharge{kept(words[1], request, queries), kept(words[2], request, queries), *cost, tier});
  query.mode = *cost == 0 && mode == Mode::spend ? Mode::peek : mode;
}

// key …: one query per key, one reply for all.
void RespSession::ask_forget(const resp::Request& request, Queries& queries, std::string& out) {
  const Words keys = request.arguments().subspan(1);
  for (const std::string_view key : keys) {
    if (key.empty()) return refuse("ERR key must not be empty", out);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Query& query = queries.add(owed_.push(i + 1 == keys.size() ? ReplyForm::sum : ReplyForm::part));
    query.subject.emplace<OwnBucket>().key = kept(keys[i], request, queries);
    query.mode = Mode::reset;
  }
}

void RespSession::refuse(std::string_view text, std::string& out) {
  log_bad_request(log_, peer_, text);
  owed_.write(out, [&](std::string& place) { resp::ReplyWriter(place, client_.version()).error(text); });
}

// A framing error: sends the pending answers, then the error, and reads nothing more.
Result<std::size_t> RespSession::lose(std::string_view problem, std::size_t size, std::string& out) {
  ending_ = true;
  refuse("ERR " + std::string(problem), out);
  if (!owed_.empty()) return size;
  return Error{Fault::invalid, std::string(problem)};
}

void RespSession::reply(std::uint64_t token, const Result<Answer>& answer) {
  if (!answer && answer.error().fault != Fault::unavailable) log_bad_request(log_, peer_, answer.error().detail);
  owed_.settle(token, answer, output_.bytes);
  output_.touch();
}

void RespSession::drain(Time) {
  ending_ = true;
  output_.touch();
}

}  // namespace weir
