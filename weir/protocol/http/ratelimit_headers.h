// The headers that tell a client where it stands. One place writes them, for every HTTP answer that a limit had a say
// in.
#pragma once

#include <string>
#include <string_view>

#include "weir/core/answer.h"

namespace weir {

// Appends the families chosen, then Retry-After if the answer is a denial that ends. Nothing for a verdict without
// decisions, or of an id that nothing limits.
void write_rate_headers(const Answer& answer, const HeaderFamilies& families, std::string& out);

// Until the bucket has one more token; zero when it is full.
Duration next_token_after(const Decision& decision, const BucketLabel& label) noexcept;

// The limit's name, or what a bucket of the caller's own is called where a name is needed.
std::string_view policy_name(const Label& label) noexcept;
// Behind the name of a limit that has a rate too, the name of its quota.
inline constexpr std::string_view kQuotaSuffix = ".quota";

}  // namespace weir
