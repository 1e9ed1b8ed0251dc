#include "weir/server/pipeline.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/identify/handle.h"
#include "weir/policy/explain.h"

namespace weir {
namespace {

// Batches of waiting questions that one flush sends.
constexpr int kRoundsPerFlush = 64;

// Returns what a peek at limits in order found, up to the first denial: a spend asks nothing after it.
Verdict up_to_denial(const Verdict& peeked, std::span<const Charge> charges) {
  Decisions asked;
  for (std::size_t i = 0; i < peeked.all.size(); ++i) {
    asked.push_back(peeked.all[i]);
    if (!peeked.all[i].allowed() && !charges[i].shadow) break;
  }
  if (asked.size() == peeked.all.size()) return peeked;
  Verdict verdict = conclude(asked, [&](std::size_t i) { return charges[i].role(); });
  verdict.degraded = peeked.degraded;
  return verdict;
}

}  // namespace

// One question between ask() and its answer. Reused, so that after a while nothing is allocated for a question.
struct Pipeline::Pending : LaneQuestion {
  Ticket ticket = 0;
  Asker* asker = nullptr;  // null: gone
  std::uint64_t token = 0;
  Mode mode = Mode::spend;
  Order order = Order::together;
  Now now{};
  std::shared_ptr<const Policy> policy;  // the labels point into it
  Time published{};                      // since when that is in force
  Resolved resolved;
  bool probe = false;
  bool own = false;      // a bucket of the caller's own instead of limits by name
  std::string own_text;  // its key in the store
  Charge own_charge;

