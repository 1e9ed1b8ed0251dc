// Replays a history against a policy, one query after another on the history's own clock. In: a Query and its time.
// Out: the answer. Single-threaded; a plain map holds the whole state and never forgets anything, so answers depend
// only on the algorithm.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/core/answer.h"
#include "weir/core/decision.h"
#include "weir/core/query.h"
#include "weir/policy/policy.h"
#include "weir/simulate/state.h"

namespace weir::simulate {

// The verdict, reported for one limit: the strictest decision of those that enforce, or of the shadows if none does.
struct Answer {
  std::string_view limit;
  std::string_view id;  // canonical, or its hash, as in the bucket's key
  // `allowed` is the verdict's; a shadow limit's retry_after is what it would have returned.
  Decision decision;
  bool bounded = true;  // false: no bucket was asked, because the id is unlimited or the limit is off
};

class Replay {
 public:
  explicit Replay(std::shared_ptr<const Policy> policy) noexcept : policy_(std::move(policy)) {}

  // Fails if the policy does: an unknown limit, an id in the wrong format. Time may run backwards from one query to the
  // next. Views in the answer are valid until the next call. REQUIRES: the query names at least one limit.
  Result<Answer> ask(const Query& query, Now now);

  // How many ids have state.
  std::size_t size() const noexcept { return states_.size(); }

 private:
  // Allows lookups by string_view without making a string.
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  using States = std::unordered_map<std::string, State, Hash, std::equal_to<>>;
  class Buckets;  // the states at one instant, for algorithm/charging.h

  Answer speak(const weir::Answer& answer) const noexcept;

  std::shared_ptr<const Policy> policy_;
  States states_;
  Resolved resolved_;
  Time last_ = Time::max();    // of the previous query
  Time since_{};               // when the history began, or when its clock was last set back
  const Known nothing_known_;  // a history has no operators, so no run-time state
};

}  // namespace weir::simulate
