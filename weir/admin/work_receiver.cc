#include "weir/admin/work_receiver.h"

#include <optional>
#include <utility>
#include <variant>

#include "weir/admin/admin_handler.h"

namespace weir::admin {

WorkReceiver::WorkReceiver(AdminHandler& handler, const Clock& clock, std::unique_ptr<Work> work)
    : handler_(handler), clock_(clock), work_(std::move(work)), link_(std::make_shared<Link>(Link{this})) {}

void WorkReceiver::start(http::Exchange& exchange) {
  wake_ = [ref = exchange.ref(), link = std::weak_ptr<Link>(link_)] {
    ref.run([link](http::Exchange& woken) {
      // The exchange may have another receiver by now.
      if (const std::shared_ptr<Link> alive = link.lock()) alive->receiver->expired(woken);
    });
  };
  ask_or_advance(exchange);
}

void WorkReceiver::ask_or_advance(http::Exchange& exchange) {
  const std::span<const Query> questions = work_->questions();
  while (asked_ < questions.size()) {
    Query* const query = exchange.ask();
    if (query == nullptr) return;  // can_ask() follows
    *query = questions[asked_++];
    ++next_;
    ++missing_;
  }
  if (missing_ == 0) advance(exchange);
}

void WorkReceiver::answered(http::Exchange& exchange, std::uint32_t question, const Result<Answer>& answer) {
  work_->answered(question - first_, answer);
  --missing_;
  if (!asks()) advance(exchange);
}

void WorkReceiver::can_ask(http::Exchange& exchange) {
  if (work_ != nullptr) ask_or_advance(exchange);
}

void WorkReceiver::expired(http::Exchange& exchange) {
  if (work_ != nullptr && !asks()) advance(exchange);
}

void WorkReceiver::advance(http::Exchange& exchange) {
  std::optional<Outcome> outcome = work_->advance(clock_.now(), wake_);
  if (!outcome) return exchange.expire_at(work_->wake_at());
  exchange.expire_at(Time::max());
  auto* const more = std::get_if<std::unique_ptr<Work>>(&*outcome);
  if (more == nullptr) {
    work_.reset();
    return handler_.finish(exchange, std::move(*outcome));
  }
  work_ = std::move(*more);
  first_ = next_;
  asked_ = 0;
  ask_or_advance(exchange);
}

}  // namespace weir::admin
