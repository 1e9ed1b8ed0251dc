#include "weir/store/failover/failover_store.h"

#include "weir/base/assert.h"

namespace weir {
namespace {

// Other errors are final. That includes `overloaded`: the store works and charged nothing, and flooding it must not let
// a client bypass its limits.
bool is_failure(const Result<Verdict>& verdict) {
  return !verdict && (verdict.error().fault == Fault::timeout || verdict.error().fault == Fault::unavailable);
}

}  // namespace

void FailoverStore::charge(std::span<const Question> batch, Now now, Answers& answers) {
  WEIR_ASSERT(answers_ == nullptr || answers_ == &answers);
  answers_ = &answers;
  primary_->charge(batch, now, *this);
}

void FailoverStore::give_up(const Question& question, Answers& answers) {
  WEIR_ASSERT(answers_ == nullptr || answers_ == &answers);
  answers_ = &answers;
  primary_->give_up(question, *this);
}

void FailoverStore::answer(Ticket ticket, const Result<Verdict>& verdict) {
  if (!is_failure(verdict)) return answers_->answer(ticket, verdict);
  answers_->answer(ticket, fallback_.decide(answers_->question(ticket), clock_.now()));
}

}  // namespace weir
