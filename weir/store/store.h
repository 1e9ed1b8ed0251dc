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

// Identifies a question until it is answered. The caller chooses it; a store only passes it back.
using Ticket = std::uint64_t;

// Views must live until the question is answered, because a store may need them again to ask another server.
struct Question {
  Ticket ticket = 0;
  std::span<const Charge> charges;  // at most bounds::charges_max
  Mode mode = Mode::spend;
  Order order = Order::together;
  Time asked{};  // when it was decoded; its timeout counts from here. Time{}: from charge()

  std::size_t buckets() const noexcept {
    std::size_t count = 0;
    for (const Charge& charge : charges) count += charge.buckets();
    return count;
  }
};

// Whether a question may be sent now.
enum class Room : unsigned char {
  yes,       // also if the store would fail it at once: a failure need not wait
  not_here,  // this question has to wait, but others may be sent
  none,
};

// Receives the answers of a Store: exactly one per ticket.
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

// A Store belongs to one event loop. A batch is what became ready in this turn of the loop: the memory store prefetches
// it, the Redis store sends it in one write. Each ticket is answered exactly once: before charge() returns if the state
// is in this process, otherwise later on the same loop.
class Store {
 public:
  virtual ~Store() = default;
  virtual void charge(std::span<const Question> batch, Now now, Answers& answers) = 0;
  // How many questions to collect for one charge(). For a remote store this should be small: it would be idle while a
  // whole turn is collected, and then this loop would be idle while the store answers.
  virtual std::size_t batch_max() const noexcept { return bounds::queries_per_turn_max; }

  // The functions below hold questions back while a remote store is busy.

  // True if every question is answered before charge() returns. Then none of the functions below is called.
  virtual bool answers_at_once() const noexcept { return false; }
  // Returns whether to charge() this question now. `ahead` buckets are about to be charged before it.
  virtual Room room(const Question& question, std::size_t ahead) {
    (void)question, (void)ahead;
    return Room::yes;
  }
  // For a question that has to wait. Returns true if it was answered from local state. Otherwise it must be charged
  // later; if it is a refund or a reset, cached denials of its buckets are dropped.
  virtual bool answer_at_hand(const Question& question, Now now, Answers& answers) {
    (void)question, (void)now, (void)answers;
    return false;
  }
  // How long a question may wait and still be answered in time.
  virtual Duration patience() const noexcept { return Duration::max(); }
  // Called when a question has waited for patience(). Answers with `overloaded`, or with a failure if the store does
  // not respond.
  virtual void give_up(const Question& question, Answers& answers) {
    answers.answer(question.ticket, Error{Fault::overloaded, "the store is busy; try again in a second"});
  }
};

}  // namespace weir
