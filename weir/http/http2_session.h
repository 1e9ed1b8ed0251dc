// The server side of one HTTP/2 connection: turns frames into exchanges, and their responses into frames. The frames
// themselves are in wire/http2.h.
//
// - One read is decoded first, then the handler runs: head and body that arrived together are one begin(), and a stream
//   that was reset in the same read never reaches the handler.
// - Responses wait in their exchange until fill() turns them into DATA, as far as the stream's window and the
//   connection allow. Streams take turns.
// - An exchange whose response the client does not read, or whose body does not arrive, ends by itself; others go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/exchange.h"
#include "weir/http/exchange_table.h"
#include "weir/http/handler.h"
#include "weir/http/http_shared.h"
#include "weir/protocol/session.h"
#include "weir/wire/http2.h"
#include "weir/wire/http2_streams.h"

namespace weir::http {

class Http2Session;

class Http2Exchange final : public Exchange {
 public:
  static constexpr ExchangeKind kKind = ExchangeKind::http2;

  void proceed() override;
  void consumed(std::size_t bytes) override;
  void discard() override;
  void inform(int status, const HttpFields& fields) override;
  void respond(const Response& head, BodyPart first) override;
  void write(BodyPart part) override;
  std::size_t room() const noexcept override;
  // Never called: an HTTP/2 request has no `upgrade`.
  void upgrade(const Response& head) override;
  void abort() override;

 private:
  friend class Http2Session;

  void start(Http2Session& session, std::int32_t stream) noexcept;
  void append(BodyPart part);
  std::size_t unsent() const noexcept { return body_.size() - body_sent_; }
  // Once the response has begun, client and handler may talk in turns, at their own pace.
  bool waits_for_body() const noexcept {
    return !request_done_ && !responded_ && !sealed_ && !discards_ && unconsumed_ == 0;
  }
  // When the client has sent no content, or read none, for too long. Time::max(): it owes nothing.
  Time late_at() const noexcept;

  Http2Session* session_ = nullptr;
  std::int32_t stream_ = 0;
  bool begun_ = false;    // the handler knows it
  bool silent_ = false;   // answered by the session: the handler does not know it, or no longer
  bool sealed_ = false;   // nothing more can be written: complete, aborted, or taken over by the session
  bool aborted_ = false;  // we have reset the stream
  bool responded_ = false;
  bool bodiless_ = false;      // HEAD, 204, 304: what is written is not sent
  bool last_ = false;          // body_ ends the response
  bool sleeps_ = false;        // the wire waits for wake()
  bool discards_ = false;      // further body bytes are dropped
  bool request_done_ = false;  // its last part was delivered
  bool blocked_ = false;       // the client could not send: the receiver has held the credit back
  bool expects_continue_ = false;
  bool to_head_ = false;
  std::size_t unconsumed_ = 0;   // delivered, and the credit not returned
  std::size_t window_left_ = 0;  // bytes of the request's body until its deadline restarts
  std::size_t drained_ = 0;      // left since the last drained()
  std::string body_;             // of the response
  std::size_t body_sent_ = 0;
  Time body_progress_{};   // of the request's body: a window in bounds::http_body_time_max
  Time write_progress_{};  // of the response's; counts while something is unsent

  // While one read is dispatched, and the head is one of its events.
  std::string_view first_bytes_;
  std::size_t first_parts_ = 0;
  bool first_end_ = false;
  std::span<const HttpHeader> trailers_;
};

class Http2Session final : public Session, private Http2::Source {
 public:
  // `shared` and `handler` outlive the session.
  Http2Session(HttpShared& shared, Handler& handler, const NewConnection& connection);
  ~Http2Session() override;

  Result<std::size_t> receive(std::string_view bytes, Queries& queries, Now now) override;
  bool has_more() const noexcept override { return host_.has_waiting(); }
  void resume(Queries& queries, Now now) override;
  void reply(std::uint64_t token, const Result<Answer>& answer) override;
  bool reading() const noexcept override;
  void was_unread(Time since, Time now) override { http2_.was_unread(since, now); }
  void fill(std::size_t unsent) override;
  void end_of_input(Now now) override;
  void lost() override;
  bool finished() const noexcept override;
  bool busy() const noexcept override { return !streams_.empty() || host_.owed > 0; }
  Time deadline() const noexcept override;
  void expire(Time now) override;
  void drain(Time now) override;

 private:
  friend class Http2Exchange;
  enum class Shutdown : unsigned char { none, announced, final };

  Body waiting(std::int32_t stream) override;
  void sent(std::int32_t stream, std::size_t bytes) override;

  Http2Exchange* find(std::int32_t stream) noexcept;
  void collect(std::span<const Http2Event> events);
  void dispatch(std::span<const Http2Event> events);
  void begin(Http2Exchange& exchange, std::span<const HttpHeader> fields);
  void deliver_body(Http2Exchange& exchange, BodyPart part);
  void expect_body(Http2Exchange& exchange);
  void drop_body(Http2Exchange& exchange, std::size_t bytes);
  void refuse(std::int32_t stream, const HttpProblem& problem);
  void answer(Http2Exchange& exchange, const HttpProblem& problem, bool known);
  void finish(Http2Exchange& exchange, Ending ending);
  void take_over(Http2Exchange& exchange, Ending ending);
  void cancel(Http2Exchange& exchange);
  void end_late(Http2Exchange& exchange);
  void report_drained();
  void send_head(Http2Exchange& exchange, const Response& head, const BodyPart& first);
  Time shutdown_at() const noexcept;
  void begin_shutdown(Time now);
  void finish_shutdown();
  void touch();
  Time now() const;
  void watch(Time when) noexcept;
  void find_expiry() noexcept;

  ExchangeHost host_;
  const Duration idle_timeout_;  // zero: no bound
  const Duration max_age_;       // zero: no bound
  Http2 http2_;
  Http2Streams<Http2Exchange*> streams_;
  std::vector<std::int32_t> drained_;  // streams with something to report
  std::size_t buffered_ = 0;           // response bytes of all exchanges
  Time late_ = Time::max();            // no exchange is late before
  Time idle_since_ = Time::max();      // no stream is open; max: one is, or nothing was received
  Time old_at_ = Time::max();          // max_age_ after the first bytes
  Time pong_by_ = Time::max();
  Shutdown shutdown_ = Shutdown::none;
  bool expiry_stale_ = false;  // host_.expiry is of an exchange that has ended
  bool input_ended_ = false;
  bool failed_ = false;
  bool lost_ = false;
};

}  // namespace weir::http
