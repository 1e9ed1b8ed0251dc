#include "weir/store/failover/failover_store.h"

#include <utility>

#include "weir/base/bounds.h"

namespace weir {
namespace {

// Anything else is an answer of its own, that asking elsewhere would not change. `overloaded` among them: the store is
// there and charged nothing, and whoever floods it must not be let through for that.
bool is_failure(const Result<Verdict>& verdict) {
  return !verdict && (verdict.error().fault == Fault::timeout || verdict.error().fault == Fault::unavailable);
}

}  // namespace

void FailoverStore::charge(std::span<const Question> batch, Now now, Answers& answers) {
  // An answer may lead to new questions and so back here.
  std::vector<Question> renumbered = std::exchange(batch_, {});
  renumbered.assign(batch.begin(), batch.end());
  for (Question& question : renumbered) question = renumber(question, answers);
  primary_->charge(renumbered, now, *this);
  batch_ = std::move(renumbered);
}

void FailoverStore::give_up(const Question& question, Answers& answers) {
  primary_->give_up(renumber(question, answers), *this);
}

Question FailoverStore::renumber(const Question& question, Answers& answers) {
  if (free_.empty()) {
    free_.push_back(asked_.size());
    asked_.emplace_back();
  }
  Question renumbered = question;
  renumbered.ticket = free_.back();
  free_.pop_back();
  asked_[renumbered.ticket] = {question, &answers};
  return renumbered;
}

void FailoverStore::answer(Ticket ticket, const Result<Verdict>& verdict) {
  const Asked asked = asked_[ticket];
  free_.push_back(ticket);
  if (free_.size() == asked_.size() && asked_.size() > bounds::spare_questions_max) {
    std::vector<Asked>().swap(asked_);
    std::vector<Ticket>().swap(free_);
  }
  Answers& answers = *asked.answers;
  if (is_failure(verdict)) {
    answers.answer(asked.question.ticket, fallback_.decide(asked.question, clock_.now()));
  } else {
    answers.answer(asked.question.ticket, verdict);
  }
}

}  // namespace weir
