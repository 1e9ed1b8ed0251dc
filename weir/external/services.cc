#include "weir/external/services.h"

#include <algorithm>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/external/flight.h"
#include "weir/policy/bucket_id.h"

namespace weir::external {

// --- Services ---

Services::Services(const Clock& clock, HashKey key, std::shared_ptr<SharedAnswers> shared, Log log,
                   std::size_t answers_max, BucketId bucket_id)
    : clock_(clock),
      cache_(key, answers_max),
      shared_(std::move(shared)),
      log_(std::move(log)),
      bucket_id_(std::move(bucket_id)) {
  if (shared_ == nullptr) return;
  shared_->on_forgotten([this](std::string_view limit, std::string_view id) { drop(limit, id); });
}

Services::~Services() {
  if (shared_ != nullptr) shared_->on_forgotten({});
}

AnswerCache::Found Services::find(const NamedLimit& limit, std::string_view id, Time now) const {
  if (limit.service == nullptr) return {};
  return cache_.find(limit.name, id, limit.service->digest, now);
}

void Services::forget(std::string_view limit, std::string_view id, std::function<void(bool shared)> done) {
  drop(limit, id);
  if (shared_ == nullptr) return done(true);
  shared_->forget(limit, id, std::move(done));
}

// A call in flight may still bring the old answer: its waiters get it, but it is not cached.
void Services::drop(std::string_view limit, std::string_view id) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, service] : services_) {
      if (!limit.empty() && name.first != limit) continue;
      service->forget(id, limit.empty());
      const auto known = cache_.find(limit, id, name.second, clock_.time()).answer;
      if (known != nullptr && !known->tenant_key.empty()) cache_.forget(limit, tenant_id(limit, *known));
    }
  }
  if (limit.empty()) {
    cache_.clear();
  } else {
    cache_.forget(limit, id);
  }
}

std::string Services::tenant_id(std::string_view limit, const ServiceAnswer& answer) const {
  std::string id = std::string(kTenantPrefix) + answer.tenant_key;
  return bucket_id_ ? bucket_id_(limit, std::move(id)) : id;
}

Service& Services::service_of(const NamedLimit& limit) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Service>& service = services_[{limit.name, limit.service->digest}];
  if (service == nullptr) service = std::make_unique<Service>(limit.name);
  current_[limit.name] = service.get();
  return *service;
}

ServiceGauges Services::gauges() const {
  ServiceGauges gauges;
  const Time now = clock_.time();
  const std::lock_guard lock(mutex_);
  for (const auto& [limit, service] : current_) service->add_to(gauges, now);
  gauges.any = !services_.empty();
  gauges.answers = cache_.size();
  // Before the first look, nothing is known.
  if (shared_ != nullptr && gauges.any) gauges.shared_up = shared_->is_up();
  return gauges;
}

// --- LoopServices ---

// How a flight ended.
struct LoopServices::Ended {
  std::shared_ptr<const KeptAnswer> answer;  // null: none is known
  Where where = Where::miss;
  CallEnd call = CallEnd::not_made;
};

LoopServices::LoopServices(Services& services, std::unique_ptr<Caller> caller, Post post, ServiceMetrics& metrics)
    : services_(services),
      caller_(std::move(caller)),
      metrics_(metrics),
      port_(std::make_shared<Port>(*this, std::move(post))) {}

LoopServices::~LoopServices() {
  port_->close();
}

ServiceAnswers::Found LoopServices::find(const NamedLimit& limit, std::string_view id, Time now) const {
  AnswerCache::Found found = services_.find(limit, id, now);
  if (found.fresh) metrics_.found(Where::hit);
  return {std::move(found.answer), !found.fresh};
}

std::shared_ptr<const ServiceAnswer> LoopServices::known(const NamedLimit& limit, std::string_view id, Time now) const {
  return services_.find(limit, id, now).answer;
}

std::shared_ptr<const ServiceAnswer> LoopServices::give_up(const NamedLimit& limit, std::string_view id) {
  return fall_back(known(limit, id, services_.clock_.time())).answer;
}

LoopServices::Asked LoopServices::fall_back(std::shared_ptr<const ServiceAnswer> stale) {
  metrics_.found(stale != nullptr ? Where::stale : Where::miss);
  return {false, std::move(stale)};
}

