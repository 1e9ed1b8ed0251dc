// The replies that a RESP peer is owed. Answers come in any order; the peer reads them in the order it asked. While
// they come in order they are written straight through and nothing is allocated.
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
  part,       // a key of a DEL that is not its last: written with the last
  sum,        // the last key of a DEL: how many there were
};

class OwedReplies {
 public:
  // One more query is asked; returns its sequence.
  std::uint64_t push(ReplyForm form);
  bool empty() const noexcept { return first_ == next_; }

  // The answer to that query, each exactly once. Writes it, and what waited for it, if its turn has come.
  void settle(std::uint64_t sequence, const Result<Answer>& answer, std::string& out);

  // Lets `write` append a reply that needs no answer: to `out`, or behind the last query that is owed one.
  template <class Write>
  void say(std::string& out, Write write) {
    if (empty()) return write(out);
    std::string& after = held_[next_ - 1].after;
    const std::size_t before = after.size();
    write(after);
    after_bytes_ += after.size() - before;
  }
  // How much has been said that waits.
  std::size_t after_bytes() const noexcept { return after_bytes_; }

 private:
  // What waits for the turn of a query.
  struct Held {
    bool answered = false;
    std::string text;  // its reply; for a DEL only an error
    std::int64_t forgotten = 0;
    std::string after;  // what is said between it and the next
  };

  void finish_part(bool last, std::int64_t forgotten, std::string_view error, std::string& out);
  void pass_on(std::string& out);
  ReplyForm form_of(std::uint64_t sequence) const noexcept { return forms_[gone_ + (sequence - first_)]; }

  std::uint64_t first_ = 0;       // the sequence whose turn it is
  std::uint64_t next_ = 0;        // the next one to be asked
  std::vector<ReplyForm> forms_;  // from gone_ on: those of first_ to next_ - 1
  std::size_t gone_ = 0;
  std::map<std::uint64_t, Held> held_;
  std::size_t after_bytes_ = 0;
  std::int64_t del_forgotten_ = 0;  // of the parts that are done
  std::string del_error_;           // the first of them
};

}  // namespace weir
