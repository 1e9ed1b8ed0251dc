#include "weir/store/failover/failover_store.h"

#include <utility>

namespace weir {
namespace {

// Anything else is an answer of its own, that asking elsewhere would not change.
bool is_failure(const Result<Verdict>& verdict) {
  return !verdict && (verdict.error().fault == Fault::timeout || verdict.error().fault == Fault::unavailable);
}

}  // namespace

void FailoverStore::charge(std::span<const Question> batch, Now now, Answers& answers) {
  // An answer may lead to new questions and so back here.
  std::vector<Question> renumbered = std::exchange(batch_, {});
  renumbered.assign(batch.begin(), batch.end());
  for (Question& question : renumbered) {
    if (free_.empty()) {
      free_.push_back(asked_.size());
      asked_.emplace_back();
    }
    const Ticket ticket = free_.back();
    free_.pop_back();
    asked_[ticket] = {question, &answers};
    question.ticket = ticket;
  }
  primary_->charge(renumbered, now, *this);
  batch_ = std::move(renumbered);
}

void FailoverStore::answer(Ticket ticket, const Result<Verdict>& verdict) {
  const Asked asked = asked_[ticket];
  free_.push_back(ticket);
  Answers& answers = *asked.answers;
  if (is_failure(verdict)) {
    answers.answer(asked.question.ticket, fallback_.decide(asked.question, clock_.now()));
  } else {
    answers.answer(asked.question.ticket, verdict);
  }
}

}  // namespace weir
