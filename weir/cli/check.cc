#include <nlohmann/json.hpp>

#include "weir/base/text.h"
#include "weir/cli/commands.h"
#include "weir/cli/decision_report.h"

namespace weir::cli {
namespace {

Exit run_ask(const Arguments& arguments, Console& console) {
  nlohmann::json body = {{"limit", arguments["LIMIT"]}, {"id", arguments["ID"]}};
  if (const std::string& cost = arguments["--cost"]; !cost.empty()) {
    const auto number = parse_integer(cost);
    if (!number) {
      console.print_error("--cost: \"" + cost + "\" is not a whole number");
      return kUsage;
    }
    body["cost"] = *number;
  }
  return report_decision(arguments, console, "/v1/check", body.dump());
}

}  // namespace

Command check() {
  return {
      "check",
      "ask a server whether one more request may pass",
      "Charges the limit like any other caller. The exit status is 0 if the request is allowed, and 3 if it is\n"
      "denied or if there is no such limit.",
      with_remote_options({{"LIMIT", "LIMIT", "the limit's name", true},
                           {"ID", "ID", "who is asking: an address, a key, …", true},
                           {"--cost", "NUMBER", "how much to charge (default 1)"},
                           output_option()},
                          Api::decision),
      "# may this address make one more request?\nweir check per-ip 203.0.113.9\n"
      "# charge 5 and print the API's JSON\nweir check uploads user:42 --cost 5 --output json",
      run_ask,
  };
}

}  // namespace weir::cli
