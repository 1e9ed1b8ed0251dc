// A report for people: one page that needs nothing else. The plots are SVG in the page; there is no script. Light or
// dark, as the reader's system is.
#pragma once

#include <string>

#include "weir/simulate/report.h"

namespace weir::simulate {

std::string write_html(const Report& report);

// A number with separators for people: 1,234,567.
std::string grouped(std::uint64_t number);
// "12.3 %" of so many; "0 %" only for none.
std::string percent(std::uint64_t part, std::uint64_t whole);
// "100/s, burst 20", "7 per 1m, burst 7".
std::string rate_text(const Limit& limit);

}  // namespace weir::simulate
