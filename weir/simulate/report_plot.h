// A plot of a timeline as SVG: a column per time span, what was denied on top of what was allowed.
#pragma once

#include <string>

#include "weir/simulate/report.h"

namespace weir::simulate {

// `label` names the plot for those who cannot see it. Empty if the timeline is.
std::string plot(const Timeline& timeline, const std::string& label);

}  // namespace weir::simulate