  std::span<const Charge> charges() const { return own ? std::span(&own_charge, 1) : resolved.charges(); }
};

Pipeline::Pipeline(const Published<config::Loaded>& configuration, const Published<Known>& known, Store& store,
                   LoopMetrics& metrics, const Clock& clock, DenialWatch* watch, Log* log,
                   external::LoopServices* services)
    : configuration_(configuration),
      known_(known),
      store_(store),
      metrics_(metrics),
      pending_(bounds::spare_questions_max),
      clock_(clock),
      watch_(watch),
      log_(log),
      services_(services),
      at_once_(store.answers_at_once()),
      patience_(store.patience()) {
  if (services_ == nullptr) return;
  parked_ = std::make_unique<ParkedQuestions>(*services_, [this](Ticket ticket) { resume(ticket); });
}

Pipeline::~Pipeline() = default;

Pipeline::Pending& Pipeline::take() {
  const Ticket ticket = pending_.take();
  Pending& pending = pending_[ticket];
  pending.ticket = ticket;
  return pending;
}

// One token of a bucket that is full again at once. Fails closed, so that a store failure is not hidden.
void Pipeline::resolve_probe(Pending& pending) {
  constexpr Limit kProbeLimit = Limit::per_second(1'000'000).with_burst(1000);
  pending.own_text.clear();
  pending.own_charge = Charge{};
  pending.own_charge.rate = RateCharge{kProbeBucket, kProbeLimit};
  pending.own_charge.on_failure = FailurePolicy::fail_closed;
}

void Pipeline::release(Pending& pending) {
  pending.asker = nullptr;
  pending.policy.reset();
  if (pending.lane != nullptr) queue_.remove(pending);
  pending_.release(pending.ticket, pending.own_text.capacity() <= bounds::key_bytes_max);
}

void Pipeline::trim(Time now) {
  if (now < trim_at_) return;
  pending_.trim();
  trim_at_ = now + kTrimEvery;
}

void Pipeline::on_configuration(std::function<void(const config::Loaded&)> listener) {
  listener(*configuration_.get());
  listeners_.push_back(std::move(listener));
}

void Pipeline::tell_listeners() const {
  for (const auto& listener : listeners_) listener(*configuration_.get());
}

Result<void> Pipeline::resolve(const Query& query, Now now, Pending& pending) {
  pending.policy = configuration_.get()->policy;
  pending.probe = std::holds_alternative<StoreProbe>(query.subject);
  const auto* const own = std::get_if<OwnBucket>(&query.subject);
  const auto* const exact = std::get_if<ExactBucket>(&query.subject);
  pending.own = pending.probe || own != nullptr || exact != nullptr;
  if (pending.probe) {
    resolve_probe(pending);
    return {};
  }
  if (!pending.own) {
    pending.published = configuration_.since();
    return pending.policy->resolve(query, *known_.get(), now, pending.resolved, pending.published, services_);
  }
  const std::string_view key = own != nullptr ? own->key : exact->key.text;
  if (key.size() > bounds::own_key_bytes_max) {
    return Error{Fault::too_large, "the key is longer than " + std::to_string(bounds::own_key_bytes_max) + " bytes"};
  }
  pending.own_text.assign(own != nullptr ? kOwnPrefix : std::string_view{}).append(key);
  Charge& charge = pending.own_charge;
  charge = {};
  charge.on_failure = pending.policy->failure_policy();
  charge.failure_code = pending.policy->failure_code();
  if (own != nullptr) {
    charge.rate = RateCharge{.key = pending.own_text, .source = Source::caller};
    if (own->limit) charge.rate->limit = *own->limit;
    charge.cost = own->cost;
    return {};
  }
  charge.cost = 0;
  if (exact->key.kind == Kind::quota) {
    charge.quota = QuotaCharge{pending.own_text, exact->quota.value_or(Quota{}), Source::caller};
  } else {
    charge.rate = RateCharge{.key = pending.own_text, .since = exact->since, .source = Source::caller};
    if (exact->limit) charge.rate->limit = *exact->limit;
  }
  return {};
}

void Pipeline::ask(std::uint64_t token, const Query& query, Asker& asker, Now now) {
  Pending& pending = take();
  pending.asker = &asker;
  pending.token = token;
  pending.mode = query.mode;
  pending.now = now;
  Result<void> resolved = resolve(query, now, pending);
  const bool lacks = resolved && !pending.own && !pending.resolved.lookups().empty();
  if (lacks && !look_up(pending, query, now, resolved)) return;
  proceed(pending, resolved, now);
}

// Asks the services for what the question lacks. Returns false if it is parked; otherwise it is resolved again.
bool Pipeline::look_up(Pending& pending, const Query& query, Now now, Result<void>& resolved) {
  FoundAnswers found(*services_);
  if (!parked_->ask(pending.ticket, query, pending.resolved.lookups(), now.time, found)) {
    ++pending.asker->parked_;
    return false;
  }
  resolved = pending.policy->resolve(query, *known_.get(), now, pending.resolved, pending.published, &found);
  return true;
}

// Continues a parked question after the services answered or timed out. Uses the policy it was asked under, because the
// lookups belong to that.
void Pipeline::resume(Ticket ticket) {
  const std::unique_ptr<Parked> parked = parked_->take(ticket);
  Pending& pending = pending_[ticket];
  --pending.asker->parked_;
  pending.now = clock_.now();
  const Result<void> resolved = pending.policy->resolve(parked->owned.query(), *known_.get(), pending.now,
                                                        pending.resolved, pending.published, &parked->answers);
  proceed(pending, resolved, pending.now);
}

void Pipeline::proceed(Pending& pending, const Result<void>& resolved, Now now) {
  if (!resolved) {
    Asker& asker = *pending.asker;
    const std::uint64_t token = pending.token;
    release(pending);
    asker.answered(token, resolved.error());
    return;
  }
  pending.order = pending.own ? Order::together : pending.resolved.order();
  if (at_once_) return send(pending, now);
  send_or_wait(pending, now);
}

Question Pipeline::question_of(const Pending& pending) noexcept {
  const bool look = !pending.own && pending.resolved.impossible();
  return {pending.ticket, pending.charges(), look ? Mode::peek : pending.mode, pending.order, pending.now.time};
}

void Pipeline::send_or_wait(Pending& pending, Now now) {
  const Question question = question_of(pending);
  Lane& lane = pending.asker->lane_;
  pending.buckets = std::max<std::size_t>(question.buckets(), 1);
  pending.gives_back = question.mode == Mode::refund || question.mode == Mode::reset;
  pending.send_by = now.time + std::min<Duration>(patience_, Time::max() - now.time);
  // What the store remembers is out of date while a refund or reset of the same connection is unanswered.
  const bool may_remember = lane.giving_back() == 0 || pending.gives_back;
  queue_.add(lane, pending);
  if (question.charges.empty() || pending.probe ||
      (queue_.empty() && store_.room(question, batch_buckets_) == Room::yes)) {
    queue_.send(pending);
    return send(pending, now);
  }
  answering_together_ = true;
  const bool answered = may_remember && store_.answer_at_hand(question, now, *this);
  answering_together_ = false;
  if (!answered) queue_.wait(pending);
}

void Pipeline::send(Pending& pending, Now now) {
  batch_.push_back(question_of(pending));
  batch_buckets_ += pending.buckets;
  if (batch_.size() >= store_.batch_max()) charge_batch(now);
}

// In rounds: what the store answers from local state, such as a lease, makes room for more in the same turn.
void Pipeline::flush(Now now) {
  trim(now.time);
  time_answered();
  if (parked_ != nullptr) parked_->expire(now.time);
  give_up_late(now.time);
  for (int round = 0; round < kRoundsPerFlush; ++round) {
    send_waiting(now);
    if (batch_.empty()) return;
    charge_batch(now);
  }
}

Time Pipeline::wake_at() const noexcept {
  const Time parked = parked_ == nullptr ? Time::max() : parked_->expires_at();
  return queue_.empty() ? parked : std::min(parked, queue_.oldest()->send_by);
}

void Pipeline::give_up_late(Time now) {
  while (!queue_.empty() && queue_.oldest()->send_by <= now) {
    Pending& pending = static_cast<Pending&>(*queue_.oldest());
    queue_.stop_waiting(pending);
    store_.give_up(question_of(pending), *this);
  }
}

void Pipeline::send_waiting(Now now) {
  std::size_t passed_over = 0;
  while (LaneQuestion* const next = queue_.next()) {
    Pending& pending = static_cast<Pending&>(*next);
    const Room room = store_.room(question_of(pending), batch_buckets_);
    if (room == Room::none || (room == Room::not_here && ++passed_over > bounds::passed_over_max)) return;
    if (room == Room::not_here) {
      queue_.pass_over(*next);
      continue;
    }
    queue_.take(*next);
    send(pending, now);
  }
}

void Pipeline::charge_batch(Now now) {
  batch_buckets_ = 0;
  if (batch_.empty()) return;
  // An answer may lead to new questions; they belong to the next batch.
  std::vector<Question> batch = std::exchange(batch_, {});
  answering_together_ = true;
  {
    const LoopClients::Batch counting(metrics_.clients);
    store_.charge(batch, now, *this);
  }
  answering_together_ = false;
  time_answered();
  batch.clear();
  if (batch_.empty()) batch_ = std::move(batch);
}

// Reads the clock once for all questions that were answered together.
void Pipeline::time_answered() {
  if (answered_.empty()) return;
  const Time done = clock_.time();
  for (const Time asked : answered_) metrics_.decision_seconds.add(done - asked);
  answered_.clear();
}

void Pipeline::answer(Ticket ticket, const Result<Verdict>& verdict) {
  Pending& pending = pending_[ticket];
  Asker* const asker = pending.asker;
  if (!verdict) {
    if (verdict.error().fault == Fault::overloaded) {
      metrics_.overloaded.add();
    } else {
      metrics_.store_failed();
    }
    Error error = verdict.error();
    if (error.code == 0) error.code = pending.policy->failure_code();
    if (asker != nullptr) asker->answered(pending.token, error);
  } else {
    Answer answer;
    answer.verdict = *verdict;
    if (pending.order == Order::in_order && question_of(pending).mode == Mode::peek) {
      answer.verdict = up_to_denial(*verdict, pending.charges());
    }
    answer.now = pending.now;
    answer.headers = pending.policy->headers();
    if (answering_together_) {
      answered_.push_back(pending.now.time);
    } else {
      metrics_.decision_seconds.add(clock_.time() - pending.now.time);
    }
    if (pending.own) {
      explain(pending.own_charge, answer);
    } else {
      explain(*pending.policy, pending.resolved, pending.mode, answer);
    }
    if (pending.mode == Mode::spend && !pending.probe) count(pending, answer);
    if (asker != nullptr) asker->answered(pending.token, answer);
  }
  release(pending);
}

Question Pipeline::question(Ticket ticket) const {
  return question_of(pending_[ticket]);
}

namespace {

std::string denial_line(const Answer& answer) {
  const Label& label = answer.labels[answer.verdict.strictest];
  const Decision& decision = answer.verdict.speaker();
  std::string line = "request denied: client=" + shown_identifier(label, answer.hash_key);
  if (!label.limit.empty()) line.append(" limit=").append(label.limit);
  if (!answer.route.empty()) line.append(" route=").append(answer.route);
  if (answer.access == Access::deny_listed) line += " list=deny";
  return line + " retry_after=" + (decision.retry_after == kNever ? "-1" : print_seconds(decision.retry_after));
}

}  // namespace

void Pipeline::count(const Pending& pending, const Answer& answer) {
  metrics_.record(answer);
  if (!answer.verdict.allowed && !answer.verdict.all.empty() && log_ != nullptr && log_->enabled(LogLevel::debug)) {
    log_->write(LogLevel::debug, denial_line(answer));
  }
  if (pending.own) return;
  if (watch_ != nullptr && !answer.verdict.allowed) watch_->denied(*pending.policy, answer);
  const Resolved& resolved = pending.resolved;
  // The access lists decided before any limit was resolved, so count it without a limit's name.
  const bool before_limits = resolved.parts().empty() && answer.access != Access::limited;
  if (before_limits) metrics_.record_listed(Label{}, answer.access == Access::allow_listed);
  for (const Part& part : resolved.parts()) {
    if (part.unknown_tier) metrics_.record_unknown_tier(describe(part, answer.route));
    if (part.standing != Standing::allow_listed && part.standing != Standing::deny_listed) continue;
    metrics_.record_listed(describe(part, answer.route), part.standing == Standing::allow_listed);
  }
}

void Pipeline::forget(Asker& asker) {
  if (asker.parked_ > 0) {
    std::vector<Ticket> gone;
    parked_->each([&](Ticket ticket) {
      if (pending_[ticket].asker == &asker) gone.push_back(ticket);
    });
    for (const Ticket ticket : gone) {
      parked_->forget(ticket);
      release(pending_[ticket]);
    }
    asker.parked_ = 0;
  }
  Lane& lane = asker.lane_;
  while (LaneQuestion* const waiting = lane.first_waiting()) {
    Pending& pending = static_cast<Pending&>(*waiting);
    if (pending.gives_back) {
      queue_.remove(pending);
      pending.asker = nullptr;
      batch_.push_back(question_of(pending));
    } else {
      release(pending);
    }
  }
  while (LaneQuestion* const sent = lane.any()) {
    static_cast<Pending&>(*sent).asker = nullptr;
    queue_.remove(*sent);
  }
  // With a store that answers at once, this turn's questions are in no lane, only in the batch.
  for (const Question& question : batch_) {
    Pending& pending = pending_[question.ticket];
    if (pending.asker == &asker) pending.asker = nullptr;
  }
}

}  // namespace weir
