#include "weir/cli/rate_argument.h"

namespace weir::cli {

Result<Rate> rate_of(const std::string& text) {
  return parse_rate(text.find_first_not_of("0123456789.") == text.npos ? text + "/s" : text);
}

std::optional<Rate> read_rate(const Arguments& arguments, std::string_view option, Console& console) {
  const Result<Rate> rate = rate_of(arguments[option]);
  if (rate) return *rate;
  console.print_error(std::string(option) + ": " + quote(arguments[option]) +
                      " is not a rate; use e.g. 100/s or 10/minute");
  return {};
}

}  // namespace weir::cli
