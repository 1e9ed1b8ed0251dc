// The replies that a RESP peer still waits for. Answers arrive in any order; the peer gets them in the order it asked.
// While they arrive in order, they are written straight through and nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/core/answer.h"

namespace weir {

// How the answer to a query is written.
enum class ReplyForm : unsigned char {
  cell,       // CL.THROTTLE: limited, burst, remaining, retry_after, reset_after in seconds
  crab,       // THROTTLE: allowed, burst, remaining, reset_after, retry_after in seconds
  numbers,    // WEIR.CHECK, PEEK, REFUND: allowed, burst, remaining, retry_after, reset_after in milliseconds
  forgotten,  // WEIR.RESET: 1 if there was a bucket
  part,       // a key of a DEL other than the last: no separate reply
  sum,        // the last key of a DEL: how many buckets there were
};

class OwedReplies {
 public:
  // Adds a query; returns its sequence number.
  std::uint64_t push(ReplyForm form);
  bool empty() const noexcept { return first_ == next_; }

  // Takes the answer to that query, exactly once. If its turn has come, writes it and the replies that waited for it.
  void settle(std::uint64_t sequence, const Result<Answer>& answer, std::string& out);

  // Lets `write` append a reply that does not depend on an answer: to `out`, or after the last pending query.
  template <class Write>
  void write(std::string& out, Write write) {
    if (empty()) return write(out);
    std::string& after = held_[next_ - 1].after;
    const std::size_t before = after.size();
    write(after);
    after_bytes_ += after.size() - before;
  }
  // Bytes of such replies that are waiting.
  std::size_t after_bytes() const noexcept { return after_bytes_; }

 private:
  // What waits for the turn of a query.
  struct Held {
    bool answered = false;
    std::string text;  // its reply; for a DEL, only an error
    std::int64_t forgotten = 0;
    std::string after;  // replies between it and the next query
  };

  void finish_part(bool last, std::int64_t forgotten, std::string_view error, std::string& out);
  void pass_on(std::string& out);
  ReplyForm form_of(std::uint64_t sequence) const noexcept { return forms_[gone_ + (sequence - first_)]; }

  std::uint64_t first_ = 0;       // the sequence whose turn it is
  std::uint64_t next_ = 0;        // the next sequence to assign
  std::vector<ReplyForm> forms_;  // starting at gone_: the forms of first_ to next_ - 1
  std::size_t gone_ = 0;
  std::map<std::uint64_t, Held> held_;
  std::size_t after_bytes_ = 0;
  std::int64_t del_forgotten_ = 0;  // by the parts finished so far
  std::string del_error_;           // the first error of those parts
};

}  // namespace weir
