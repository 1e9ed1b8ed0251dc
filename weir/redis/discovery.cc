#include "weir/redis/discovery.h"

#include <array>
#include <string>

namespace weir::redis {
namespace {

Error unexpected_reply(std::string_view command, const resp::Reply& reply) {
  const bool is_error = reply.root().type == resp::Type::error;
  return Error{Fault::unavailable, std::string(command) + " answered " +
                                       (is_error ? std::string(reply.root().text) : "with an unexpected reply")};
}

bool is_text_value(Values value) {
  return !value.empty() && is_text(value.front());
}

}  // namespace

Result<Role> read_role(const resp::Reply& reply, const Target& asked) {
  if (!is_aggregate(reply.root())) return unexpected_reply("ROLE", reply);
  Elements fields(reply.values());
  const Values word = fields.next();
  if (!is_text_value(word)) return unexpected_reply("ROLE", reply);
  const std::string_view kind = word.front().text;
  if (kind == "master") return Role{Role::Kind::master, {}};
  if (kind == "sentinel") return Role{Role::Kind::sentinel, {}};
  const Values host = fields.next();
  const Values port = fields.next();
  if (kind != "slave" || !is_text_value(host) || port.empty() || port.front().type != resp::Type::integer) {
    return unexpected_reply("ROLE", reply);
  }
  auto master = make_target(host.front().text, port.front().integer, asked);
  if (!master) return master.error();
  return Role{Role::Kind::replica, std::move(*master)};
}

Result<Target> read_master_address(const resp::Reply& reply, const Target& asked) {
  constexpr std::string_view kCommand = "SENTINEL GET-MASTER-ADDR-BY-NAME";
  if (reply.root().type == resp::Type::null) {
    return Error{Fault::unknown, "the sentinel " + asked.print() + " does not monitor a master of that name"};
  }
  if (!is_aggregate(reply.root())) return unexpected_reply(kCommand, reply);
  Elements fields(reply.values());
  const Values host = fields.next();
  const Values port = fields.next();
  if (!is_text_value(host) || !is_text_value(port) || !fields.next().empty()) return unexpected_reply(kCommand, reply);
  return make_target(host.front().text, port.front().text, asked);
}

std::optional<Target> read_switch(const resp::Reply& message, std::string_view name, const Target& asked) {
  if (!is_aggregate(message.root())) return {};
  Elements fields(message.values());
  std::array<std::string_view, 3> texts;
  for (std::string_view& text : texts) {
    const Values value = fields.next();
    if (!is_text_value(value)) return {};
    text = value.front().text;
  }
  if (texts[0] != "message" || texts[1] != "+switch-master" || !fields.next().empty()) return {};
  // A master's name contains no space: sentinels refuse such a configuration.
  std::array<std::string_view, 5> words;
  std::string_view rest = texts[2];
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t space = rest.find(' ');
    const bool last = i + 1 == words.size();
    if ((space == std::string_view::npos) != last) return {};
    words[i] = rest.substr(0, space);
    if (!last) rest.remove_prefix(space + 1);
  }
  if (words[0] != name) return {};
  auto node = make_target(words[3], words[4], asked);
  if (!node) return {};
  return std::move(*node);
}

}  // namespace weir::redis
