#include "weir/protocol/resp/resp_client.h"

#include <algorithm>

#include "weir/base/bounds.h"
#include "weir/base/secret.h"

namespace weir {
namespace {

using resp::ReplyWriter;
using resp::Version;

// The Redis version reported to clients that check it: these commands and replies match it.
constexpr std::string_view kRedisVersion = "7.0.0";

constexpr std::string_view kWrongPassword = "WRONGPASS invalid username-password pair or user is disabled.";

void wrong_count(std::string_view command, ReplyWriter& writer) {
  writer.error("ERR wrong number of arguments for '" + std::string(command) + "' command");
}

bool plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) { return byte >= '!' && byte <= '~'; });
}

// Answers only what redis-benchmark asks for, like a Redis without persistence.
void config(std::span<const std::string_view> arguments, ReplyWriter& writer) {
  if (equal_in_any_case(arguments[1], "help")) {
    writer.array(1);
    return writer.simple("CONFIG (GET name [name ...] | HELP)");
  }
  if (!equal_in_any_case(arguments[1], "get")) return unknown_subcommand(arguments[1], "CONFIG", writer);
  if (arguments.size() < 3) return wrong_count("config|get", writer);
  const auto asked = [&](std::string_view name) {
    return std::any_of(arguments.begin() + 2, arguments.end(),
                       [name](std::string_view word) { return equal_in_any_case(word, name); });
  };
  const bool save = asked("save");
  const bool appendonly = asked("appendonly");
  writer.map((save ? 1u : 0u) + (appendonly ? 1u : 0u));
  if (save) {
    writer.bulk("save");
    writer.bulk("");
  }
  if (appendonly) {
    writer.bulk("appendonly");
    writer.bulk("no");
  }
}

bool is_whole_number(std::string_view text) {
  text.remove_prefix(text.starts_with('-') ? 1 : 0);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

void select(std::string_view database, ReplyWriter& writer) {
  if (database == "0") return writer.simple("OK");
  writer.error(is_whole_number(database) ? "ERR DB index is out of range"
                                         : "ERR value is not an integer or out of range");
}

}  // namespace

void RespClient::answer(const CommandRow& row, std::span<const std::string_view> arguments, std::string& out) {
  ReplyWriter writer(out, version_);
  switch (row.id) {
    case CommandId::ping:
      return arguments.size() == 1 ? writer.simple("PONG") : writer.bulk(arguments[1]);
    case CommandId::echo:
      return writer.bulk(arguments[1]);
    case CommandId::hello:
      return hello(arguments, out);
    case CommandId::auth:
      return auth(arguments, writer);
    case CommandId::select:
      return select(arguments[1], writer);
    case CommandId::client:
      return client(arguments, writer);
    case CommandId::command:
      return answer_command(arguments, writer);
    case CommandId::config:
      return config(arguments, writer);
    case CommandId::info:
      return writer.bulk(info());
    case CommandId::reset:
      return reset(writer);
    default:
      return writer.simple("OK");
  }
}

// HELLO [version [AUTH user password] [SETNAME name]]: applies all of it or nothing.
void RespClient::hello(std::span<const std::string_view> arguments, std::string& out) {
  ReplyWriter writer(out, version_);
  Version version = version_;
  bool authenticated = authenticated_;
  bool writes = writes_;
  std::string name = name_;
  if (arguments.size() > 1) {
    if (!is_whole_number(arguments[1])) {
      return writer.error("ERR Protocol version is not an integer or out of range");
    }
    if (arguments[1] != "2" && arguments[1] != "3") return writer.error("NOPROTO unsupported protocol version");
    version = arguments[1] == "3" ? Version::resp3 : Version::resp2;
  }
  for (std::size_t i = 2; i < arguments.size();) {
    if (equal_in_any_case(arguments[i], "auth") && i + 2 < arguments.size()) {
      const Access access = access_of(arguments[i + 1], arguments[i + 2]);
      if (access == Access::none) return writer.error(kWrongPassword);
      authenticated = true;
      writes = access == Access::write;
      i += 3;
    } else if (equal_in_any_case(arguments[i], "setname") && i + 1 < arguments.size()) {
      const std::string_view given = arguments[i + 1];
      if (!plain(given) || given.size() > bounds::client_name_bytes_max) {
        return set_name(given, "Client names", name, writer);
      }
      name = given;
      i += 2;
    } else {
      return writer.error("ERR Syntax error in HELLO option '" + std::string(arguments[i].substr(0, 128)) + "'");
    }
  }
  if (!authenticated) {
    return writer.error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> "
        "<pass> option can be used to authenticate the client and select the RESP protocol version at the same time");
  }
  authenticated_ = true;
  writes_ = writes;
  name_ = std::move(name);
  version_ = version;
  ReplyWriter greeting(out, version_);
  greet(greeting);
}

