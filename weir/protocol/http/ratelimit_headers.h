// Writes the rate limit headers (RateLimit, X-RateLimit-*, Retry-After) of every HTTP response that a limit influenced.
#pragma once

#include <string>
#include <string_view>

#include "weir/core/answer.h"

namespace weir {

// Appends the families chosen, then Retry-After if the answer is a denial that ends. Appends nothing for a verdict
// without decisions or for an id without limits.
void write_rate_headers(const Answer& answer, const HeaderFamilies& families, std::string& out);

// Returns the time until the bucket has one more token; zero when it is full.
Duration next_token_after(const Decision& decision, const BucketLabel& label) noexcept;

// The limit's name, or what a bucket of the caller's own is called where a name is needed.
std::string_view policy_name(const Label& label) noexcept;
// Follows the limit's name in the name of a quota whose limit also has a rate.
inline constexpr std::string_view kQuotaSuffix = ".quota";

}  // namespace weir
