// The server side of one HTTP/1.1 or 1.0 connection: turns bytes into exchanges, and their responses into bytes, in the
// order of the requests.
//
// A request that arrives whole is passed to the handler without a copy and answered without an allocation. Behind a
// handler that overlaps(), requests begin before earlier ones are answered, within bounds; otherwise one at a time.
// Request content is delivered while there is credit. When the framing is lost, an error reply is written after the
// pending responses, and the connection closes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/http/http1_exchange.h"
#include "weir/http/http_shared.h"
#include "weir/protocol/session.h"
#include "weir/wire/http1.h"
#include "weir/wire/http1_body.h"

namespace weir::http {

class Http1Session final : public Session {
 public:
  // `shared`, `handler` and the connection's output must outlive the session.
  Http1Session(HttpShared& shared, Handler& handler, const NewConnection& connection);
  ~Http1Session() override;

  Result<std::size_t> receive(std::string_view bytes, Queries& queries, Now now) override;
  bool has_more() const noexcept override { return host_.has_waiting(); }
  void resume(Queries& queries, Now now) override;
  void reply(std::uint64_t token, const Result<Answer>& answer) override;
  bool reading() const noexcept override;
  void fill(std::size_t unsent) override;
  void end_of_input(Now now) override;
  void lost() override;
  bool finished() const noexcept override { return closing_ && front_ == nullptr; }
  bool busy() const noexcept override { return front_ != nullptr || waiting_ != Waiting::nothing; }
  Time deadline() const noexcept override;
  void expire(Time now) override;
  void drain(Time now) override;

 private:
  friend class Http1Exchange;
  enum class Waiting : unsigned char { nothing, head, content };

  bool step(std::string_view bytes, std::size_t& used);
  bool read_head(std::string_view bytes, std::size_t& used);
  bool is_worth_parsing(std::string_view bytes) noexcept;
  void begin(std::string_view bytes, std::size_t& used);
  bool read_body(std::string_view bytes, std::size_t& used);
  bool read_tunnel(std::string_view bytes, std::size_t& used);
  void deliver_body(Http1Exchange& exchange, BodyPart part);
  void stop_receiving(const Http1Exchange* exchange) noexcept;
  bool may_begin() const noexcept;

  Http1Exchange* open_exchange(const RequestHead* head);
  void fail(const HttpProblem& problem);
  void write_error(Http1Exchange& exchange, const HttpProblem& problem);
  void settle();
  bool settle_front();
  void promote(Http1Exchange& exchange);
  void end_all(Ending ending);
  void end(Http1Exchange& exchange, Ending ending);
  void wake() noexcept;
  void wait_for(Waiting waiting, bool anew) noexcept;

  ExchangeHost host_;
  Http1Exchange* front_ = nullptr;  // open exchanges, in the order of their requests
  Http1Exchange* back_ = nullptr;
  Http1Exchange* receiving_ = nullptr;  // the one whose request is incomplete, or a tunnel; it is the last
  std::size_t open_ = 0;
  std::size_t held_bytes_ = 0;  // in exchanges behind the front
  HttpBody body_;
  std::size_t searched_ = 0;       // bytes of an incomplete head already searched for line ends
  std::uint64_t window_left_ = 0;  // content bytes until their deadline restarts
  Time since_ = Time::max();       // when the current wait for the peer began
  Waiting waiting_ = Waiting::nothing;
  bool has_line_ = false;  // of an incomplete head
  bool dropping_ = false;  // the rest of the content of a request that was answered
  bool in_call_ = false;   // settle() will run
  bool closing_ = false;   // no more input is used
  bool broken_ = false;    // the framing is lost
};

}  // namespace weir::http
