// A report for people: one self-contained page. The plots are inline SVG; there is no script. Light or dark, following
// the reader's system.
#pragma once

#include <string>

#include "weir/simulate/report.h"

namespace weir::simulate {

std::string write_html(const Report& report);

// A number with separators: 1,234,567.
std::string grouped(std::uint64_t number);
// Returns e.g. "12.3 %"; "0 %" only if `part` is 0.
std::string percent(std::uint64_t part, std::uint64_t whole);
// "100/s, burst 20", "7 per 1m, burst 7".
std::string rate_text(const Limit& limit);

}  // namespace weir::simulate
