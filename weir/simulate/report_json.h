// A report for programs.
#pragma once

#include <string>

#include "weir/simulate/report.h"

namespace weir::simulate {

// One object:
// {"lines","skipped",…,"limits":[{"limit","allowed","denied",…}],"routes":[…],"unjudged":[…],"compare":{…}}.
std::string write_json(const Report& report);

}  // namespace weir::simulate
