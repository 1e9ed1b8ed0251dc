// `weir access add|list|remove`: the allow and the deny list.
#include <string>
#include <vector>

#include "weir/base/text.h"
#include "weir/cli/admin_api.h"
#include "weir/cli/client_arguments.h"
#include "weir/cli/commands.h"
#include "weir/cli/confirm.h"
#include "weir/cli/remote.h"
#include "weir/cli/table.h"
#include "weir/identify/ip.h"
#include "weir/wire/json.h"

namespace weir::cli {
namespace {

// Asks before adding a deny entry for more addresses than these networks have.
constexpr int kWideBits4 = 16;
constexpr int kWideBits6 = 32;

std::string access_path(const std::string& list) {
  return "/ratelimit/access/" + list;
}

std::string entry_body(const ClientArguments& client, const Arguments& arguments) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  const auto field = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) json.key(name).string(value);
  };
  field("ip", client.ip);
  field("apikey", client.apikey);
  field("limit", client.limit);
  field("id", client.id);
  field("reason", arguments["--reason"]);
  field("for", arguments["--for"]);
  field("expires", arguments["--expires"]);
  json.end_object();
  return text;
}

void add_entries(const Answer& answer, bool for_people, Wall now, Table& table) {
  for (const Answer& entry : answer["entries"].items()) {
    const std::string& expires = entry["expires"].text();
    std::vector<std::string> row{entry["list"].text(),  entry["ip"].text(), entry["apikey"].text(),
                                 entry["limit"].text(), entry["id"].text(), entry["reason"].text()};
    row.push_back(!for_people ? expires : expires.empty() ? "never" : readable_instant(expires));
    if (for_people) row.push_back(relative_time(expires, now));
    row.push_back(entry["added_by"].text());
    const bool orphaned = entry["in_force"].is(Answer::Kind::boolean);
    row.emplace_back(orphaned ? (for_people ? "no" : "false") : (for_people ? "" : "true"));
    table.add(std::move(row));
  }
}

Exit print_entries(const std::vector<AdminAnswer>& answers, const std::string& format, Output& out) {
  if (format == "json" && answers.size() == 1) {
    write_json(answers.front().content, out);
    return out.flush() ? kOk : kFailed;
  }
  const bool for_people = format == "table";
  std::vector<std::string> heads{"LIST", "IP", "APIKEY", "LIMIT", "ID", "REASON", "EXPIRES", "ADDED_BY", "IN_FORCE"};
  if (for_people) heads.insert(heads.begin() + 7, "");
  Table table(std::move(heads));
  table.whole({"ID", "EXPIRES", ""});
  std::string json;
  for (const AdminAnswer& answer : answers) {
    add_entries(answer.json, for_people, BootClock::wall(), table);
    // The entries as they were sent: between the first "[" and the last "]".
    const std::size_t first = answer.content.find('[');
    const std::size_t last = answer.content.rfind(']');
    if (first == std::string::npos || last == std::string::npos || last <= first + 1) continue;
    json += (json.empty() ? "" : ",") + answer.content.substr(first + 1, last - first - 1);
  }
  if (format == "json") {
    write_json("{\"entries\":[" + json + "]}\n", out);
  } else if (format == "csv") {
    table.print_csv(out);
  } else {
    if (table.empty()) out.write("no entries\n");
    table.print(out);
  }
  return out.flush() ? kOk : kFailed;
}

// Returns true if the entry may be added. Asks the operator, if there is one, before denying half the Internet.
bool is_meant(const std::string& list, const std::string& ip, const Arguments& arguments, Console& console) {
  if (list != "deny" || ip.empty() || arguments.has("--yes") || !can_ask()) return true;
  const Result<IpPrefix> prefix = IpPrefix::parse(ip);
  if (!prefix) return true;  // the server says what is wrong with it
  const bool is_v4 = prefix->address().width() == 32;
  if (prefix->bits() >= (is_v4 ? kWideBits4 : kWideBits6)) return true;
  return confirmed("Deny every client in " + prefix->print() + "?", console);
}

Exit run_access_add(const Arguments& arguments, Console& console) {
  const std::optional<ClientArguments> client = read_client(arguments, console);
  if (!client) return kUsage;
  if (!arguments["--for"].empty() && !is_duration(arguments, "--for", console)) return kUsage;
  if (!arguments["--for"].empty() && !arguments["--expires"].empty()) {
    console.print_error("give either --for or --expires, not both");
    return kUsage;
  }
  const std::string& list = arguments["LIST"];
  if (!is_meant(list, client->ip, arguments, console)) {
    console.print_error("nothing was added");
    return kFailed;
  }
  AdminApi api(arguments, console);
  std::optional<AdminAnswer> answer = api.ask("POST", access_path(list), entry_body(*client, arguments));
  if (!answer) return api.exit();
  return print_entries({std::move(*answer)}, arguments["--output"], console.out);
}

