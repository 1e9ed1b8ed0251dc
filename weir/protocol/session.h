// One connection's side of a protocol, without the connection: bytes in, queries and bytes out. It does no I/O and
// reads no clock, so a test is two strings, and the same code serves an event loop, a fuzzer and a replay.
//
// Thread safety: none; a session belongs to one loop.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
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
  std::uint64_t token = 0;  // chosen by the session; returned with the answer
  Query query;
};

// The queries that one call of receive() found, bounded, and the storage they point into. Valid until clear().
class Queries {
 public:
  std::span<const Asked> all() const noexcept { return asked_; }
  bool full() const noexcept { return asked_.size() >= bounds::queries_per_turn_max; }
  // Adds a query and returns it to fill in place: copying it would cost a tenth of asking it.
  Query& add(std::uint64_t token) {
    Asked& asked = asked_.emplace_back();
    asked.token = token;
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
  std::span<const Descriptor> copy(std::span<const Descriptor> descriptors) {
    if (descriptors.empty()) return {};
    void* const to = copies_.allocate(descriptors.size_bytes(), alignof(Descriptor));
    return {std::uninitialized_copy(descriptors.begin(), descriptors.end(), static_cast<Descriptor*>(to)) -
                descriptors.size(),
            descriptors.size()};
  }
  std::span<const Attribute> copy(std::span<const Attribute> attributes) {
    if (attributes.empty()) return {};
    void* const to = copies_.allocate(attributes.size_bytes(), alignof(Attribute));
    return {
        std::uninitialized_copy(attributes.begin(), attributes.end(), static_cast<Attribute*>(to)) - attributes.size(),
        attributes.size()};
  }
  // Copies `prefix` followed by `text` in lower case: "header:" and a header's name.
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

// Where a session writes. It may write at any time on its loop's thread; the connection sends the bytes once, at the
// end of the turn.
class Output {
 public:
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Append here, then call touch(). Bytes leave it when the kernel or the cipher takes them: see unsent().
  std::string& bytes;
  // Set by a session that has more to write than it should buffer: the connection clears it and calls Session::fill()
  // while little is unsent.
  bool wants_fill = false;
  // Set by a session that writes nothing more but still reads: the connection half-closes after the output is written.
  bool half_close = false;

  // How many bytes were written here and not accepted by the kernel, more than bytes.size() if the peer is slow.
  virtual std::size_t unsent() const noexcept { return bytes.size(); }
  // Makes the connection settle at the end of this turn. Cheap to call again.
  void touch() {
    if (touched_) return;
    touched_ = true;
    wake();
  }

 protected:
  explicit Output(std::string& to) noexcept : bytes(to) {}
  ~Output() = default;
  virtual void wake() = 0;
  bool touched_ = false;
};

// A session is constructed with its Output, which outlives it. The connection makes all calls on the loop's thread.
class Session {
 public:
  virtual ~Session() = default;

  // Decodes as much as it can and returns how many bytes it consumed; the rest is passed again with more after it.
  // Stops when `queries` is full. Views in `queries` point into `bytes`, into `queries` or into the session, and stay
  // valid until receive() returns and the queries were asked. An Error means that the framing is lost: the connection
  // closes after the output is written.
  virtual Result<std::size_t> receive(std::string_view bytes, Queries& queries, Now now) = 0;

  // True if the session has queries to ask that found no room in the last batch, or that arose outside receive(). The
  // connection then calls resume() with an empty batch, in this turn if possible.
  virtual bool has_more() const noexcept { return false; }
  virtual void resume(Queries& queries, Now now) { (void)queries, (void)now; }

  // The answer to the query with that token: each exactly once, in any order. A token whose request has ended is
  // ignored.
  virtual void reply(std::uint64_t token, const Result<Answer>& answer) = 0;

  // False while the session wants no more bytes: the connection stops reading. When it turns true again (the session
  // touches the output then), the connection calls receive() with the bytes that were left, even if no more arrived.
  virtual bool reading() const noexcept { return true; }

  // The connection left the peer's bytes unread from `since` to `now`, because our answers were late.
  virtual void was_unread(Time since, Time now) { (void)since, (void)now; }
  // Adds output and tells receivers what was sent. While Output::wants_fill is set and little is unsent, called at the
  // end of a turn before the output is written, and again whenever bytes have left; `unsent` is how much has not.
  virtual void fill(std::size_t unsent) { (void)unsent; }

  // The peer sends nothing more. Called once, after everything received was decoded.
  virtual void end_of_input(Now now) { (void)now; }
  // The connection is broken: ends everything in progress. Called once; the session must not write any more.
  virtual void lost() {}

  // True once nothing more will be read or written: the connection closes after the output is written.
  virtual bool finished() const noexcept = 0;
  // True while a request is in progress or an answer is owed: the connection is not idle.
  virtual bool busy() const noexcept { return false; }

  // When the peer has taken too long; the connection calls expire() then, up to a second late. Time::max(): never.
  virtual Time deadline() const noexcept { return Time::max(); }
  virtual void expire(Time now) { (void)now; }

  // The server is shutting down: finish what was begun, accept nothing new.
  virtual void drain(Time now) { (void)now; }
};

// What is known when a connection's session is created.
struct NewConnection {
  Output& output;
  std::string_view peer;                  // the client's address without the port; empty for a UNIX socket
  std::string_view application_protocol;  // negotiated by ALPN; empty: none
  std::string_view first_bytes;           // what has arrived so far; not consumed by the factory
  bool tls = false;
  // An HTTP/2 session shuts down once no stream was open for `idle_timeout`, or `max_age` has passed. Zero: never.
  Duration idle_timeout = bounds::http_idle_time_max;
  Duration max_age{};
  bool complete = false;  // no more bytes follow soon: the factory must decide with these
};

// Creates the sessions of one endpoint's connections on one loop. Called when the connection is open and its first
// bytes have arrived, and again with more bytes as long as it returns null. Owns what the sessions share and outlives
// them.
using Sessions = std::function<std::unique_ptr<Session>(const NewConnection&)>;

}  // namespace weir