void RespClient::greet(ReplyWriter& writer) const {
  writer.map(7);
  writer.bulk("server");
  writer.bulk(options_->name);
  writer.bulk("version");
  writer.bulk(options_->version);
  writer.bulk("proto");
  writer.integer(static_cast<std::int64_t>(version_));
  writer.bulk("id");
  writer.integer(static_cast<std::int64_t>(id_));
  writer.bulk("mode");
  writer.bulk("standalone");
  writer.bulk("role");
  writer.bulk("master");
  writer.bulk("modules");
  writer.array(0);
}

void RespClient::auth(std::span<const std::string_view> arguments, ReplyWriter& writer) {
  const bool named = arguments.size() == 3;
  if (!named && options_->password.empty() && options_->write_password.empty()) {
    return writer.error(
        "ERR AUTH <password> called without any password configured for the default user. Are you sure your "
        "configuration is correct?");
  }
  const Access access = access_of(named ? arguments[1] : "default", arguments.back());
  if (access == Access::none) return writer.error(kWrongPassword);
  authenticated_ = true;
  writes_ = access == Access::write;
  writer.simple("OK");
}

// If no password is set, the default user is accepted with any.
RespClient::Access RespClient::access_of(std::string_view user, std::string_view password) const noexcept {
  // Always compare both, so that the time does not depend on the first result.
  const bool reads = options_->password.empty() || same_secret(password, options_->password);
  const bool writes = same_secret(password, options_->write_password) && !options_->write_password.empty();
  if (user != "default" || (!reads && !writes)) return Access::none;
  return writes ? Access::write : Access::read;
}

void RespClient::client(std::span<const std::string_view> arguments, ReplyWriter& writer) {
  const std::string_view subcommand = arguments[1];
  const std::size_t rest = arguments.size() - 2;
  if (equal_in_any_case(subcommand, "setname")) {
    if (rest != 1) return wrong_count("client|setname", writer);
    return set_name(arguments[2], "Client names", name_, writer);
  }
  if (equal_in_any_case(subcommand, "setinfo")) {
    if (rest != 2) return wrong_count("client|setinfo", writer);
    return set_library(arguments[2], arguments[3], writer);
  }
  // These have no meaning here, and there is no reason to refuse them.
  if (equal_in_any_case(subcommand, "no-evict") || equal_in_any_case(subcommand, "no-touch")) {
    return writer.simple("OK");
  }
  tell(subcommand, writer);
}

void RespClient::set_name(std::string_view name, std::string_view what, std::string& place, ReplyWriter& writer) {
  if (!plain(name)) {
    return writer.error("ERR " + std::string(what) + " cannot contain spaces, newlines or special characters.");
  }
  if (name.size() > bounds::client_name_bytes_max) {
    return writer.error("ERR " + std::string(what) + " cannot be longer than " +
                        std::to_string(bounds::client_name_bytes_max) + " bytes.");
  }
  place = name;
  writer.simple("OK");
}

void RespClient::set_library(std::string_view what, std::string_view value, ReplyWriter& writer) {
  if (equal_in_any_case(what, "lib-name")) return set_name(value, "lib-name", library_, writer);
  if (equal_in_any_case(what, "lib-ver")) return set_name(value, "lib-ver", library_version_, writer);
  writer.error("ERR Unrecognized option '" + std::string(what.substr(0, 128)) + "'");
}

void RespClient::tell(std::string_view subcommand, ReplyWriter& writer) const {
  if (equal_in_any_case(subcommand, "id")) return writer.integer(static_cast<std::int64_t>(id_));
  if (equal_in_any_case(subcommand, "getname")) return name_.empty() ? writer.null() : writer.bulk(name_);
  // A session knows only its own connection.
  if (equal_in_any_case(subcommand, "info") || equal_in_any_case(subcommand, "list")) return writer.bulk(line());
  if (equal_in_any_case(subcommand, "help")) {
    writer.array(2);
    writer.simple("CLIENT (GETNAME | ID | INFO | LIST | HELP)");
    writer.simple("CLIENT (SETNAME name | SETINFO (LIB-NAME | LIB-VER) value | NO-EVICT on | NO-TOUCH on)");
    return;
  }
  unknown_subcommand(subcommand, "CLIENT", writer);
}

void RespClient::reset(ReplyWriter& writer) {
  authenticated_ = options_->password.empty();
  writes_ = false;
  version_ = Version::resp2;
  name_.clear();
  writer.simple("RESET");
}

std::string RespClient::line() const {
  return "id=" + std::to_string(id_) + " name=" + name_ + " db=0 resp=" + (version_ == Version::resp3 ? "3" : "2") +
         " lib-name=" + library_ + " lib-ver=" + library_version_ + "\n";
}

std::string RespClient::info() const {
  std::string text = "# Server\r\nredis_version:";
  text.append(kRedisVersion).append("\r\nserver_name:").append(options_->name);
  text.append("\r\nserver_version:").append(options_->version);
  text += "\r\nredis_mode:standalone\r\n\r\n# Persistence\r\nloading:0\r\n\r\n# Replication\r\nrole:master\r\n";
  return text;
}

}  // namespace weir