std::vector<std::string> lists_of(const Arguments& arguments) {
  if (!arguments["LIST"].empty()) return {arguments["LIST"]};
  return {"allow", "deny"};
}

Exit run_access_list(const Arguments& arguments, Console& console) {
  AdminApi api(arguments, console);
  std::vector<AdminAnswer> answers;
  for (const std::string& list : lists_of(arguments)) {
    std::optional<AdminAnswer> answer = api.ask("GET", access_path(list));
    if (!answer) return api.exit();
    answers.push_back(std::move(*answer));
  }
  return print_entries(answers, arguments["--output"], console.out);
}

Exit run_access_remove(const Arguments& arguments, Console& console) {
  const std::optional<ClientArguments> client = read_client(arguments, console);
  if (!client) return kUsage;
  AdminApi api(arguments, console);
  std::vector<AdminAnswer> removed;
  std::string missing;
  for (const std::string& list : lists_of(arguments)) {
    std::optional<AdminAnswer> answer = api.ask("DELETE", access_path(list), entry_body(*client, arguments), true);
    if (!answer) return api.exit();
    if (answer->status == 404) {
      missing = sentence_of({answer->status, answer->content});
    } else {
      removed.push_back(std::move(*answer));
    }
  }
  if (removed.empty()) {
    console.print_error(missing);
    return kDenied;
  }
  const std::string& format = arguments["--output"];
  const std::string count = std::to_string(removed.size());
  if (format == "json") {
    write_json(removed.size() == 1 ? removed.front().content : "{\"removed\":" + count + "}\n", console.out);
  } else if (format == "csv") {
    Table table({"REMOVED"});
    table.add({count});
    table.print_csv(console.out);
  } else {
    console.out.write(count + (removed.size() == 1 ? " entry removed\n" : " entries removed\n"));
  }
  return console.out.flush() ? kOk : kFailed;
}

Option list_option(bool required) {
  return {"LIST", "LIST", "which list", required, {"allow", "deny"}, false, {}, false, true};
}

// The options of an entry's client; an address may be a network.
std::vector<Option> entry_options(bool list_required) {
  std::vector<Option> options{list_option(list_required)};
  for (Option& option : client_options()) options.push_back(std::move(option));
  options[1].help = "an address, or a network: 203.0.113.0/24";
  options[2].help = "an API key, or the handle that lists show";
  return options;
}

}  // namespace

Command access_add() {
  std::vector<Option> options = entry_options(true);
  options.push_back({"--reason", "TEXT", "shown in the list"});
  options.push_back({"--for", "DURATION", "for how long (default: until removed)"});
  options.push_back({"--expires", "TIME", "until when, such as 2027-01-01T00:00:00Z"});
  options.push_back(flag_option("--yes", "do not ask before a very large network is denied"));
  options.push_back(output_option());
  return {
      "access add",
      "add a client or a network to the allow or the deny list",
      "Clients on the allow list always pass, and clients on the deny list never do. If a client is on both, it is\n"
      "denied. The server refuses to deny the address that you are calling from.",
      with_remote_options(std::move(options), Api::admin),
      "# deny a network for a day\nweir access add deny --ip 203.0.113.0/24 --reason scraping --for 24h\n"
      "# never limit the office\nweir access add allow --ip 198.51.100.7 --reason office",
      run_access_add,
  };
}

Command access_list() {
  return {
      "access list",
      "show the allow and the deny list",
      "Shows the entries in force: from the configuration, added at run time, and automatic blocks.",
      with_remote_options({list_option(false), output_option()}, Api::admin),
      "# both lists\nweir access list\n# one, for a program\nweir access list deny --output json",
      run_access_list,
  };
}

Command access_remove() {
  std::vector<Option> options = entry_options(false);
  options.push_back(output_option());
  return {
      "access remove",
      "remove an entry added at run time, or an automatic block",
      "Without LIST, removes it from both lists. The exit status is 3 if there is no such entry.",
      with_remote_options(std::move(options), Api::admin),
      "# the network as it was added\nweir access remove deny --ip 203.0.113.0/24",
      run_access_remove,
  };
}

}  // namespace weir::cli
