// Queues questions for a remote store, one lane per connection. Questions that the store has no room for wait; lanes
// are served by deficit round robin, bounds::buckets_per_turn buckets per turn, so that a connection with thousands of
// questions gets no more than one with a few. A lane with nothing in flight goes first, so that a client that sends one
// question at a time does not wait behind a flood.
//
// All lists are intrusive: it allocates nothing. No clock, no I/O. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/base/time.h"

namespace weir {

class Lane;

// A question in a lane, from FairQueue::add() until remove().
struct LaneQuestion {
  enum class State : unsigned char { apart, waiting, in_flight };

  std::size_t buckets = 1;  // at most bounds::buckets_per_turn
  bool gives_back = false;  // a refund or a reset
  Time send_by{};           // it may wait until then; not earlier than that of questions added before it
  State state = State::apart;
  Lane* lane = nullptr;  // null: not in a lane

 private:
  friend class Lane;
  friend class FairQueue;

  LaneQuestion* previous_ = nullptr;  // within the lane, in any state
  LaneQuestion* next_ = nullptr;
  LaneQuestion* behind_ = nullptr;  // within the lane, waiting
  LaneQuestion* older_ = nullptr;   // over all lanes, waiting
  LaneQuestion* newer_ = nullptr;
};

// The questions of one connection. Must not be destroyed while it has any.
class Lane {
 public:
  std::size_t waiting() const noexcept { return waiting_; }
  // Returns any question in the lane, or null.
  LaneQuestion* any() const noexcept { return first_; }
  // Returns the first waiting question, or null.
  LaneQuestion* first_waiting() const noexcept { return head_; }
  // Number of refunds and resets in the lane.
  std::size_t giving_back() const noexcept { return giving_back_; }

 private:
  friend class FairQueue;

  LaneQuestion* first_ = nullptr;
  LaneQuestion* head_ = nullptr;  // of the waiting questions
  LaneQuestion* tail_ = nullptr;
  std::size_t waiting_ = 0;
  std::size_t in_flight_ = 0;  // buckets
  std::size_t giving_back_ = 0;
  std::size_t deficit_ = 0;  // buckets it may still send in this turn
  bool has_turn_ = false;
  bool goes_first_ = false;
  Lane* previous_ = nullptr;  // among lanes with waiting questions
  Lane* next_ = nullptr;
};

class FairQueue {
 public:
  bool empty() const noexcept { return oldest_ == nullptr; }

  // `question` belongs to the lane until remove().
  void add(Lane& lane, LaneQuestion& question) noexcept {
    question.lane = &lane;
    question.state = LaneQuestion::State::apart;
    question.previous_ = nullptr;
    question.next_ = lane.first_;
    if (lane.first_ != nullptr) lane.first_->previous_ = &question;
    lane.first_ = &question;
    if (question.gives_back) ++lane.giving_back_;
  }

  // Marks the question as in flight, without waiting.
  void send(LaneQuestion& question) noexcept {
    question.state = LaneQuestion::State::in_flight;
    question.lane->in_flight_ += question.buckets;
  }

  // Queues the question at the end of its lane.
  void wait(LaneQuestion& question) noexcept {
    Lane& lane = *question.lane;
    question.state = LaneQuestion::State::waiting;
    question.behind_ = nullptr;
    (lane.tail_ == nullptr ? lane.head_ : lane.tail_->behind_) = &question;
    lane.tail_ = &question;
    if (lane.waiting_++ == 0) enter(lane, lane.in_flight_ == 0);
    question.newer_ = nullptr;
    question.older_ = newest_;
    (newest_ == nullptr ? oldest_ : newest_->newer_) = &question;
    newest_ = &question;
  }

  // Returns the next question to send, or null if none waits.
  LaneQuestion* next() noexcept {
    for (;;) {
      Lane* const lane = first_.head != nullptr ? first_.head : round_.head;
      if (lane == nullptr) return nullptr;
      if (lane->deficit_ >= lane->head_->buckets) return lane->head_;
      if (lane->has_turn_) {
        pass_over(*lane->head_);
      } else {
        lane->has_turn_ = true;
        lane->deficit_ += bounds::buckets_per_turn;
      }
    }
  }
  // Marks the question returned by next() as in flight.
  void take(LaneQuestion& question) noexcept {
    Lane& lane = *question.lane;
    WEIR_ASSERT(lane.deficit_ >= question.buckets);
    lane.deficit_ -= question.buckets;
    stop_waiting(question);
    send(question);
  }
  // Ends the turn of the lane of next().
  void pass_over(LaneQuestion& question) noexcept {
    Lane& lane = *question.lane;
    leave(lane);
    enter(lane, false);
  }

  // Returns the question of any lane that has waited longest, which is the first of its lane; null if none waits.
  LaneQuestion* oldest() const noexcept { return oldest_; }

  // Removes a question that was answered or given up. REQUIRES: a waiting question is the first of its lane.
  void remove(LaneQuestion& question) noexcept {
    Lane& lane = *question.lane;
    if (question.state == LaneQuestion::State::waiting) stop_waiting(question);
    if (question.state == LaneQuestion::State::in_flight) finish_flight(lane, question.buckets);
    (question.previous_ == nullptr ? lane.first_ : question.previous_->next_) = question.next_;
    if (question.next_ != nullptr) question.next_->previous_ = question.previous_;
    if (question.gives_back) --lane.giving_back_;
    question.lane = nullptr;
  }

  // Stops the wait without sending. REQUIRES: it is the first waiting question of its lane.
  void stop_waiting(LaneQuestion& question) noexcept {
    Lane& lane = *question.lane;
    WEIR_ASSERT(lane.head_ == &question);
    lane.head_ = question.behind_;
    if (lane.head_ == nullptr) lane.tail_ = nullptr;
    if (--lane.waiting_ == 0) {
      leave(lane);
      lane.deficit_ = 0;
    }
    (question.older_ == nullptr ? oldest_ : question.older_->newer_) = question.newer_;
    (question.newer_ == nullptr ? newest_ : question.newer_->older_) = question.older_;
    question.state = LaneQuestion::State::apart;
  }

 private:
  struct Ring {
    Lane* head = nullptr;
    Lane* tail = nullptr;
  };

  Ring& ring_of(const Lane& lane) noexcept { return lane.goes_first_ ? first_ : round_; }

  void enter(Lane& lane, bool goes_first) noexcept {
    lane.goes_first_ = goes_first;
    lane.has_turn_ = false;
    Ring& ring = ring_of(lane);
    lane.next_ = nullptr;
    lane.previous_ = ring.tail;
    (ring.tail == nullptr ? ring.head : ring.tail->next_) = &lane;
    ring.tail = &lane;
  }

  void leave(Lane& lane) noexcept {
    Ring& ring = ring_of(lane);
    (lane.previous_ == nullptr ? ring.head : lane.previous_->next_) = lane.next_;
    (lane.next_ == nullptr ? ring.tail : lane.next_->previous_) = lane.previous_;
  }

  void finish_flight(Lane& lane, std::size_t buckets) noexcept {
    lane.in_flight_ -= buckets;
    if (lane.in_flight_ != 0 || lane.waiting_ == 0 || lane.goes_first_) return;
    leave(lane);
    enter(lane, true);
  }

  Ring first_;  // lanes that had nothing in flight at some time since they started to wait
  Ring round_;  // the others
  LaneQuestion* oldest_ = nullptr;
  LaneQuestion* newest_ = nullptr;
};

}  // namespace weir
