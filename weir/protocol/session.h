// One connection's side of a protocol, without the connection: bytes in, questions and bytes out. It does no I/O and
// reads no clock, so a test is two strings, and the same code serves an event loop, a fuzzer and a replay.
//
// Thread safety: none; a session belongs to one loop.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/ascii.h"
#include "weir/base/bounds.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/core/answer.h"
#include "weir/core/query.h"

namespace weir {

struct Asked {
  std::uint64_t sequence = 0;  // counts up from 0 within the session
  Query query;
};

// What one call of receive() found, bounded. Also keeps what queries point to, until clear().
class Queries {
 public:
  std::span<const Asked> all() const noexcept { return asked_; }
  bool full() const noexcept { return asked_.size() >= bounds::queries_per_turn_max; }
  // One more question, to be written where it stays: copying it would cost a tenth of what asking does.
  Query& add(std::uint64_t sequence) {
    Asked& asked = asked_.emplace_back();
    asked.sequence = sequence;
    return asked.query;
  }
  // Storage with the lifetime of the queries.
  std::span<const NamedCharge> keep(std::vector<NamedCharge> charges) {
    return charges_.emplace_back(std::move(charges));
  }
  // One charge, without an allocation for each.
  std::span<const NamedCharge> keep(const NamedCharge& charge) {
    if (singles_.capacity() == 0) singles_.reserve(bounds::queries_per_turn_max);
    if (singles_.size() == singles_.capacity()) return keep(std::vector<NamedCharge>{charge});
    return {&singles_.emplace_back(charge), 1};
  }
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  // Copies with the same lifetime, side by side: allocates nothing until a turn asks unusually much.
  std::string_view copy(std::string_view text) {
    if (text.empty()) return {};
    char* const to = static_cast<char*>(copies_.allocate(text.size(), 1));
    std::copy(text.begin(), text.end(), to);
    return {to, text.size()};
  }
  std::span<const NamedCharge> copy(std::span<const NamedCharge> charges) {
    if (charges.empty()) return {};
    void* const to = copies_.allocate(charges.size_bytes(), alignof(NamedCharge));
    return {std::uninitialized_copy(charges.begin(), charges.end(), static_cast<NamedCharge*>(to)) - charges.size(),
            charges.size()};
  }
  std::span<const Attribute> copy(std::span<const Attribute> attributes) {
    if (attributes.empty()) return {};
    void* const to = copies_.allocate(attributes.size_bytes(), alignof(Attribute));
    return {
        std::uninitialized_copy(attributes.begin(), attributes.end(), static_cast<Attribute*>(to)) - attributes.size(),
        attributes.size()};
  }
  // Both, one behind the other, letters of the second in lower case: "header:" and a header's name.
  std::string_view copy_lower(std::string_view prefix, std::string_view text) {
    char* const to = static_cast<char*>(copies_.allocate(prefix.size() + text.size() + 1, 1));
    std::transform(text.begin(), text.end(), std::copy(prefix.begin(), prefix.end(), to),
                   [](char c) { return to_lower(c); });
    return {to, prefix.size() + text.size()};
  }
  void clear() noexcept {
    asked_.clear();
    singles_.clear();
    charges_.clear();
    texts_.clear();
    copies_.release();
  }

 private:
  std::vector<Asked> asked_;
  std::vector<NamedCharge> singles_;  // never grows beyond what it reserved, so that spans into it stay put
  std::deque<std::vector<NamedCharge>> charges_;
  std::deque<std::string> texts_;
  std::array<std::byte, 16384> copies_room_;
  std::pmr::monotonic_buffer_resource copies_{copies_room_.data(), copies_room_.size()};
};

class Session {
 public:
  virtual ~Session() = default;

  // The clocks' reading, before receive(): what deadline() counts from. Without it there are no deadlines.
  virtual void at(Now now) { (void)now; }

  // Decodes as much as it can and returns how many bytes it is done with; the rest is to be given again with more
  // behind it. Stops when `queries` is full. Views in `queries` point into `bytes`, into `queries` or into the session,
  // and stay valid until the next call of receive(). What needs no verdict is answered into `out` at once, in order. An
  // Error means that the framing is lost: `out` holds the last words, then the connection closes.
  virtual Result<std::size_t> receive(std::string_view bytes, Queries& queries, std::string& out) = 0;

  // The answer to the question with that sequence, each exactly once, in any order; `out` gets replies in the peer's
  // order.
  virtual void reply(std::uint64_t sequence, const Result<Answer>& answer, std::string& out) = 0;

  // Nothing more will be read or written once `out` is gone: the peer said goodbye, or draining is done.
  virtual bool finished() const noexcept = 0;

  // When the peer has taken too long over a request; the connection calls expire() then. Time::max(): never.
  virtual Time deadline() const noexcept { return Time::max(); }
  virtual void expire(Time now, std::string& out) {
    (void)now;
    (void)out;
  }

  // When the session has something to do although nothing came: long work that goes on, a stream to write. The
  // connection calls wake() then, which may ask questions as receive() does. A peer may be slow: wake() adds nothing
  // while `out` is over its bound. Time::max(): never.
  virtual Time wake_at() const noexcept { return Time::max(); }
  virtual void wake(Time now, Queries& queries, std::string& out) {
    (void)now;
    (void)queries;
    (void)out;
  }
  // An answer is still to come that is not among the questions asked: not over yet, even if the peer sends no more.
  virtual bool working() const noexcept { return false; }

  // The peer sends no more, and everything that it asked is answered: last words on a request that it did not finish.
  virtual void hang_up(std::string& out) { (void)out; }

  // The server is going away: finish what was asked, take no more.
  virtual void drain(std::string& out) { (void)out; }
};

}  // namespace weir
