// Parses values that occur only in configurations: days, hours, quotas, key sources, instants. Every parser consumes
// the whole text; its Error quotes the text and names the rule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/core/limit.h"
#include "weir/policy/override_table.h"
#include "weir/policy/schedule.h"

namespace weir::config {

// "mon-fri", "sat,sun", "fri-mon": bit 0 is Sunday.
Result<std::uint8_t> parse_days(std::string_view text);
std::string print_days(std::uint8_t days);

// "09:00-18:00", "22:00-06:00", "00:00-24:00".
Result<Hours> parse_hours(std::string_view text);
std::string print_hours(Hours hours);

// "100000/month", "5 per day": 1 to bounds::quota_max in an hour, a day, a week or a month.
Result<QuotaText> parse_quota(std::string_view text);
std::string print_quota(const QuotaText& quota);

// "1/4": one of four servers that divide a limit's numbers; 1 to bounds::share_max of them.
Result<Count> parse_share(std::string_view text);

// "ip", "apikey", "header:NAME", "cookie:NAME", "query:NAME", "form:FIELD", "path", "path:N", "method", "host",
// "descriptor:KEY", "global".
Result<void> check_key_source(std::string_view text);

// "2027-01-01T00:00:00Z", or with milliseconds, "2027-01-01T00:00:00.250Z": in UTC.
Result<Wall> parse_instant(std::string_view text);

// Returns true if the text is a valid name of a limit or a route.
bool is_name(std::string_view text) noexcept;

}  // namespace weir::config
