// What a verdict means: which limit each decision belongs to, and the denials that no bucket gave. The one place where
// access lists, blocks and ids that nothing limits become part of an answer.
#pragma once

#include <string_view>

#include "weir/core/answer.h"
#include "weir/core/charge.h"
#include "weir/core/query.h"
#include "weir/policy/policy.h"

namespace weir {

// Completes an answer whose verdict, `now` and `headers` are set: labels every decision, and adds a denial by a list or
// a block, which speaks for the request, and the limits that had nothing to charge. `resolved` is what `policy` made of
// the query, and must outlive the answer's use.
void explain(const Policy& policy, const Resolved& resolved, Mode mode, Answer& answer);

// Of a bucket whose numbers the caller brought along.
void explain(const Charge& own, Answer& answer);

// Who and what a part counts, without its buckets.
Label describe(const Part& part, std::string_view route);

}  // namespace weir
