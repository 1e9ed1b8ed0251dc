#include "weir/cli/client_arguments.h"

#include "weir/base/text.h"

namespace weir::cli {

std::vector<Option> client_options() {
  return {
      {"--ip", "ADDRESS", "the client with this address, in every limit keyed by ip"},
      {"--apikey", "KEY", "the client with this API key, or its handle, in every limit keyed by apikey"},
      {"--limit", "LIMIT", "one limit; with --id"},
      {"--id", "ID", "the client's id in that limit"},
  };
}

std::optional<ClientArguments> read_client(const Arguments& arguments, Console& console, bool may_lack_limit) {
  ClientArguments client{arguments["--ip"], arguments["--apikey"], arguments["--limit"], arguments["--id"]};
  const bool by_id = !client.limit.empty() || !client.id.empty();
  if ((client.ip.empty() ? 0 : 1) + (client.apikey.empty() ? 0 : 1) + (by_id ? 1 : 0) != 1) {
    console.print_error(client.any() ? "give only one of --ip, --apikey, or --limit and --id"
                                     : "which client? Give --ip, --apikey, or --limit and --id");
    return {};
  }
  if (by_id && client.id.empty()) {
    console.print_error("--limit " + quote(client.limit) + " needs --id, the client's id in that limit");
    return {};
  }
  if (by_id && client.limit.empty() && !may_lack_limit) {
    console.print_error("--id " + quote(client.id) + " needs --limit, the limit's name");
    return {};
  }
  return client;
}

std::optional<std::int64_t> read_count(const Arguments& arguments, std::string_view option, Console& console) {
  const Result<std::int64_t> number = parse_integer(arguments[option]);
  if (number && *number >= 1) return *number;
  console.print_error(std::string(option) + ": " + quote(arguments[option]) + " is not a whole number of at least 1");
  return {};
}

bool is_duration(const Arguments& arguments, std::string_view option, Console& console) {
  const Result<Duration> time = parse_duration(arguments[option]);
  if (time && *time > Duration::zero()) return true;
  console.print_error(std::string(option) + ": " + quote(arguments[option]) +
                      " is not a duration such as 30m, 1h or 7d");
  return false;
}

}  // namespace weir::cli