LoopServices::Asked LoopServices::ask(const NamedLimit& limit, std::string_view id,
                                      std::span<const Attribute> attributes, std::uint64_t wait) {
  const Time now = services_.clock_.time();
  AnswerCache::Found known = services_.find(limit, id, now);
  if (known.fresh) return {false, std::move(known.answer)};
  std::shared_ptr<Flight> flight;
  const Begun begun = begin(limit, id, known.answer != nullptr, attributes, wait, flight);
  if (begun == Begun::refused) {
    known = services_.find(limit, id, now);  // another loop may just have got it
    return known.fresh ? Asked{false, std::move(known.answer)} : fall_back(std::move(known.answer));
  }
  if (begun != Begun::beside) waiting_.emplace(wait, flight);
  if (begun != Begun::joined) start(flight);
  return begun == Begun::beside ? fall_back(std::move(known.answer)) : Asked{true, nullptr};
}

// Joins the flight of this key, starts one, or refuses. Joining comes first: it needs no slot.
LoopServices::Begun LoopServices::begin(const NamedLimit& limit, std::string_view id, bool knows,
                                        std::span<const Attribute> attributes, std::uint64_t wait,
                                        std::shared_ptr<Flight>& flight) {
  Service& service = services_.service_of(limit);
  const Time now = services_.clock_.time();
  const std::lock_guard lock(service.mutex);
  const std::size_t waiting_max = limit.service->waiting_max;
  // Otherwise every request would wait the whole timeout for a hanging service until its breaker opens.
  const bool may_wait = service.waiting < waiting_max && !(knows && service.is_slow(now));
  if (const auto found = service.flights.find(std::string(id)); found != service.flights.end()) {
    flight = found->second;
    const bool hopeless = flight->may_call && service.breaker.is_open();
    if (!may_wait || hopeless || flight->waiters.size() >= 2 * waiting_max) return Begun::refused;
    service.join(*flight, port_, wait);
    return Begun::joined;
  }
  // Another loop may have got the answer between our look and the lock.
  if (services_.find(limit, id, now).fresh) return Begun::refused;
  const bool may_call = service.permits(id, now);
  // A breaker is open: do not call the service, but look for an answer that another server shared.
  if (!may_call && (knows || !may_wait || services_.shared_ == nullptr || !service.may_read_shared(id, now))) {
    return Begun::refused;
  }
  flight = std::make_shared<Flight>(service, limit.service, id, make_question(*limit.service, id, attributes));
  flight->may_call = may_call;
  flight->probes = may_call && service.breaker.is_open();
  service.flights.emplace(flight->key, flight);
  if (flight->probes || !may_wait) return Begun::beside;
  service.join(*flight, port_, wait);
  return Begun::first;
}

void LoopServices::start(const std::shared_ptr<Flight>& flight) {
  if (services_.shared_ == nullptr) return take_slot(flight);
  const auto read = [port = port_, flight](std::optional<KeptAnswer> answer) {
    port->run([flight, answer = std::move(answer)](LoopServices& loop) { loop.read_shared(flight, answer); });
  };
  services_.shared_->read(flight->service->limit, flight->key, flight->settings->digest, read);
}

void LoopServices::read_shared(const std::shared_ptr<Flight>& flight, std::optional<KeptAnswer> answer) {
  const Time now = services_.clock_.time();
  const bool fresh = answer && answer->fresh_until > now;
  std::shared_ptr<const KeptAnswer> kept;
  if (answer && answer->stale_until > now) kept = keep(*flight, std::move(*answer), now);
  if (fresh) return end(flight, {kept, Where::shared, CallEnd::not_made});
  if (flight->may_call) return take_slot(flight);
  flight->service->note_absent(flight->key, now);
  end(flight, {kept, kept != nullptr ? Where::stale : Where::miss, CallEnd::not_made});
}

void LoopServices::take_slot(const std::shared_ptr<Flight>& flight) {
  switch (flight->service->take_slot(flight, services_.clock_.time())) {
    case Slot::taken:
      return call(flight);
    case Slot::queued:
      return;
    case Slot::none:
      return end_without_answer(flight, CallEnd::not_made);
  }
}

void LoopServices::call(const std::shared_ptr<Flight>& flight) {
  const Time began = services_.clock_.time();
  caller_->call(flight->settings, flight->question,
                [this, flight, began](CallOutcome outcome) { called(flight, began, std::move(outcome)); });
}

