#include <nlohmann/json.hpp>

#include "weir/base/text.h"
#include "weir/cli/commands.h"
#include "weir/cli/decision_report.h"
#include "weir/cli/rate_argument.h"

namespace weir::cli {
namespace {

Exit run_throttle(const Arguments& arguments, Console& console) {
  const std::optional<Rate> rate = read_rate(arguments, "--rate", console);
  if (!rate) return kUsage;
  nlohmann::json body = {{"key", arguments["KEY"]}, {"count", rate->count}, {"period", print_duration(rate->period)}};
  for (const auto& [option, field] : {std::pair{"--burst", "burst"}, {"--cost", "cost"}}) {
    const std::string& text = arguments[option];
    if (text.empty()) continue;
    const auto number = parse_integer(text);
    if (!number) {
      console.print_error(std::string(option) + ": \"" + text + "\" is not a whole number");
      return kUsage;
    }
    body[field] = *number;
  }
  return report_decision(arguments, console, "/v1/throttle", body.dump());
}

}  // namespace

Command throttle() {
  return {
      "throttle",
      "ask a server about a bucket whose numbers are given here",
      "The bucket needs no configuration. The exit status is 0 if the request is allowed, and 3 if it is denied.",
      with_remote_options({{"KEY", "KEY", "the bucket's name", true},
                           {"--rate", "RATE", "how fast it refills: 100/s, 10/minute", true},
                           {"--burst", "NUMBER", "how much it holds", true},
                           {"--cost", "NUMBER", "how much to charge (default 1)"},
                           output_option()},
                          Api::decision),
      "# 10 at once, then 2 a second\nweir throttle user:42 --burst 10 --rate 2/s",
      run_throttle,
  };
}

}  // namespace weir::cli
