#include "weir/server/pipeline.h"

#include <utility>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"

namespace weir {

// One question between ask() and its answer. Reused, so that after a while nothing is allocated for a question.
struct Pipeline::Pending {
  Ticket ticket = 0;
  Asker* asker = nullptr;  // null: gone
  std::uint64_t sequence = 0;
  Mode mode = Mode::spend;
  Order order = Order::together;
  Now now{};
  std::shared_ptr<const Policy> policy;  // the labels point into it
  Resolved resolved;
  bool own = false;      // a bucket of the caller's own instead of limits by name
  std::string own_text;  // its key in the store
  Charge own_charge;

  std::span<const Charge> charges() const { return own ? std::span(&own_charge, 1) : resolved.charges(); }
};

namespace {

void measure(const Charge& charge, Label& label) {
  label.bucket = charge.key.text;
  const bool quota = charge.key.kind == Kind::quota;
  label.window = quota ? charge.quota.window.end - charge.quota.window.start : charge.limit.window();
  label.interval = quota ? Duration::zero() : charge.limit.interval();
}

}  // namespace

Pipeline::Pipeline(std::shared_ptr<const Policy> policy, Store& store, LoopMetrics& metrics, const Clock& clock)
    : policy_(std::move(policy)), store_(store), metrics_(metrics), clock_(clock) {}

Pipeline::~Pipeline() = default;

Pipeline::Pending& Pipeline::take() {
  if (free_.empty()) {
    free_.push_back(pending_.size());
    pending_.push_back(std::make_unique<Pending>());
  }
  const Ticket ticket = free_.back();
  free_.pop_back();
  Pending& pending = *pending_[ticket];
  pending.ticket = ticket;
  return pending;
}

Result<void> Pipeline::resolve(const Query& query, Now now, Pending& pending) {
  pending.own = query.charges.empty() && !query.key.empty();
  if (!pending.own) {
    pending.policy = policy_;
    return policy_->resolve(query, now, pending.resolved);
  }
  if (query.key.size() > bounds::own_key_bytes_max) {
    return Error{Fault::too_large, "the key is longer than " + std::to_string(bounds::own_key_bytes_max) + " bytes"};
  }
  pending.own_text.assign(kOwnPrefix).append(query.key);
  pending.own_charge = Charge{};
  pending.own_charge.key = Key{pending.own_text};
  pending.own_charge.cost = query.cost;
  pending.own_charge.on_failure = policy_->failure_policy();
  // A reset needs no numbers.
  if (query.limit) pending.own_charge.limit = *query.limit;
  return {};
}

void Pipeline::ask(std::uint64_t sequence, const Query& query, Asker& asker, Now now) {
  Pending& pending = take();
  pending.asker = &asker;
  pending.sequence = sequence;
  pending.mode = query.mode;
  pending.order = query.order;
  pending.now = now;
  if (const auto resolved = resolve(query, now, pending); !resolved) {
    pending.asker = nullptr;
    free_.push_back(pending.ticket);
    asker.answered(sequence, resolved.error());
    return;
  }
  batch_.push_back({pending.ticket, pending.charges(), pending.mode, pending.order});
  if (batch_.size() >= bounds::queries_per_turn_max) flush(now);
}

void Pipeline::flush(Now now) {
  if (batch_.empty()) return;
  // An answer may lead to new questions; they belong to the next batch.
  std::vector<Question> batch = std::exchange(batch_, {});
  store_.charge(batch, now, *this);
  // One reading for all that were answered.
  const Time done = clock_.now().time;
  for (const Time asked : answered_) metrics_.decision_seconds.add(done - asked);
  answered_.clear();
  batch.clear();
  if (batch_.empty()) batch_ = std::move(batch);
}

void Pipeline::answer(Ticket ticket, const Result<Verdict>& verdict) {
  Pending& pending = *pending_[ticket];
  Asker* const asker = std::exchange(pending.asker, nullptr);
  if (!verdict) {
    metrics_.store_failed();
    if (asker != nullptr) asker->answered(pending.sequence, verdict.error());
  } else {
    Answer answer;
    answer.verdict = *verdict;
    answer.now = pending.now;
    answered_.push_back(pending.now.time);
    label(pending, answer);
    if (pending.mode == Mode::spend) metrics_.record(answer);
    if (asker != nullptr) asker->answered(pending.sequence, answer);
  }
  pending.policy.reset();
  free_.push_back(ticket);
}

void Pipeline::label(const Pending& pending, Answer& answer) {
  Verdict& verdict = answer.verdict;
  if (pending.own) {
    answer.labels[0].id = std::string_view(pending.own_text).substr(kOwnPrefix.size());
    measure(pending.own_charge, answer.labels[0]);
    answer.labels[0].source = "caller";
    return;
  }
  const auto write = [&](std::size_t i, const Part& part) {
    Label& label = answer.labels[i];
    label.limit = part.limit->name;
    label.id = part.id;
    label.source = print(part.source);
    // Of a composite no single part tells what is counted.
    label.key = part.limit->key.size() == 1 ? std::string_view(part.limit->key.front()) : std::string_view{};
    label.shadow = part.limit->mode == Enforcement::shadow;
  };
  for (const Part& part : pending.resolved.parts()) {
    for (const std::size_t i : {part.bucket, part.quota}) {
      if (i == kNoCharge || i >= verdict.all.size()) continue;
      write(i, part);
      measure(pending.charges()[i], answer.labels[i]);
    }
  }
  const Part* const blocked = pending.resolved.blocked();
  if (blocked == nullptr || !verdict.allowed) return;
  // No wait helps: the override says so.
  const Decision never{false, 0, 0, kNever, Duration::zero()};
  const bool room = verdict.all.size() < bounds::charges_max;
  verdict.strictest = room ? verdict.all.size() : verdict.all.size() - 1;  // full: it takes the last one's place
  verdict.allowed = false;
  if (room) {
    verdict.all.push_back(never);
  } else {
    verdict.all[verdict.strictest] = never;
    answer.labels[verdict.strictest] = {};
  }
  write(verdict.strictest, *blocked);
}

void Pipeline::forget(const Asker& asker) noexcept {
  for (const auto& pending : pending_) {
    if (pending->asker == &asker) pending->asker = nullptr;
  }
}

}  // namespace weir