void LoopServices::called(const std::shared_ptr<Flight>& flight, Time began, CallOutcome outcome) {
  const Time now = services_.clock_.time();
  metrics_.seconds.add(now - began);
  metrics_.ended(outcome.reply ? "ok" : outcome.reply.error().word);
  if (!outcome.reply) {
    report(*flight, outcome.reply.error());
    return end_without_answer(flight, CallEnd::failed);
  }
  report(*flight, *outcome.reply);
  KeptAnswer answer;
  static_cast<ServiceAnswer&>(answer) = std::move(outcome.reply->answer);
  answer.service = flight->settings->digest;
  answer.answered = now;
  answer.fresh_until = now + std::min(outcome.freshness.fresh, bounds::service_ttl_max);
  answer.stale_until = answer.fresh_until + (outcome.freshness.keep_stale ? bounds::stale_time : Duration::zero());
  const bool share = services_.shared_ != nullptr && answer.stale_until > now;
  auto kept = keep(*flight, std::move(answer), now);
  if (share && !flight->is_forgotten()) services_.shared_->write(flight->service->limit, flight->key, *kept);
  end(flight, {std::move(kept), Where::miss, CallEnd::succeeded});
}

// The last answer is used, if there is one.
void LoopServices::end_without_answer(const std::shared_ptr<Flight>& flight, CallEnd call) {
  const Time now = services_.clock_.time();
  auto stale = services_.cache_.find(flight->service->limit, flight->key, flight->settings->digest, now).answer;
  const Where where = stale != nullptr ? Where::stale : Where::miss;
  end(flight, {std::move(stale), where, call});
}

// Operators see tenants, not the ids behind them: a tenant's name finds the last answer that named it.
std::shared_ptr<const KeptAnswer> LoopServices::keep(const Flight& flight, KeptAnswer answer, Time now) {
  const std::string& limit = flight.service->limit;
  if (flight.is_forgotten()) {
    answer.since = now;
    return std::make_shared<const KeptAnswer>(std::move(answer));
  }
  if (!answer.tenant_key.empty()) {
    services_.cache_.put(limit, services_.tenant_id(limit, answer), answer, now);
  }
  return services_.cache_.put(limit, flight.key, std::move(answer), now);
}

void LoopServices::report(const Flight& flight, const ServiceReply& reply) {
  for (const ServiceReply::Ignored& ignored : reply.ignored) {
    metrics_.ignore(ignored.field);
    if (!flight.service->may_log(ignored.field, services_.clock_.time())) continue;
    services_.log_(LogLevel::warn, "limits service sent an invalid field, ignoring it: limit=" + flight.service->limit +
                                       " field=" + std::string(ignored.field) + ": " + ignored.detail);
  }
}

void LoopServices::report(const Flight& flight, const Error& error) {
  if (!flight.service->may_log(error.word, services_.clock_.time())) return;
  services_.log_(LogLevel::warn, "limits service failed, using the last answer or the limit's own numbers: limit=" +
                                     flight.service->limit + " reason=" + std::string(error.word) + ": " +
                                     error.detail);
}

void LoopServices::end(const std::shared_ptr<Flight>& flight, const Ended& ended) {
  Departed departed = flight->service->end(flight, ended.call, services_.clock_.time());
  for (auto& [port, waiting] : departed.waits) {
    port->run([waits = std::move(waiting), answer = ended.answer, where = ended.where](LoopServices& loop) {
      loop.deliver(waits, answer, where);
    });
  }
  for (const std::shared_ptr<Flight>& next : departed.next) call(next);
  for (const std::shared_ptr<Flight>& late : departed.hopeless) end_without_answer(late, CallEnd::not_made);
}

void LoopServices::deliver(const std::vector<std::uint64_t>& waits, const std::shared_ptr<const ServiceAnswer>& answer,
                           Where where) {
  for (const std::uint64_t wait : waits) {
    if (waiting_.erase(wait) == 0) continue;  // it has left
    metrics_.found(where);
    if (deliver_) deliver_(wait, answer);
  }
}

void LoopServices::leave(std::uint64_t wait) {
  const auto found = waiting_.find(wait);
  if (found == waiting_.end()) return;
  found->second->service->leave(*found->second);
  waiting_.erase(found);
}

}  // namespace weir::external
