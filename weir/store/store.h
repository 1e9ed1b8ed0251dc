// Where bucket state lives. The one seam between deciding what to charge and keeping the state; memory/ and redis/ fill
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/base/bounds.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/core/charge.h"
#include "weir/core/query.h"
#include "weir/core/verdict.h"

namespace weir {

// Names one question until it is answered. Whoever asks gives it a meaning; a store only hands it back.
using Ticket = std::uint64_t;

// Views must live until the question is answered: a store may need them again when asking elsewhere.
struct Question {
  Ticket ticket = 0;
  std::span<const Charge> charges;  // at most bounds::charges_max
  Mode mode = Mode::spend;
  Order order = Order::together;
};

class Answers {
 public:
  virtual ~Answers() = default;
  virtual void answer(Ticket ticket, const Result<Verdict>& verdict) = 0;
};

// A Store belongs to one event loop. A batch is what became ready in this turn of the loop: memory prefetches it, Redis
// writes it once. Each ticket is answered exactly once: before charge() returns if the state is in
// this process, later on the same loop if it is not.
class Store {
 public:
  virtual ~Store() = default;
  virtual void charge(std::span<const Question> batch, Now now, Answers& answers) = 0;
  // How many questions to gather for one charge(). A store elsewhere would idle while a whole turn is gathered, and
  // then keep us idle.
  virtual std::size_t batch_max() const noexcept { return bounds::queries_per_turn_max; }
};

}  // namespace weir
