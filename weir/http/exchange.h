// One HTTP request and its response, independent of the HTTP version and free of I/O. A session (http1_session.h,
// http2_session.h) creates it, a Handler (handler.h) answers it.
//
//   request:   Handler::begin(head, first part), then Receiver::body() for every further part
//   credit:    consumed() returns credit for body bytes; without it at most bounds::http_window_bytes are delivered
//   question:  ask(), then Receiver::answered()
//   response:  inform()* respond() write()*; stay within room(), Receiver::drained() says when there is more
//   end:       Receiver::ended(), once and last
//
// Rules (docs/architecture.md has the reasons):
// - No function of an exchange calls a receiver before it returns. Events that it causes come later in the turn.
// - The reference stays valid until the callback you are in returns. After the last write() or abort(), further calls
//   do nothing.
// - Bytes of heads, bodies and trailers stay valid until the session's receive() returns and its queries were asked;
//   the RequestHead object only until begin() returns. What you pass in is copied or written before the call returns.
// - respond() once, inform() before it, write() after it, nothing after a part with `last`. Violations are assertions.
// - Everything belongs to one loop; only ExchangeRef::run() may be called from other threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "weir/base/bounds.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/core/answer.h"
#include "weir/core/query.h"
#include "weir/protocol/session.h"
#include "weir/wire/http.h"

namespace weir::http {

class Exchange;
class ExchangeTable;
struct ExchangeHost;

// Empties a text of an exchange or a call that is over. Keeps its memory for the next one, within a bound.
inline void empty_spare_text(std::string& text) noexcept {
  text.clear();
  if (text.capacity() > bounds::http_spare_text_bytes_max) std::string().swap(text);
}

// A piece of a body, in any of the four directions.
struct BodyPart {
  std::string_view bytes;
  bool last = false;                          // nothing follows
  std::span<const HttpHeader> trailers = {};  // only with `last`
};

struct Response {
  int status = 200;
  std::string_view content_type;  // empty: none
  HttpFields fields;
  // Length of the body, if it is known before the last part. A response that is complete in respond() needs none.
  std::optional<std::uint64_t> length;
  std::string_view reason = {};  // empty: the status's usual phrase. HTTP/2 has none
  bool has_date = false;         // among the fields; otherwise the session adds one
};

enum class Ending : unsigned char {
  complete,  // request and response are complete
  canceled,  // by the peer: the stream was reset
  aborted,   // by us: abort()
  lost,      // the connection broke
  drained,   // the server is shutting down and stopped waiting
};

// Gets the events of one exchange.
class Receiver {
 public:
  virtual ~Receiver() = default;

  // Return the credit with Exchange::consumed().
  virtual void body(Exchange& exchange, BodyPart part) = 0;
  // The answer to the exchange's n-th question, counted from 0. Views in it are valid during the call.
  virtual void answered(Exchange& exchange, std::uint32_t question, const Result<Answer>& answer);
  // ask() returned null earlier in this turn or in the last one; now there is room.
  virtual void can_ask(Exchange& exchange);
  // The time of Exchange::expire_at() has come.
  virtual void expired(Exchange& exchange);
  // `bytes` of the response body left the exchange, or there is room for the first time. At most once per turn.
  virtual void drained(Exchange& exchange, std::size_t bytes);
  // The request cannot be read any further (it violates HTTP, exceeds a bound or takes too long) and has no response
  // yet. Send a complete response for the problem now; ended() follows. If the request never began, this is the
  // handler's only call.
  virtual void refused(Exchange& exchange, const HttpProblem& problem);
  // The server is shutting down and waits for the exchange to end. End an endless response now.
  virtual void draining(Exchange& exchange);
  // Called once and last. `complete` is reported to attached receivers only.
  virtual void ended(Exchange& exchange, Ending ending);
};

// Refers to an exchange without owning it. Copyable; may be used on any thread.
class ExchangeRef {
 public:
  ExchangeRef() = default;
  // Runs `work` on the exchange's loop in a later turn, unless the exchange has ended by then.
  void run(std::function<void(Exchange&)> work) const;

 private:
  friend class Exchange;
  std::shared_ptr<ExchangeTable> table_;
  std::uint32_t slot_ = 0;
  std::uint64_t serial_ = 0;
};

class Exchange {
 public:
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Accepts the body: sends the 100 that the client waits for. Does nothing without `Expect: 100-continue`.
  virtual void proceed() = 0;
  // Returns credit for body bytes that were delivered.
  virtual void consumed(std::size_t bytes) = 0;
  // Declines the rest of the request body: it is read and dropped, or the connection closes after the response.
  virtual void discard() = 0;
  // The receiver will refuse more than `bytes` further bytes of body, so the session may answer 413 as soon as it
  // knows.
  virtual void expect_at_most(std::uint64_t bytes) { (void)bytes; }

