#include "weir/store/redis/leasing_store.h"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/redis/refusal.h"

namespace weir::redis {
namespace {

// How many lease ends a loop tracks. A bucket may have several leases within kLeaseLife; all but the last are used up.
constexpr std::size_t kDueMax = 4 * bounds::leases_max;

// The fields of the script's reply.
constexpr std::size_t kFull = 2, kFit = 3, kRemaining = 4, kRetry = 5, kReset = 6, kLeased = 7, kFields = 8;

Verdict verdict_of(const Decision& decision) {
  Verdict verdict;
  verdict.all.push_back(decision);
  verdict.allowed = decision.allowed;
  return verdict;
}

}  // namespace

LeasingStore::~LeasingStore() {
  loop_.cancel(timer_);
  end_due(Time::max());
  store_->flush();
}

bool LeasingStore::may_lease(const Question& question) noexcept {
  if (question.mode != Mode::spend || question.charges.size() != 1) return false;
  const Charge& charge = question.charges.front();
  if (!charge.rate || charge.quota) return false;
  return charge.rate->lease.tokens > 0 && !charge.shadow && charge.cost > 0 && charge.rate->has_lease();
}

void LeasingStore::charge(std::span<const Question> batch, Now now, Answers& answers) {
  lending_ = std::ranges::any_of(batch, may_lease);
  if (!lending_) {
    store_->charge(batch, now, answers);
    return;
  }
  std::vector<Question> alone = std::exchange(alone_, {});
  for (const Question& question : batch) {
    if (!may_lease(question) || !lend({question, &answers, now}, now.time, false)) alone.push_back(question);
  }
  send_gathered();
  store_->charge(alone, now, answers);
  alone.clear();
  alone_ = std::move(alone);
}

bool LeasingStore::answer_at_hand(const Question& question, Now now, Answers& answers) {
  if (may_lease(question)) {
    const Charge& charge = question.charges.front();
    const Leases::Terms terms{charge.rate->shared_limit(), charge.rate->lease};
    if (const auto leased = leases_.spend_leased(leases_.bucket(charge.rate->key), terms, charge.cost, now.time)) {
      store_->health().count_leased();
      answers.answer(question.ticket, verdict_of(*leased));
      return true;
    }
  }
  return store_->answer_at_hand(question, now, answers);
}

// Returns false if the request must be asked alone.
bool LeasingStore::lend(const Member& member, Time now, bool again) {
  const Charge& charge = member.question.charges.front();
  const Leases::Bucket bucket = leases_.bucket(charge.rate->key);
  const Leases::Terms terms{charge.rate->shared_limit(), charge.rate->lease};
  const Leases::Answer answer = leases_.spend(bucket, terms, charge.cost, now, again);
  switch (answer.way) {
    case Leases::Way::leased:
      store_->health().count_leased();
      member.answers->answer(member.question.ticket, verdict_of(answer.decision));
      return true;
    case Leases::Way::alone:
      return false;
    case Leases::Way::gather:
      break;
  }
  return gather(member, now, bucket, terms, answer);
}

bool LeasingStore::gather(const Member& member, Time now, Leases::Bucket bucket, const Leases::Terms& terms,
                          const Leases::Answer& answer) {
  const Charge& charge = member.question.charges.front();
  const Time asked = member.question.asked == Time{} ? member.now.time : member.question.asked;
  const Time deadline = asked + store_->options().link.timeout;
  if (answer.want == 0) {
    const auto found = on_its_way_.find(bucket);
    Ask* const ask = found == on_its_way_.end() ? nullptr : found->second;
    if (ask != nullptr && ask->place.terms == terms && ask->parked_cost + charge.cost <= ask->want &&
        ask->deadline <= deadline) {
      ask->parked_cost += charge.cost;
      ask->parked.push_back(member);
      return true;
    }
  }
  Ask* open = find_open(bucket, terms, charge.cost);
  if (open == nullptr) {
    std::string key = store_->key_of({charge.rate->key, Kind::bucket});
    auto leases = lease_key_of(key);
    if (!leases) {
      leases_.refused(bucket, answer.serial, Time::max());
      return false;
    }
    open_.push_back(std::make_shared<Ask>());
    open = open_.back().get();
    open->place = {bucket, terms, std::move(key), std::move(*leases)};
    open->cost = charge.cost;
    open->sent = now;
    open->deadline = deadline;
  }
  if (answer.want > 0) {
    open->want = answer.want;
    open->serial = answer.serial;
    if (answer.unspent.tokens > 0) give_back(open->place, answer.unspent.tokens, answer.unspent.serial);
  }
  open->deadline = std::min(open->deadline, deadline);
  open->members.push_back(member);
  return true;
}

LeasingStore::Ask* LeasingStore::find_open(Leases::Bucket bucket, const Leases::Terms& terms, Count cost) noexcept {
  for (const auto& ask : open_) {
    if (ask->place.bucket == bucket && ask->cost == cost && ask->place.terms == terms) return ask.get();
  }
  return nullptr;
}

std::optional<std::string> LeasingStore::lease_key_of(std::string_view key) const {
  const RedisStore::Options& options = store_->options();
  const std::size_t tag = options.hash_tag.empty() ? 0 : options.hash_tag.size() + 2;
  return lease_key(key, options.key_prefix.size() + tag, [this](std::string_view k) { return store_->slot_of(k); });
}

void LeasingStore::send_gathered() {
  for (std::shared_ptr<Ask>& ask : std::exchange(open_, {})) {
    const Limit& limit = ask->place.terms.limit;
    const bool leases = ask->want > 0;
    std::vector<std::string> arguments = {leases ? "2" : "1", ask->place.key};
    if (leases) arguments.push_back(ask->place.lease_key);
    const std::array<std::int64_t, 5> numbers = {limit.price(ask->cost).count(), limit.window().count(),
                                                 limit.interval().count(),
                                                 static_cast<std::int64_t>(ask->members.size()), ask->want};
    arguments.insert(arguments.end(), {"lease", "b"});
    for (const std::int64_t number : numbers) arguments.push_back(std::to_string(number));
    arguments.insert(arguments.end(),
                     {leases_.holder(), std::to_string(ask->serial), std::to_string(ask->place.terms.lease.servers),
                      std::to_string(kLeasePlace / std::chrono::milliseconds{1})});
    if (leases) on_its_way_[ask->place.bucket] = ask.get();
    store_->script(ask->place.key, arguments, ask->deadline,
                   [this, ask](const resp::Reply* reply, Lost how) { replied(*ask, reply, how); });
  }
}

void LeasingStore::replied(Ask& ask, const resp::Reply* reply, Lost how) {
  if (const auto found = on_its_way_.find(ask.place.bucket); found != on_its_way_.end() && found->second == &ask)
    on_its_way_.erase(found);
  if (reply != nullptr && reply->root().type != resp::Type::error) {
    const auto values = reply->values().subspan(1);
    const bool whole = reply->root().type == resp::Type::array && values.size() == kFields &&
                       std::ranges::all_of(values, [](const auto& v) { return v.type == resp::Type::integer; });
    if (whole) {
      decide(ask, values);
      return;
    }
  }
  leases_.refused(ask.place.bucket, ask.serial, Time{});
  const Refusal refusal = reply == nullptr ? Refusal::other : parse_refusal(reply->root().text).refusal;
  if (reply == nullptr ? how == Lost::unsent : is_not_applied(refusal)) {
    ask_alone(ask.members);
    ask_alone(ask.parked);
  } else if (reply != nullptr) {
    const bool error = reply->root().type == resp::Type::error;
    fail(ask, error ? trouble_of(refusal) : Trouble::malformed,
         error ? to_error(refusal, reply->root().text)
               : Error{Fault::unavailable, "Redis sent an unexpected reply to the script"});
  } else if (how == Lost::late) {
    fail(ask, Trouble::timeout, {Fault::timeout, "Redis did not reply in time"});
  } else {
    fail(ask, Trouble::lost, {Fault::timeout, "the connection to Redis was lost before it replied"});
  }
}

// Decides as if the requests had been asked one after another at the time of the reply.
void LeasingStore::decide(Ask& ask, std::span<const resp::Reply::Value> values) {
  const Limit& limit = ask.place.terms.limit;
  const auto passed =
      std::min(static_cast<std::size_t>(std::max<std::int64_t>(values[kFit].integer, 0)), ask.members.size());
  const Count lease = std::clamp<Count>(values[kLeased].integer, 0, ask.want);
  Decision left;
  left.burst = limit.burst();
  left.remaining = values[kRemaining].integer;
  left.reset_after = Duration{values[kReset].integer};
  Decision denied = left;
  denied.allowed = false;
  denied.retry_after = Duration{values[kRetry].integer};
  const bool all_fit = passed == ask.members.size();
  settle_lease(ask, lease, values[kFull].integer != 0, all_fit ? left : denied, all_fit);

  Duration backlog = left.reset_after - limit.interval() * lease;
  backlog -= limit.price(ask.cost) * static_cast<std::int64_t>(passed);
  for (std::size_t i = 0; i < ask.members.size(); ++i) {
    Decision decision = denied;
    if (i < passed) {
      backlog += limit.price(ask.cost);
      decision = left;
      decision.reset_after = backlog;
      decision.remaining = (limit.window() - backlog) / limit.interval();
    }
    ask.members[i].answers->answer(ask.members[i].question.ticket, verdict_of(decision));
  }
  ask_anew(ask.parked);
}

// `left` is the bucket's state afterwards; a denial if it denied a request.
void LeasingStore::settle_lease(const Ask& ask, Count leased, bool full, const Decision& left, bool all_fit) {
  const Time now = loop_.now().time;
  const Leases::Bucket bucket = ask.place.bucket;
  if (leased > 0) {
    if (!leases_.granted(bucket, ask.serial, leased, left, ask.sent, now)) {
      give_back(ask.place, leased, ask.serial);
      return;
    }
    due_.push_back({ask.sent + kLeaseSpent, ask.place, ask.serial});
    if (due_.size() > kDueMax) end_due(due_.front().until);
    arm();
  } else if (full) {
    leases_.refused(bucket, ask.serial, now + kLeaseLife);
  } else if (!all_fit) {
    // Until then, requests are asked one by one, and the RedisStore caches their denials.
    leases_.refused(bucket, ask.serial, now + left.retry_after);
  } else if (ask.want > 0) {
    leases_.refused(bucket, ask.serial, now + ask.place.terms.limit.interval());
  }
}

void LeasingStore::fail(const Ask& ask, Trouble trouble, const Error& error) {
  for (const auto* const list : {&ask.members, &ask.parked}) {
    for (const Member& member : *list) {
      store_->health().count(trouble);
      member.answers->answer(member.question.ticket, error);
    }
  }
}

void LeasingStore::ask_alone(std::span<const Member> members) {
  for (const Member& member : members) store_->charge({&member.question, 1}, member.now, *member.answers);
}

// Their deadlines still count from their arrival.
void LeasingStore::ask_anew(std::span<const Member> members) {
  const Time now = loop_.now().time;
  for (const Member& member : members) {
    if (!lend(member, now, true)) ask_alone({&member, 1});
  }
  send_gathered();
}

void LeasingStore::give_back(const Place& place, Count tokens, std::uint64_t serial) {
  const Limit& limit = place.terms.limit;
  const std::vector<std::string> arguments = {"2",
                                              place.key,
                                              place.lease_key,
                                              "return",
                                              "b",
                                              std::to_string(limit.price(tokens).count()),
                                              std::to_string(limit.window().count()),
                                              std::to_string(limit.interval().count()),
                                              leases_.holder(),
                                              std::to_string(serial)};
  if (const auto& denials = store_->options().denials) denials->forget(place.key);
  const Time deadline = loop_.now().time + store_->options().link.timeout;
  store_->script(place.key, arguments, deadline, [](const resp::Reply*, Lost) {});
}

void LeasingStore::end_due(Time now) {
  while (!due_.empty() && due_.front().until <= now) {
    const Due due = std::move(due_.front());
    due_.pop_front();
    const Count rest = leases_.end(due.place.bucket, due.serial);
    if (rest > 0) give_back(due.place, rest, due.serial);
  }
}

void LeasingStore::arm() {
  if (timer_ != 0 || due_.empty()) return;
  timer_ = loop_.at(due_.front().until, [this] {
    timer_ = 0;
    end_due(loop_.now().time);
    store_->flush();
    arm();
  });
}

}  // namespace weir::redis
