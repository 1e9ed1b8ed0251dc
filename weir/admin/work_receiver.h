// Runs a call that cannot be answered at once: asks its questions, then lets it advance whenever it was woken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "weir/admin/work.h"
#include "weir/base/clock.h"
#include "weir/http/exchange.h"

namespace weir::admin {

class AdminHandler;

class WorkReceiver final : public http::Receiver {
 public:
  WorkReceiver(AdminHandler& handler, const Clock& clock, std::unique_ptr<Work> work);

  // Call it once, attached to the exchange.
  void start(http::Exchange& exchange);

  void body(http::Exchange&, http::BodyPart) override {}
  void answered(http::Exchange& exchange, std::uint32_t question, const Result<Answer>& answer) override;
  void can_ask(http::Exchange& exchange) override;
  void expired(http::Exchange& exchange) override;

 private:
  // Found by wakes, which may come after this object is gone.
  struct Link {
    WorkReceiver* receiver;
  };

  void ask_or_advance(http::Exchange& exchange);
  void advance(http::Exchange& exchange);
  bool asks() const { return asked_ < work_->questions().size() || missing_ > 0; }

  AdminHandler& handler_;
  const Clock& clock_;
  std::unique_ptr<Work> work_;
  std::shared_ptr<Link> link_;
  Wake wake_;
  std::uint32_t first_ = 0;  // number of the work's first question
  std::uint32_t next_ = 0;   // number of the exchange's next question
  std::size_t asked_ = 0;    // questions of the work
  std::size_t missing_ = 0;  // answers
};

}  // namespace weir::admin