  // Counts body bytes that the receiver keeps until the request is complete. Returns false, without counting them, if
  // the requests of the connection would together keep more than bounds::http_kept_bytes_max.
  bool keep(std::size_t bytes) noexcept;
  // Stops counting them. Happens by itself when the exchange ends.
  void keep_nothing() noexcept;

  // Returns a query to fill in, which is asked when the callback returns. Returns null if there is no room now;
  // can_ask() follows in this turn or the next. The first question of an exchange is number 0.
  Query* ask();
  // Storage for what the query points to. Valid in the callback that ask() was called in.
  Queries& queries() noexcept;

  // Sends an interim response: 1xx except 100 and 101.
  virtual void inform(int status, const HttpFields& fields) = 0;
  // Sends the head and the first part of the response; the whole response if `first.last`.
  virtual void respond(const Response& head, BodyPart first) = 0;
  // Takes all of it. Stay within room(), or ask for no more than one bound over it.
  virtual void write(BodyPart part) = 0;
  virtual std::size_t room() const noexcept = 0;
  // Answers 101. From here on both directions carry raw bytes as parts; `last` ends a direction.
  virtual void upgrade(const Response& head) = 0;
  // Gives up: HTTP/2 resets the stream, HTTP/1 closes the connection.
  virtual void abort() = 0;

  // Takes over the events from the handler and owns `receiver` until the exchange ends.
  void attach(std::unique_ptr<Receiver> receiver);
  // Calls Receiver::expired() at `when`, unless the exchange has ended. Time::max() cancels it.
  void expire_at(Time when);

  ExchangeRef ref();
  // The client's address without the port; empty for a UNIX socket.
  std::string_view peer() const noexcept;
  // True if the client connected with TLS.
  bool secure() const noexcept;
  // The time of this callback.
  Now now() const noexcept;

  // Space for the handler's own state of this request; zeroed when the exchange begins.
  template <class T>
  T& notes() noexcept {
    static_assert(sizeof(T) <= kNotesBytes && std::is_trivially_copyable_v<T> && alignof(T) <= 8);
    return *reinterpret_cast<T*>(notes_.data());
  }

 protected:
  static constexpr std::size_t kNotesBytes = 48;

  Exchange() = default;
  virtual ~Exchange() = default;

  // --- For sessions ---

  ExchangeHost& host() const noexcept { return *host_; }
  std::uint32_t slot() const noexcept { return slot_; }
  std::uint64_t serial() const noexcept { return serial_; }
  bool attached() const noexcept { return attached_ != nullptr; }
  Time expiry() const noexcept { return expiry_; }
  std::uint32_t asked() const noexcept { return questions_; }

  // Calls `event(receiver)` and then destroys a receiver that the event replaced. Never nested.
  template <class Event>
  void deliver(Event event) {
    if (attached_ == nullptr) {
      deliver_to(handler(), event);
    } else {
      deliver_to(*attached_, event);
    }
  }
  // Tells the receiver that the exchange is over and destroys it if it was attached. The handler itself gets every
  // ending except `complete`. Release the exchange afterward.
  void end(Ending ending);
  // Runs expired() if it is due.
  void expire(Time now);

 private:
  friend class ExchangeTable;
  friend class ExchangeRef;
  friend struct ExchangeHost;

  Receiver& handler() const noexcept;
  template <class Event>
  void deliver_to(Receiver& receiver, Event& event) {
    delivering_ = true;
    event(receiver);
    delivering_ = false;
    replaced_.reset();
  }
  void open(ExchangeHost& host, std::uint32_t slot, std::uint64_t serial) noexcept;

  ExchangeHost* host_ = nullptr;
  std::unique_ptr<Receiver> attached_;
  std::unique_ptr<Receiver> replaced_;  // kept until the callback that replaced it returns
  Exchange* next_asking_ = nullptr;     // in ExchangeHost's list of those that wait to ask
  Exchange* previous_asking_ = nullptr;
  std::uint64_t serial_ = 0;
  std::uint32_t slot_ = 0;
  std::uint32_t questions_ = 0;
  std::size_t kept_ = 0;  // by keep()
  Time expiry_ = Time::max();
  bool delivering_ = false;
  bool asking_ = false;
  bool over_ = false;  // ended() was called
  alignas(8) std::array<std::byte, kNotesBytes> notes_{};
};

}  // namespace weir::http
