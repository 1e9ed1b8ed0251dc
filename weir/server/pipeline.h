// Read this first: how a question becomes an answer. Everything left of it knows a protocol and no limits, everything
// right of it limits and no protocol.
//
//   ask:     Query --policy--> Charges, collected into this turn's batch
//   flush:   batch --store--> Verdicts, each given back as soon as the store has it
//   deliver: Verdict --policy--> Answer, with names and refusals (policy/explain.h): counted, then handed to the asker
//
// A limit may have its numbers from a service (external/). If an answer is lacking, a copy of the question is parked
// (parked.h) until the service has answered or has taken too long; then it is resolved again.
//
// What a store elsewhere has no room for waits in between, in the asker's lane (fair_queue.h), unless it can be
// answered from what is at hand. What has waited too long is given up.
//
// Thread safety: none; every loop has its own. refresh() takes over the configuration and what is known, before a
// question is read: a change that was published before the question was sent is in force for it, and no question sees a
// part of one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/log.h"
#include "weir/base/pool.h"
#include "weir/base/published.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/config/parse.h"
#include "weir/core/answer.h"
#include "weir/core/query.h"
#include "weir/external/services.h"
#include "weir/known/known.h"
#include "weir/observe/metrics.h"
#include "weir/policy/policy.h"
#include "weir/server/denial_watch.h"
#include "weir/server/fair_queue.h"
#include "weir/server/parked.h"
#include "weir/store/store.h"

namespace weir {

// Whoever asked. Answers come in any order, each token once. Must be forgotten by the pipeline before it ends.
class Asker {
 public:
  virtual ~Asker() = default;
  virtual void answered(std::uint64_t token, const Result<Answer>& answer) = 0;

  // As many questions wait as may: ask no more until some are answered.
  bool must_wait() const noexcept { return lane_.waiting() >= bounds::waiting_max; }

 private:
  friend class Pipeline;
  Lane lane_;
  std::size_t parked_ = 0;  // questions that wait for a service
};

class Pipeline final : private Answers {
 public:
  // All of them must outlive the pipeline. Without a watch nobody is blocked automatically. The log gets denials, at
  // debug. Without services limits have their own numbers.
  Pipeline(const Published<config::Loaded>& configuration, const Published<Known>& known, Store& store,
           LoopMetrics& metrics, const Clock& clock, DenialWatch* watch = nullptr, Log* log = nullptr,
           external::LoopServices* services = nullptr);
  ~Pipeline() override;

  // From here on questions are asked under what is in force now. To be called after their bytes have arrived.
  void refresh() {
    if (configuration_.refresh()) tell_listeners();
    known_.refresh();
  }
  // Called now, and from refresh() with each configuration before anything is asked under it: what this loop keeps of a
  // configuration changes together with its policy.
  void on_configuration(std::function<void(const config::Loaded&)> listener);
  // Takes what it needs from the query before it returns. What cannot be charged is answered at once.
  void ask(std::uint64_t token, const Query& query, Asker& asker, Now now);
  // Charges everything asked since the last flush, as one batch, and what waits as far as there is room for it.
  void flush(Now now);
  // True if flush() has something to do.
  bool has_work() const noexcept {
    return !batch_.empty() || !queue_.empty() || (parked_ != nullptr && !parked_->empty());
  }
  // When to flush() at the latest; Time::max(): nothing waits.
  Time wake_at() const noexcept;
  // The asker is gone: its answers are dropped. What was charged stands; what still waits is not, except refunds and
  // resets. Costs as much as it has unanswered.
  void forget(Asker& asker);
  // What this loop counts.
  LoopMetrics& metrics() noexcept { return metrics_; }

 private:
  struct Pending;

  void tell_listeners() const;
  Pending& take();
  static void resolve_probe(Pending& pending);
  void release(Pending& pending);
  static Question question_of(const Pending& pending) noexcept;
  void send_or_wait(Pending& pending, Now now);
  void send(Pending& pending, Now now);
  void give_up_late(Time now);
  void send_waiting(Now now);
  void trim(Time now);
  void charge_batch(Now now);
  void time_answered();
  Result<void> resolve(const Query& query, Now now, Pending& pending);
  bool look_up(Pending& pending, const Query& query, Now now, Result<void>& resolved);
  void resume(Ticket ticket);
  void proceed(Pending& pending, const Result<void>& resolved, Now now);
  void answer(Ticket ticket, const Result<Verdict>& verdict) override;
  Question question(Ticket ticket) const override;
  void count(const Pending& pending, const Answer& answer);

  Reader<config::Loaded> configuration_;
  std::vector<std::function<void(const config::Loaded&)>> listeners_;
  Reader<Known> known_;
  Store& store_;
  LoopMetrics& metrics_;
  Pool<Pending> pending_;  // by ticket
  Time trim_at_{};
  const Clock& clock_;
  DenialWatch* watch_;
  Log* log_;
  external::LoopServices* services_;
  std::unique_ptr<ParkedQuestions> parked_;  // null without services
  const bool at_once_;                       // the store answers all within charge(): nothing ever waits
  const Duration patience_;
  FairQueue queue_;  // unused if so
  std::vector<Question> batch_;
  std::size_t batch_buckets_ = 0;
  bool answering_together_ = false;  // else an answer comes from a store elsewhere, on its own
  std::vector<Time> answered_;       // when those were asked that were answered together
};

}  // namespace weir
