// The answer that the conformance kits give to every question.
#pragma once

#include <chrono>
#include <cstddef>
#include <variant>

#include "weir/base/result.h"
#include "weir/core/answer.h"
#include "weir/core/query.h"
#include "weir/protocol/session.h"

namespace weir {

// The canned answer: allowed, burst 100, remaining 100 - cost, back to full in 50 ms per token of cost; of a reset: one
// bucket forgotten. One decision per charge, or one. Queries with different costs get different answers, so that a
// conversation shows their order.
inline Result<Answer> allow(const Asked& asked) {
  Answer answer;
  const Query& query = asked.query;
  const auto* const named = std::get_if<NamedCharges>(&query.subject);
  const auto* const own = std::get_if<OwnBucket>(&query.subject);
  const auto* const facts = std::get_if<RequestFacts>(&query.subject);
  const std::size_t count = named != nullptr ? named->charges.size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    Count cost = 1;
    if (named != nullptr) cost = named->charges[i].cost;
    if (own != nullptr) cost = own->cost;
    if (facts != nullptr) cost = facts->cost.value_or(1);
    Decision decision;
    decision.burst = 100;
    decision.remaining = 100 - cost;
    decision.reset_after = std::chrono::milliseconds{50} * cost;
    answer.verdict.all.push_back(decision);
    answer.labels[i].limit = "per-tenant";
    answer.labels[i].id = "acme";
    answer.labels[i].rate.key = "per-tenant:acme";
  }
  answer.verdict.forgotten = query.mode == Mode::reset ? 1 : 0;
  answer.now.wall = Wall{std::chrono::seconds{1'700'000'000}};
  return answer;
}

}  // namespace weir
