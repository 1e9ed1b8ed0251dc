// The client side of one HTTP/1.1 connection (RFC 9112). One call at a time, no pipelining. After a 101 it is a tunnel.
//
// Strict about responses, because a proxy passes them on: whatever two readers could frame differently fails the call.
// A connection is used again only if request and response are complete and nothing followed the response.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>

#include "weir/http/http_client.h"
#include "weir/protocol/session.h"
#include "weir/wire/http1_body.h"

namespace weir::http {

class Http1Client final : public HttpClient {
 public:
  // `out` and `shared` must outlive it.
  Http1Client(Output& out, ClientShared& shared) noexcept : out_(out), shared_(shared) {}

  bool can_begin() const noexcept override { return phase_ == Phase::idle && end_ == ClientEnd::open; }
  void begin(CallState& call, Time now) override;
  std::size_t calls() const noexcept override { return call_ == nullptr ? 0 : 1; }

  void write(CallState& call, BodyPart part) override;
  void consumed(CallState& call, std::size_t bytes) override;
  void cancel(CallState& call) override;
  bool has_sent(const CallState& call) const noexcept override;

  std::size_t receive(std::string_view bytes, Time now) override;
  void end_of_input(Time now) override;
  void lost(const Error& why) override;
  void fill(std::size_t unsent, Time now) override;
  void sent(std::uint64_t taken, Time now) override;

  bool reading() const noexcept override;
  bool half_closed() const noexcept override { return phase_ == Phase::tunnel && request_done_; }
  ClientEnd end() const noexcept override { return end_; }
  void shut_down() override { end_ = ClientEnd::close; }
  Duration keep_alive() const noexcept override { return keep_alive_; }

 private:
  enum class Phase : unsigned char { idle, head, body, tunnel };
  enum class RequestFraming : unsigned char { none, length, chunked, raw };
  // Body bytes of the request, and where in the output they end.
  struct UnsentPart {
    std::uint64_t end;
    std::size_t bytes;
  };

  void write_head(const CallState& call);
  void write_body(CallState& call, BodyPart part, std::size_t uncredited);
  std::size_t receive_call(std::string_view bytes, Time now);
  std::size_t receive_head(std::string_view bytes, bool& complete);
  bool begin_response(const ResponseHead& head);
  std::size_t receive_body(std::string_view bytes, const ResponseHead* head);
  std::size_t receive_tunnel(std::string_view bytes, const ResponseHead* head);
  bool deliver(const ResponseHead*& head, BodyPart part);
  void finish_input();
  void fail(Error why);
  void refuse(std::string_view sentence);
  std::size_t credit() const noexcept;
  CallState* release() noexcept;

  Output& out_;
  ClientShared& shared_;
  CallState* call_ = nullptr;
  Phase phase_ = Phase::idle;
  ClientEnd end_ = ClientEnd::open;

  // The request.
  RequestFraming framing_ = RequestFraming::none;
  bool request_done_ = true;
  bool bad_length_ = false;  // the owner wrote another length than it announced
  std::uint64_t length_left_ = 0;
  std::uint64_t written_ = 0;     // bytes of the output, all calls
  std::uint64_t taken_ = 0;       // of those, what has left
  std::uint64_t first_byte_ = 0;  // of this request
  std::deque<UnsentPart> unsent_parts_;

  // The response.
  HttpBody body_;
  int interim_left_ = 0;
  std::size_t searched_ = 0;  // bytes of an incomplete head without a line end
  bool reusable_ = false;
  bool input_ended_ = false;
  bool peer_done_ = false;  // tunnel: the server's direction has ended
  bool left_over_ = false;  // the last receive() did not consume everything
  Duration keep_alive_ = Duration::max();
};

}  // namespace weir::http
