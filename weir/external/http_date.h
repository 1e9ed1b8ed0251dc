// Dates in HTTP fields (RFC 9110 §5.6.7).
#pragma once

#include <optional>
#include <string_view>

#include "weir/base/time.h"

namespace weir::external {

// "Sun, 06 Nov 1994 08:49:37 GMT", and the two obsolete forms that a recipient must accept:
// "Sunday, 06-Nov-94 08:49:37 GMT", whose year is between 1970 and 2069, and "Sun Nov  6 08:49:37 1994". Does not check
// the weekday. Returns nullopt if the text is not a date or the year is after 2200.
std::optional<Wall> parse_http_date(std::string_view text);

}  // namespace weir::external
