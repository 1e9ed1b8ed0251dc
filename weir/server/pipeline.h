// Read this first: how a question becomes an answer. Sessions in front of it know a protocol and no limits; policy and
// store behind it know limits and no protocol.
//
//   ask:     Query --policy--> Charges, collected into this turn's batch
//   flush:   batch --store--> Verdicts, each given back as soon as the store has it
//   deliver: Verdict --policy--> Answer, with names and refusals (policy/explain.h): counted, then handed to the asker
//
// A limit may get its numbers from a service (external/). If such an answer is missing, a copy of the question is
// parked (parked.h) until the service answers or times out; then it is resolved again.
//
// If a remote store has no room for a question, it answers from local state (a lease, a cached denial) if it can.
// Otherwise the question waits in its asker's lane (fair_queue.h) and is given up when it has waited too long.
//
// Thread safety: none; every loop has its own. Call refresh() after bytes have arrived and before questions are read
// from them: a change published before a question was sent then applies to it, and no question sees half a change.
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

// Receives the answers to its questions, in any order, each token once. Call Pipeline::forget() before destroying it.
class Asker {
 public:
  virtual ~Asker() = default;
  virtual void answered(std::uint64_t token, const Result<Answer>& answer) = 0;

  // True if no more questions may wait: ask again when some are answered.
  bool must_wait() const noexcept { return lane_.waiting() >= bounds::waiting_max; }

 private:
  friend class Pipeline;
  Lane lane_;
  std::size_t parked_ = 0;  // questions that wait for a service
};

class Pipeline final : private Answers {
 public:
  // All arguments must outlive the pipeline. Without `watch`, no client is blocked automatically. `log` gets denials at
  // level debug. Without `services`, limits use their own numbers.
  Pipeline(const Published<config::Loaded>& configuration, const Published<Known>& known, Store& store,
           LoopMetrics& metrics, const Clock& clock, DenialWatch* watch = nullptr, Log* log = nullptr,
           external::LoopServices* services = nullptr);
  ~Pipeline() override;

  // Applies what is published now to the questions that follow. Call it after their bytes have arrived.
  void refresh() {
    if (configuration_.refresh()) tell_listeners();
    known_.refresh();
  }
  // Calls `listener` now, and from refresh() with each new configuration before any question uses it. So what this loop
  // keeps of a configuration changes together with its policy.
  void on_configuration(std::function<void(const config::Loaded&)> listener);
  // Does not use the query after it returns. A question that cannot be resolved is answered at once, with an Error.
  void ask(std::uint64_t token, const Query& query, Asker& asker, Now now);
  // Charges everything asked since the last flush as one batch, and as many waiting questions as the store has room
  // for.
  void flush(Now now);
  // True if flush() has something to do.
  bool has_work() const noexcept {
    return !batch_.empty() || !queue_.empty() || (parked_ != nullptr && !parked_->empty());
  }
  // When to call flush() at the latest; Time::max() if nothing waits.
  Time wake_at() const noexcept;
  // Drops the answers of an asker that is gone. What was sent to the store stands; of what waits for it, only refunds
  // and resets are still sent. Linear in its unanswered questions, and in all parked ones if it has any.
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
  const bool at_once_;                       // the store answers within charge(), so nothing waits for it
  const Duration patience_;
  FairQueue queue_;  // unused if at_once_
  std::vector<Question> batch_;
  std::size_t batch_buckets_ = 0;
  bool answering_together_ = false;  // else a remote store sends each answer on its own
  std::vector<Time> answered_;       // when the questions answered together were asked
};

}  // namespace weir
