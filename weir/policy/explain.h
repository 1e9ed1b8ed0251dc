// Turns a verdict into an answer: which limit each decision belongs to, and denials that do not come from a bucket.
// Only here do access lists, blocks and unlimited ids become part of an answer.
#pragma once

#include <string_view>

#include "weir/core/answer.h"
#include "weir/core/charge.h"
#include "weir/core/query.h"
#include "weir/policy/policy.h"

namespace weir {

// Completes an answer whose verdict, `now` and `headers` are set: labels every decision and adds limits that had
// nothing to charge. A denial by a list or a block is added too and becomes the request's decision. `resolved` is the
// query as resolved by `policy`; it must outlive the answer's use.
void explain(const Policy& policy, const Resolved& resolved, Mode mode, Answer& answer);

// The same for a bucket with the caller's own numbers.
void explain(const Charge& own, Answer& answer);

// Labels a part with its limit and id, without its buckets.
Label describe(const Part& part, std::string_view route);

}  // namespace weir
