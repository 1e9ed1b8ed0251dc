// One bucket to be charged, everything decided but the state.
#pragma once

#include <string_view>

#include "weir/core/key.h"
#include "weir/core/limit.h"
#include "weir/core/quota.h"

namespace weir {

// What a request gets when the store cannot be asked.
enum class FailurePolicy : unsigned char { pass_through, fail_closed, in_memory_fallback };

// Views must outlive the question the charge belongs to.
struct Charge {
  Key key;
  std::string_view limit_name;
  Limit limit = Limit::per_second(1);  // of a bucket
  Quota quota;                         // of a quota
  Count cost = 1;
  bool shadow = false;  // decided and charged in its own right, but never denies
  FailurePolicy on_failure = FailurePolicy::pass_through;
  int failure_code = 0;  // what fail_closed answers where the protocol has such codes; 0: the server's
};

}  // namespace weir
