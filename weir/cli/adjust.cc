// `weir adjust`: other numbers for one client for a while.
#include <string>
#include <vector>

#include "weir/base/text.h"
#include "weir/cli/admin_api.h"
#include "weir/cli/client_arguments.h"
#include "weir/cli/commands.h"
#include "weir/cli/rate_argument.h"
#include "weir/cli/remote.h"
#include "weir/cli/table.h"
#include "weir/simulate/report_html.h"
#include "weir/wire/json.h"

namespace weir::cli {
namespace {

struct AdjustedNumbers {
  std::optional<Rate> rate;
  std::optional<std::int64_t> burst;
  std::string lasts;  // "1h"
};

std::optional<AdjustedNumbers> read_numbers(const Arguments& arguments, Console& console) {
  AdjustedNumbers numbers;
  if (!arguments["--rate"].empty()) {
    numbers.rate = read_rate(arguments, "--rate", console);
    if (!numbers.rate) return {};
  }
  if (!arguments["--burst"].empty()) {
    numbers.burst = read_count(arguments, "--burst", console);
    if (!numbers.burst) return {};
  }
  if (!numbers.rate && !numbers.burst) {
    console.print_error("give --rate, --burst or both; --list shows adjustments, --remove ends one");
    return {};
  }
  if (!arguments["--for"].empty() && !is_duration(arguments, "--for", console)) return {};
  numbers.lasts = arguments["--for"].empty() ? "1h" : arguments["--for"];
  return numbers;
}

std::string adjust_body(const std::string& limit, const std::string& id,
                        const std::optional<AdjustedNumbers>& numbers) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("limit").string(limit).key("id").string(id);
  if (numbers) {
    if (numbers->rate) {
      json.key("count").number(numbers->rate->count);
      json.key("period").string(print_duration(numbers->rate->period));
    }
    if (numbers->burst) json.key("burst").number(*numbers->burst);
    json.key("for").string(numbers->lasts);
  }
  json.end_object();
  return text;
}

void print_adjustments(const std::vector<const Answer*>& rows, const std::string& format, Output& out) {
  if (format == "csv") {
    Table table({"LIMIT", "ID", "BURST", "COUNT", "PERIOD", "EXPIRES", "ADDED_BY", "IN_FORCE"});
    for (const Answer* const row : rows) {
      table.add({(*row)["limit"].text(), (*row)["id"].text(), (*row)["burst"].text(), (*row)["count"].text(),
                 (*row)["period"].text(), (*row)["expires"].text(), (*row)["added_by"].text(),
                 (*row)["in_force"].is(Answer::Kind::null) ? "true" : (*row)["in_force"].text()});
    }
    return table.print_csv(out);
  }
  const Wall now = BootClock::wall();
  Table table({"LIMIT", "ID", "RATE", "BURST", "EXPIRES", "", "ADDED_BY", "IN_FORCE"});
  table.numbers({"BURST"}).whole({"ID", "RATE", "EXPIRES", ""});
  for (const Answer* const row : rows) {
    table.add({(*row)["limit"].text(), (*row)["id"].text(), readable_rate(*row), (*row)["burst"].text(),
               readable_instant((*row)["expires"].text()), relative_time((*row)["expires"].text(), now),
               (*row)["added_by"].text(), (*row)["in_force"].is(Answer::Kind::boolean) ? "no" : ""});
  }
  table.print(out);
}

Exit list_adjustments(const Arguments& arguments, Console& console) {
  AdminApi api(arguments, console);
  const std::optional<AdminAnswer> answer = api.ask("GET", "/ratelimit/adjust");
  if (!answer) return api.exit();
  if (arguments["--output"] == "json") {
    write_json(answer->content, console.out);
    return console.out.flush() ? kOk : kFailed;
  }
  std::vector<const Answer*> rows;
  for (const Answer& row : answer->json["adjustments"].items()) rows.push_back(&row);
  if (rows.empty() && arguments["--output"] == "table") console.out.write("no adjustments\n");
  print_adjustments(rows, arguments["--output"], console.out);
  return console.out.flush() ? kOk : kFailed;
}

// The limits in which the client is adjusted.
std::optional<std::vector<std::string>> limits_of(const ClientArguments& client, AdminApi& api, Console& console,
                                                  Exit& exit) {
  if (client.source().empty()) return std::vector<std::string>{client.limit};
  const auto keyed = limits_keyed_by(client.source(), api, console, exit);
  if (!keyed) return {};
  // A limit that is only a quota has nothing to adjust. If all are, the server says so.
  std::vector<std::string> with_rate;
  std::vector<std::string> all;
  for (const KeyedLimit& limit : *keyed) {
    all.push_back(limit.name);
    if (limit.has_rate) with_rate.push_back(limit.name);
  }
  return with_rate.empty() ? all : with_rate;
}

Exit print_done(const std::vector<AdminAnswer>& done, bool remove, const std::string& format, Output& out) {
  if (format == "json") {
    std::string json = done.size() == 1 ? done.front().content : std::string();
    if (done.size() > 1 && remove) json = "{\"removed\":" + std::to_string(done.size()) + "}\n";
    if (done.size() > 1 && !remove) {
      for (const AdminAnswer& answer : done) {
        json.append(json.empty() ? "{\"adjustments\":[" : ",").append(without_newline(answer.content));
      }
      json += "]}\n";
    }
    write_json(json, out);
  } else if (remove) {
    Table table({"REMOVED"});
    table.add({std::to_string(done.size())});
    if (format == "csv") {
      table.print_csv(out);
    } else {
      out.write(simulate::grouped(done.size()) +
                (done.size() == 1 ? " adjustment removed\n" : " adjustments removed\n"));
    }
  } else {
    std::vector<const Answer*> rows;
    for (const AdminAnswer& answer : done) rows.push_back(&answer.json);
    print_adjustments(rows, format, out);
  }
  return out.flush() ? kOk : kFailed;
}

Exit run_adjust(const Arguments& arguments, Console& console) {
  const bool remove = arguments.has("--remove");
  const bool has_numbers = !arguments["--rate"].empty() || !arguments["--burst"].empty() || !arguments["--for"].empty();
  if (arguments.has("--list")) {
    if (!remove && !has_numbers) return list_adjustments(arguments, console);
    console.print_error("--list shows all adjustments and takes no client and no numbers");
    return kUsage;
  }
  const std::optional<ClientArguments> client = read_client(arguments, console);
  if (!client) return kUsage;
  if (remove && has_numbers) {
    console.print_error("--remove takes no numbers");
    return kUsage;
  }
  std::optional<AdjustedNumbers> numbers;
  if (!remove) {
    numbers = read_numbers(arguments, console);
    if (!numbers) return kUsage;
  }
  AdminApi api(arguments, console);
  Exit exit = kOk;
  const auto limits = limits_of(*client, api, console, exit);
  if (!limits) return exit;
  std::vector<AdminAnswer> done;
  std::string missing;
  for (const std::string& limit : *limits) {
    const std::string body = adjust_body(limit, client->id_within(), numbers);
    std::optional<AdminAnswer> answer = api.ask(remove ? "DELETE" : "PUT", "/ratelimit/adjust", body, true);
    if (answer && answer->status == 200)
      done.push_back(std::move(*answer));
    else if (answer)
      missing = sentence_of({answer->status, answer->content});
  }
  if (done.empty()) {
    if (api.exit() != kOk) return api.exit();
    console.print_error(missing);
    return kDenied;
  }
  const Exit printed = print_done(done, remove, arguments["--output"], console.out);
  return api.exit() != kOk ? api.exit() : printed;
}

}  // namespace

Command adjust() {
  std::vector<Option> options = client_options();
  options.push_back({"--rate", "RATE", "how fast the bucket refills: 200/s, 10/minute; 200 means 200/s"});
  options.push_back({"--burst", "NUMBER", "how much the bucket holds"});
  options.push_back({"--for", "DURATION", "for how long (default 1h)"});
  options.push_back(flag_option("--list", "show all adjustments"));
  options.push_back(flag_option("--remove", "end the client's adjustment"));
  options.push_back(output_option());
  return {
      "adjust",
      "give one client other numbers for a while",
      "Numbers that you do not give stay as they are. An adjustment takes precedence over overrides. It survives idle\n"
      "time and resets and, with state files or Redis, restarts. It does not change quotas.",
      with_remote_options(std::move(options), Api::admin),
      "# for an hour\nweir adjust --ip 192.168.1.1 --rate 200 --burst 50\n"
      "# in one limit, for a day\nweir adjust --limit orders --id 7 --rate 10/minute --for 24h\n"
      "# list those in force\nweir adjust --list\n"
      "# end one\nweir adjust --ip 192.168.1.1 --remove",
      run_adjust,
  };
}

}  // namespace weir::cli
