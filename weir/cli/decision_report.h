// How `check` and `throttle` print a decision.
#pragma once

#include <string>

#include "weir/cli/command.h"
#include "weir/cli/remote.h"

namespace weir::cli {

// Asks the decision API and prints the response. kOk if allowed, kDenied if denied.
Exit report_decision(const Arguments& arguments, Console& console, std::string_view path, const std::string& json);

}  // namespace weir::cli
