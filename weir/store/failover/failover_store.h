// Wraps a store that may be unavailable. Every question goes to that store. If it fails to answer one, the failure
// policies of the question's limits apply (fallback.h).
//
// The wrapped store answers within its timeout, or immediately while it knows that it is down, and reconnects and logs
// by itself.
//
// Thread safety: none; every loop has its own. All loops share the table and the counters behind the Fallback.
#pragma once

#include <memory>
#include <utility>

#include "weir/base/clock.h"
#include "weir/store/failover/fallback.h"
#include "weir/store/store.h"

namespace weir {

class FailoverStore final : public Store, private Answers {
 public:
  // The clock must outlive the store.
  FailoverStore(std::unique_ptr<Store> primary, Fallback fallback, const Clock& clock)
      : primary_(std::move(primary)), fallback_(fallback), clock_(clock) {}

  void charge(std::span<const Question> batch, Now now, Answers& answers) override;
  std::size_t batch_max() const noexcept override { return primary_->batch_max(); }
  bool answers_at_once() const noexcept override { return primary_->answers_at_once(); }
  Room room(const Question& question, std::size_t ahead) override { return primary_->room(question, ahead); }
  bool answer_at_hand(const Question& question, Now now, Answers& answers) override {
    return primary_->answer_at_hand(question, now, answers);
  }
  Duration patience() const noexcept override { return primary_->patience(); }
  void give_up(const Question& question, Answers& answers) override;

 private:
  void answer(Ticket ticket, const Result<Verdict>& verdict) override;

  std::unique_ptr<Store> primary_;
  Fallback fallback_;
  const Clock& clock_;
  Answers* answers_ = nullptr;  // the caller; the same for all questions
};

}  // namespace weir
