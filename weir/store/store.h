// The interface between deciding what to charge and storing bucket state. Implemented by memory/, redis/ and
// failover/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/core/charge.h"
#include "weir/core/query.h"
#include "weir/core/verdict.h"

namespace weir {

// Identifies a question until it is answered. Chosen by the asker; a store only returns it.
using Ticket = std::uint64_t;

// Views must live until the question is answered: a store may need them again when asking elsewhere.
struct Question {
  Ticket ticket = 0;
  std::span<const Charge> charges;  // at most bounds::charges_max
  Mode mode = Mode::spend;
  Order order = Order::together;
  Time asked{};  // when it was decoded: the time to answer it counts from then. Time{}: from charge() on

  std::size_t buckets() const noexcept {
    std::size_t count = 0;
    for (const Charge& charge : charges) count += charge.buckets();
    return count;
  }
};

// Whether a question may be sent now.
enum class Room : unsigned char {
  yes,       // also while it would fail at once: then it does not wait for that
  not_here,  // other questions may be
  none,
};

class Answers {
 public:
  virtual ~Answers() = default;
  virtual void answer(Ticket ticket, const Result<Verdict>& verdict) = 0;
  // Returns the unanswered question with this ticket. Stores that answer with a failure policy need it.
  virtual Question question(Ticket ticket) const {
    (void)ticket;
    WEIR_ASSERT(false);
    return {};
  }
};

// A Store belongs to one event loop. A batch is what became ready in this turn of the loop: memory prefetches it, Redis
// writes it once. Each ticket is answered exactly once: before charge() returns if the state is in
// this process, later on the same loop if it is not.
class Store {
 public:
  virtual ~Store() = default;
  virtual void charge(std::span<const Question> batch, Now now, Answers& answers) = 0;
  // How many questions to collect for one charge(). A remote store would be idle while a whole turn is collected, and
  // then this loop while it answers.
  virtual std::size_t batch_max() const noexcept { return bounds::queries_per_turn_max; }

  // What follows holds questions back while a store elsewhere is busy.

  // Every question is answered before charge() returns; then nothing below is called.
  virtual bool answers_at_once() const noexcept { return false; }
  // Whether to charge() this question now, `ahead` buckets being about to be charged before it.
  virtual Room room(const Question& question, std::size_t ahead) {
    (void)question, (void)ahead;
    return Room::yes;
  }
  // For a question that has to wait. True: it is answered, from what is at hand. False: it is to be charged later; if
  // it is a refund or a reset, denials that are remembered of its buckets are dropped.
  virtual bool answer_at_hand(const Question& question, Now now, Answers& answers) {
    (void)question, (void)now, (void)answers;
    return false;
  }
  // How long a question may wait and still be answered in time.
  virtual Duration patience() const noexcept { return Duration::max(); }
  // It has waited that long: answered with `overloaded`, or as a failure if the store is silent.
  virtual void give_up(const Question& question, Answers& answers) {
    answers.answer(question.ticket, Error{Fault::overloaded, "the store is busy; try again in a second"});
  }
};

}  // namespace weir
