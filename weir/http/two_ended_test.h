// For tests and fuzzers: a client, a session and an echoing handler (joined_ends_test.h), and a scheduler that decides
// who moves, how many bytes pass, who stalls and who is cut off.
//
// Checked after every step: buffers are within their bounds. At the end: each begin() has one ended(), each call one
// end, all credit is back, nothing is alive.
#pragma once

#include <cstddef>
#include <utility>

#include "weir/base/assert.h"
#include "weir/http/echo_ends_test.h"
#include "weir/http/joined_ends_test.h"

namespace weir::http {

class TwoEnded {
 public:
  using Choose = JoinedEnds::Choose;

  TwoEnded(bool http2, const Choose& choose, std::size_t calls_max)
      : choose_(choose), ends_(http2, handler_, choose, calls_max) {}

  // Returns the number of requests that came back whole.
  std::size_t run(std::size_t steps, bool breaks) {
    for (std::size_t step = 0; step < steps && !is_over(); ++step) {
      take_step(breaks);
      ends_.check_bounds();
    }
    handler_.stalled = false;
    for (int step = 0; step < 100'000 && !is_over(); ++step) {
      for (std::size_t move = 1; move <= kStall; ++move) act(move, JoinedEnds::kMoveBytesMax);
      ends_.check_bounds();
    }
    finish();
    return ends_.echoed();
  }

 private:
  static constexpr std::size_t kStall = JoinedEnds::kMoves;  // after the moves of the two ends

  bool is_over() const { return ends_.is_cut() || ends_.is_done(); }

  void take_step(bool breaks) {
    if (!breaks || choose_(1000) != 0) {
      const std::size_t action = choose_(kStall + 1);
      act(action, ends_.choose_size());
    } else if (choose_(4) == 0) {
      ends_.cut();
    } else {
      ends_.cancel();
    }
  }

  void act(std::size_t action, std::size_t bytes) {
    if (action != kStall) return ends_.move(static_cast<JoinedEnds::Move>(action), bytes);
    handler_.stalled = !handler_.stalled && choose_(4) == 0;
    if (!handler_.stalled) handler_.move();
  }

  void finish() {
    WEIR_ASSERT(is_over());
    for (const auto& caller : ends_.callers()) WEIR_ASSERT(!caller->complete || caller->status == 200);
    if (!ends_.is_cut()) {  // what is on its way: ends of streams, resets
      for (int i = 0; i < 1000; ++i) ends_.pass();
      WEIR_ASSERT(handler_.open.empty());
    }
    ends_.disconnect();
    WEIR_ASSERT(handler_.begun == handler_.endings_told());
  }

  Choose choose_;
  EchoingHandler handler_;
  JoinedEnds ends_;
};

}  // namespace weir::http
