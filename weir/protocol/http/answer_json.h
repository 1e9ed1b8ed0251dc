// Writes the answers of the decision API as JSON.
#pragma once

#include <string>
#include <string_view>

#include "weir/core/answer.h"

namespace weir {

enum class Denial : unsigned char {
  plain,      // the numbers only: in an array, or for a peek
  explained,  // also error, message, identifier: for a 429 or 403
};

// {"allowed", "limit", "id", "burst", "remaining", "retry_after", "reset_after", "decisions": […]}; "degraded" when it
// is; `explain` adds the route, the limits that apply, and each decision's bucket and where its numbers came from. A
// limit with a rate and a quota is one of the decisions: the stricter half's numbers, and "rate" and "quota" with both.
// Seconds are exact; a wait that never ends is -1.
void write_answer(const Answer& answer, bool explain, Denial denial, std::string& out);

// Returns the sentence for a denied client: denied for now, blocked, or can never pass.
std::string_view denial_message(const Answer& answer) noexcept;

// Writes a denial as a problem document (RFC 9457).
void write_denial_problem(const Answer& answer, std::string& out);

}  // namespace weir
