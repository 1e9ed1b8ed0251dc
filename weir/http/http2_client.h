// The client side of one HTTP/2 connection (RFC 9113) on wire/http2.h: as many calls as the server allows streams.
//
// A stream's credit is the call's: what the owner has not consumed keeps the stream's window closed. What the owner
// writes is held by the call until windows and the output have room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/http/http_client.h"
#include "weir/protocol/session.h"
#include "weir/wire/http2.h"

namespace weir::http {

class Http2Client final : public HttpClient, private Http2::Source {
 public:
  // `out` and `shared` must outlive it. Writes the preface at the next fill().
  Http2Client(Output& out, ClientShared& shared);

  bool can_begin() const noexcept override;
  void begin(CallState& call, Time now) override;
  std::size_t calls() const noexcept override { return streams_.size(); }

  void write(CallState& call, BodyPart part) override;
  void consumed(CallState& call, std::size_t bytes) override;
  void cancel(CallState& call) override;
  bool has_sent(const CallState& call) const noexcept override;

  std::size_t receive(std::string_view bytes, Time now) override;
  void end_of_input(Time now) override;
  void lost(const Error& why) override;
  void fill(std::size_t unsent, Time now) override;
  void sent(std::uint64_t taken, Time now) override;

  bool reading() const noexcept override { return out_.unsent() < bounds::unsent_bytes_max; }
  ClientEnd end() const noexcept override { return end_; }
  void shut_down() override;
  // A PING when the server has been silent for bounds::http2_silence_max although a call is open, then its end.
  Time deadline() const noexcept override;
  void expire(Time now) override;

 private:
  using Events = std::vector<Http2Event>;
  static constexpr std::uint64_t kNotWritten = ~std::uint64_t{0};

  Body waiting(std::int32_t stream) override;
  void sent(std::int32_t stream, std::size_t bytes) override;

  CallState* find(std::int32_t stream) const noexcept;
  void dispatch(const Events& events, Time now);
  std::size_t dispatch_response(const Events& events, std::size_t at, CallState& call);
  void stop(const CallState& call, Http2Code code);
  void fail_stream(CallState& call, std::uint32_t code);
  // Fails the call, or leaves it to the pool if nothing of it was processed.
  void give_up(CallState& call, const Error& why, bool was_sent);
  void fail_all(const Error& why);
  void want_fill();

  Output& out_;
  ClientShared& shared_;
  Http2 http2_;
  std::unordered_map<std::int32_t, CallState*> streams_;
  std::vector<std::int32_t> not_written_;  // their heads are not in the output yet
  std::vector<std::int32_t> drained_;
  Events events_;
  ClientEnd end_ = ClientEnd::open;
  bool has_settings_ = false;
  bool going_away_ = false;  // no more calls
  bool pinged_ = false;
  Time heard_{};  // of the last byte, or of the ping
  std::uint64_t written_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace weir::http
