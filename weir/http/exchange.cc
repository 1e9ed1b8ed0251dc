#include "weir/http/exchange.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"
#include "weir/http/error_reply.h"
#include "weir/http/exchange_table.h"
#include "weir/http/handler.h"
#include "weir/http/http_shared.h"
#include "weir/wire/http1.h"

namespace weir::http {

void Receiver::answered(Exchange&, std::uint32_t, const Result<Answer>&) {}
void Receiver::can_ask(Exchange&) {}
void Receiver::expired(Exchange&) {}
void Receiver::drained(Exchange&, std::size_t) {}
void Receiver::draining(Exchange&) {}
void Receiver::refused(Exchange& exchange, const HttpProblem& problem) {
  respond_problem(exchange, problem);
}
void Receiver::ended(Exchange&, Ending) {}

void ExchangeRef::run(std::function<void(Exchange&)> work) const {
  if (table_ != nullptr) table_->run(slot_, serial_, std::move(work));
}

// --- Exchange ---

void Exchange::open(ExchangeHost& host, std::uint32_t slot, std::uint64_t serial) noexcept {
  host_ = &host;
  slot_ = slot;
  serial_ = serial;
  questions_ = 0;
  over_ = false;
  expiry_ = Time::max();
  notes_.fill(std::byte{0});
}

Receiver& Exchange::handler() const noexcept {
  return host_->handler;
}

bool Exchange::keep(std::size_t bytes) noexcept {
  if (bytes > bounds::http_kept_bytes_max - host_->kept) return false;
  host_->kept += bytes;
  kept_ += bytes;
  return true;
}

void Exchange::keep_nothing() noexcept {
  host_->kept -= kept_;
  kept_ = 0;
}

Query* Exchange::ask() {
  if (over_) return nullptr;
  if (host_->queries == nullptr || host_->queries->full()) {
    host_->wait_to_ask(*this);
    host_->output.touch();
    return nullptr;
  }
  WEIR_ASSERT(questions_ < ExchangeToken::kQuestionsMax);
  ++host_->owed;
  return &host_->queries->add(ExchangeToken::make(slot_, serial_, questions_++));
}

Queries& Exchange::queries() noexcept {
  WEIR_ASSERT(host_->queries != nullptr);
  return *host_->queries;
}

void Exchange::attach(std::unique_ptr<Receiver> receiver) {
  if (over_) return;
  // The receiver whose callback this is must outlive the callback. One that was attached in the same callback has not
  // been called.
  if (delivering_ && replaced_ == nullptr) replaced_ = std::move(attached_);
  attached_ = std::move(receiver);
}

void Exchange::expire_at(Time when) {
  if (over_) return;
  expiry_ = when;
  if (when >= host_->expiry) return;
  host_->expiry = when;
  host_->output.touch();
}

ExchangeRef Exchange::ref() {
  ExchangeRef ref;
  ref.table_ = host_->shared.exchanges;
  ref.slot_ = slot_;
  ref.serial_ = serial_;
  return ref;
}

std::string_view Exchange::peer() const noexcept {
  return host_->peer;
}

bool Exchange::secure() const noexcept {
  return host_->secure;
}

Now Exchange::now() const noexcept {
  return host_->queries != nullptr ? host_->now : host_->shared.now(host_->now);
}

void Exchange::end(Ending ending) {
  over_ = true;
  host_->stop_asking(*this);
  expiry_ = Time::max();
  if (attached_ == nullptr && ending == Ending::complete) return;
  deliver([&](Receiver& receiver) { receiver.ended(*this, ending); });
  attached_.reset();
}

void Exchange::expire(Time now) {
  if (now < expiry_) return;
  expiry_ = Time::max();
  deliver([&](Receiver& receiver) { receiver.expired(*this); });
}

// --- ExchangeTable ---

ExchangeTable::ExchangeTable(Post post, std::size_t exchanges_max)
    : post_(std::move(post)), exchanges_max_(exchanges_max) {}

ExchangeTable::~ExchangeTable() = default;

std::uint32_t ExchangeTable::empty_slot() {
  if (!empty_.empty()) {
    const std::uint32_t slot = empty_.back();
    empty_.pop_back();
    return slot;
  }
  if (slots_.size() < exchanges_max_ + bounds::http_refusals_max) {
    slots_.emplace_back();
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  // Every slot has an object: replace one of another kind.
  for (std::vector<std::uint32_t>& spare : spare_) {
    if (spare.empty()) continue;
    const std::uint32_t slot = spare.back();
    spare.pop_back();
    return slot;
  }
  return kNoSlot;
}

Exchange* ExchangeTable::open(std::uint32_t slot, ExchangeHost& host) noexcept {
  TableSlot& entry = slots_[slot];
  entry.open = true;
  ++open_;
  entry.object->open(host, slot, ++entry.serial);
  return entry.object.get();
}

void ExchangeTable::release(Exchange& exchange) noexcept {
  TableSlot& entry = slots_[exchange.slot_];
  WEIR_ASSERT(entry.open && entry.object.get() == &exchange && !exchange.delivering_);
  exchange.host_->stop_asking(exchange);
  exchange.keep_nothing();
  exchange.attached_.reset();
  entry.open = false;
  --open_;
  std::vector<std::uint32_t>& spare = spare_[static_cast<std::size_t>(entry.kind)];
  if (spare.size() < bounds::http_spare_exchanges_max) {
    spare.push_back(exchange.slot_);
    return;
  }
  empty_.push_back(exchange.slot_);
  entry.object.reset();
}

Exchange* ExchangeTable::find(std::uint64_t token, const ExchangeHost& host) const noexcept {
  const std::uint32_t slot = ExchangeToken::slot(token);
  if (slot >= slots_.size() || !slots_[slot].open) return nullptr;
  const bool same = (slots_[slot].serial & (ExchangeToken::kGenerations - 1)) == ExchangeToken::generation(token);
  return same && slots_[slot].object->host_ == &host ? slots_[slot].object.get() : nullptr;
}

Exchange* ExchangeTable::find(std::uint32_t slot, std::uint64_t serial) const noexcept {
  if (slot >= slots_.size() || !slots_[slot].open || slots_[slot].serial != serial) return nullptr;
  return slots_[slot].object.get();
}

void ExchangeTable::run(std::uint32_t slot, std::uint64_t serial, std::function<void(Exchange&)> work) {
  const std::lock_guard lock(post_mutex_);
  if (!post_) return;
  post_([table = weak_from_this(), slot, serial, work = std::move(work)] {
    const std::shared_ptr<ExchangeTable> alive = table.lock();
    Exchange* const exchange = alive == nullptr ? nullptr : alive->find(slot, serial);
    // Not a callback of a receiver, but the same rules hold while it runs.
    if (exchange != nullptr) exchange->deliver([&](Receiver&) { work(*exchange); });
  });
}

void ExchangeTable::close() {
  const std::lock_guard lock(post_mutex_);
  post_ = {};
}

// --- HttpShared, ExchangeHost ---

std::string_view HttpShared::date(Wall wall) {
  const auto second = std::chrono::floor<std::chrono::seconds>(wall);
  if (second == dated_) return date_;
  dated_ = second;
  date_.clear();
  if (second != std::chrono::sys_seconds{}) write_date_field(second, date_);
  return date_;
}

void ExchangeHost::wait_to_ask(Exchange& exchange) noexcept {
  if (exchange.asking_) return;
  exchange.asking_ = true;
  exchange.next_asking_ = nullptr;
  exchange.previous_asking_ = last_asking;
  (last_asking == nullptr ? first_asking : last_asking->next_asking_) = &exchange;
  last_asking = &exchange;
}

void ExchangeHost::stop_asking(Exchange& exchange) noexcept {
  if (!exchange.asking_) return;
  exchange.asking_ = false;
  Exchange* const next = exchange.next_asking_;
  Exchange* const previous = exchange.previous_asking_;
  (previous == nullptr ? first_asking : previous->next_asking_) = next;
  (next == nullptr ? last_asking : next->previous_asking_) = previous;
}

void ExchangeHost::let_ask() {
  Exchange* const last = last_asking;
  while (first_asking != nullptr && !queries->full()) {
    Exchange& exchange = *first_asking;
    stop_asking(exchange);
    exchange.deliver([&](Receiver& receiver) { receiver.can_ask(exchange); });
    if (&exchange == last) return;
  }
}

}  // namespace weir::http
