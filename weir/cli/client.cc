// `weir client`: one client's buckets.
#include <string>
#include <vector>

#include "weir/base/text.h"
#include "weir/cli/admin_api.h"
#include "weir/cli/client_arguments.h"
#include "weir/cli/client_rows.h"
#include "weir/cli/commands.h"
#include "weir/cli/remote.h"
#include "weir/cli/table.h"

namespace weir::cli {
namespace {

// `client LIMIT ID`, `client IDENTIFIER` or the options. An identifier is what lists show: "ip:203.0.113.9",
// "apikey:K", "orders:7".
std::optional<ClientArguments> named_client(const Arguments& arguments, Console& console) {
  const std::string& first = arguments["LIMIT"];
  if (first.empty()) return read_client(arguments, console);
  const ClientArguments by_option{arguments["--ip"], arguments["--apikey"], arguments["--limit"], arguments["--id"]};
  if (by_option.any()) {
    console.print_error("give either LIMIT and ID, or options, not both");
    return {};
  }
  if (!arguments["ID"].empty()) return ClientArguments{{}, {}, first, arguments["ID"]};
  const std::size_t colon = first.find(':');
  if (colon == first.npos || colon == 0 || colon + 1 == first.size()) {
    console.print_error("missing ID (the client's id in limit " + quote(first) + "); see weir client --help");
    return {};
  }
  const std::string before = first.substr(0, colon);
  const std::string rest = first.substr(colon + 1);
  if (before == "ip") return ClientArguments{rest, {}, {}, {}};
  if (before == "apikey") return ClientArguments{{}, rest, {}, {}};
  return ClientArguments{{}, {}, before, rest};
}

void print_found(const std::vector<AdminAnswer>& found, const std::string& format, Console& console) {
  if (format == "csv") {
    Table table = client_fields_table();
    for (const AdminAnswer& answer : found) table.add(client_fields(answer.json));
    return table.print_csv(console.out);
  }
  if (format == "json" && found.size() == 1) return write_json(found.front().content, console.out);
  std::string json;
  for (const AdminAnswer& answer : found) {
    json.append(json.empty() ? "{\"clients\":[" : ",").append(without_newline(answer.content));
    if (format == "json") continue;
    if (&answer != &found.front()) console.out.write("\n");
    print_client(answer.json, BootClock::wall(), console.out);
  }
  if (format == "json") write_json(json + "]}\n", console.out);
}

Exit run_client(const Arguments& arguments, Console& console) {
  const std::optional<ClientArguments> client = named_client(arguments, console);
  if (!client) return kUsage;
  AdminApi api(arguments, console);
  std::vector<std::string> limits{client->limit};
  if (!client->source().empty()) {
    Exit exit = kOk;
    const auto keyed = limits_keyed_by(client->source(), api, console, exit);
    if (!keyed) return exit;
    limits.clear();
    for (const KeyedLimit& limit : *keyed) limits.push_back(limit.name);
  }
  std::vector<AdminAnswer> found;
  std::string missing;
  for (const std::string& limit : limits) {
    const std::string path = "/ratelimit/clients/" + escaped_part(limit) + "/" + escaped_part(client->id_within());
    std::optional<AdminAnswer> answer = api.ask("GET", path, {}, true);
    if (!answer) return api.exit();
    if (answer->status == 200) {
      found.push_back(std::move(*answer));
    } else {
      missing = sentence_of({answer->status, answer->content});
    }
  }
  if (found.empty()) {
    console.print_error(missing);
    return kDenied;
  }
  print_found(found, arguments["--output"], console);
  return console.out.flush() ? kOk : kFailed;
}

}  // namespace

Command client() {
  std::vector<Option> options{{"LIMIT", "LIMIT", "the limit's name, or both as lists show them: ip:203.0.113.9"},
                              {"ID", "ID", "the client's id in that limit"}};
  for (Option& option : client_options()) options.push_back(std::move(option));
  options.push_back(output_option());
  return {
      "client",
      "show one client: its numbers, what is left, its last denials",
      "The exit status is 3 if the client is not known: its bucket is full, and nothing else is stored about it.",
      with_remote_options(std::move(options), Api::admin),
      "# why is this address denied?\nweir client per-ip 203.0.113.9\n"
      "# in every limit keyed by ip\nweir client --ip 203.0.113.9",
      run_client,
  };
}

}  // namespace weir::cli
