// A plot of a timeline as SVG: one column per time span, denied requests on top of allowed ones.
#pragma once

#include <string>

#include "weir/simulate/report.h"

namespace weir::simulate {

// `label` describes the plot for screen readers. Returns an empty string if the timeline is empty.
std::string plot(const Timeline& timeline, const std::string& label);

}  // namespace weir::simulate
