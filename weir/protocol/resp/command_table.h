// The RESP commands: their names, how many words they take, and what COMMAND reports about them.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "weir/wire/resp.h"

namespace weir {

enum class CommandId : unsigned char {
  cl_throttle,
  throttle,
  weir_check,
  weir_peek,
  weir_refund,
  weir_reset,
  del,
  auth,
  client,
  command,
  config,
  echo,
  hello,
  info,
  ping,
  quit,
  reset,
  select,
  multi,
  exec,
  discard,
  watch,
};

struct CommandRow {
  std::string_view name;  // in lower case
  CommandId id;
  int words_min;  // including the name
  int words_max;  // 0: no maximum
  bool write;     // spends or forgets tokens
  int first_key;  // position of the first key; 0: no keys
  int last_key;   // position of the last key, -1: the last word
  bool before_auth;
  std::string_view group;
  std::string_view usage;  // its arguments: [optional], repeated...
  std::string_view summary;
};

// The most frequent commands come first, because the table is searched in this order.
inline constexpr std::array<CommandRow, 22> kCommandTable{{
    {"cl.throttle", CommandId::cl_throttle, 5, 6, true, 1, 1, false, "weir", "key max_burst count period [cost]",
     "Spends from a bucket of max_burst + 1 tokens; answers as redis-cell does."},
    {"throttle", CommandId::throttle, 5, 6, true, 1, 1, false, "weir", "key max_burst count period [cost]",
     "Spends from a bucket of max_burst tokens; answers as throttlecrab does."},
    {"weir.check", CommandId::weir_check, 3, 5, true, 2, 2, false, "weir", "limit id [cost] [tier]",
     "Spends from a configured limit."},
    {"weir.peek", CommandId::weir_peek, 3, 5, false, 2, 2, false, "weir", "limit id [cost] [tier]",
     "Tells what WEIR.CHECK would answer; spends nothing."},
    {"weir.refund", CommandId::weir_refund, 3, 5, true, 2, 2, false, "weir", "limit id [cost] [tier]",
     "Gives tokens back to a configured limit."},
    {"weir.reset", CommandId::weir_reset, 3, 3, true, 2, 2, false, "weir", "limit id",
     "Forgets a configured limit's bucket."},
    {"del", CommandId::del, 2, 0, true, 1, -1, false, "weir", "key...", "Forgets buckets of CL.THROTTLE and THROTTLE."},
    {"ping", CommandId::ping, 1, 2, false, 0, 0, false, "connection", "[message]", "Answers PONG, or the message."},
    {"echo", CommandId::echo, 2, 2, false, 0, 0, false, "connection", "message", "Answers the message."},
    {"hello", CommandId::hello, 1, 0, false, 0, 0, true, "connection", "[version]", "Chooses the protocol's version."},
    {"auth", CommandId::auth, 2, 3, false, 0, 0, true, "connection", "[username] password", "Gives the password."},
    {"select", CommandId::select, 2, 2, false, 0, 0, false, "connection", "index",
     "Chooses a database: there is 0 only."},
    {"client", CommandId::client, 2, 0, false, 0, 0, false, "connection", "subcommand [argument...]",
     "Names this connection, or tells about it."},
    {"command", CommandId::command, 1, 0, false, 0, 0, false, "server", "[subcommand] [name...]",
     "Tells which commands there are."},
    {"config", CommandId::config, 2, 0, false, 0, 0, false, "server", "GET name...",
     "Tells clients that ask what a Redis without persistence would."},
    {"info", CommandId::info, 1, 0, false, 0, 0, false, "server", "[section...]", "Tells which server this is."},
    {"quit", CommandId::quit, 1, 0, false, 0, 0, true, "connection", "", "Says goodbye."},
    {"reset", CommandId::reset, 1, 1, false, 0, 0, false, "connection", "", "Makes this connection as new."},
    {"multi", CommandId::multi, 1, 1, false, 0, 0, false, "transactions", "", "Starts queueing commands for EXEC."},
    {"exec", CommandId::exec, 1, 1, true, 0, 0, false, "transactions", "", "Runs the queued commands one by one."},
    {"discard", CommandId::discard, 1, 1, false, 0, 0, false, "transactions", "", "Drops the queued commands."},
    {"watch", CommandId::watch, 2, 0, false, 1, -1, false, "transactions", "key...", "Not supported: always an error."},
}};

// Ignores case. Returns nullptr if there is no such command.
const CommandRow* find_command(std::string_view name) noexcept;

// True if they are equal, ignoring the case of ASCII letters. `lower` is in lower case.
bool equal_in_any_case(std::string_view text, std::string_view lower) noexcept;

// The answer to COMMAND and its subcommands; `arguments` starts with the word COMMAND.
void answer_command(std::span<const std::string_view> arguments, resp::ReplyWriter& writer);

// "ERR unknown subcommand 'x'. Try CLIENT HELP."
void unknown_subcommand(std::string_view subcommand, std::string_view upper_command, resp::ReplyWriter& writer);

}  // namespace weir
