// Stops HTTP/2 floods, independent of the version of nghttp2. Bytes pass through the meter on their way to nghttp2;
// it reads frame headers and nothing else.
//
// - Frames that carry nothing (PING, SETTINGS, WINDOW_UPDATE, RST_STREAM, empty DATA, …) cost one token each. Time,
//   content in either direction and completed exchanges earn tokens.
// - Streams that the peer makes end without a response are counted in a bucket of their own.
// - A header block has a bound on its bytes and on its CONTINUATION frames.
//
// nghttp2 gets only complete frame headers: 1.52 counts a CONTINUATION frame once for each read of its header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/bounds.h"
#include "weir/base/time.h"

namespace weir {

inline constexpr std::size_t kHttp2FrameHeaderBytes = 9;  // RFC 9113 §4.1

class Http2Meter {
 public:
  enum class Flood : unsigned char { none, frames, resets, header_block };

  // `preface_bytes` pass before the first frame: 24 at a server, 0 at a client.
  explicit Http2Meter(std::size_t preface_bytes) noexcept : payload_left_(preface_bytes) {}

  // Takes bytes off the front of `input` and returns the next ones for nghttp2: whole frame headers and any part of
  // payloads. Call until it returns nothing; then everything has been taken, or flood() says why not. Up to 8 bytes of
  // a frame header are held back until the rest arrives. The result is valid until the next call.
  std::string_view next(std::string_view& input, Time now) noexcept;

  // Http2 reports what it saw. `waited`: how long the stream had been waiting on us.
  void sent_content() noexcept { frames_.earn(bounds::http2_frames_earned_by_content); }
  void completed_exchange() noexcept { frames_.earn(bounds::http2_frames_earned_by_exchange); }
  void ended_without_response(Time now, Duration waited) noexcept;

  Flood flood() const noexcept { return flood_; }

 private:
  // A token bucket that starts full.
  class Tokens {
   public:
    Tokens(std::int64_t most, Duration every) noexcept : most_(most), left_(most), every_(every) {}
    void refill(Time now) noexcept;
    void earn(std::int64_t count) noexcept { left_ = left_ + count < most_ ? left_ + count : most_; }
    bool spend() noexcept { return left_ > 0 && left_-- > 0; }

   private:
    std::int64_t most_;
    std::int64_t left_;
    Duration every_;
    Time refilled_ = Time::min();
  };
  struct FrameHeader;

  std::string_view complete_header(std::string_view& input) noexcept;
  bool admit(std::string_view header) noexcept;
  bool admit_block(const FrameHeader& frame) noexcept;

  Flood flood_ = Flood::none;
  std::size_t payload_left_;  // of the current frame, or of the preface
  std::size_t block_bytes_ = 0;
  std::size_t continuations_ = 0;
  std::size_t held_ = 0;
  std::array<char, kHttp2FrameHeaderBytes> header_{};  // its first `held_` bytes are held back
  Tokens frames_{bounds::http2_idle_frames_max, bounds::http2_idle_frame_every};
  Tokens resets_{bounds::http2_resets_max, bounds::http2_reset_every};
};

// Returns the sentence for the log; empty for `none`.
std::string_view sentence_of(Http2Meter::Flood flood) noexcept;

}  // namespace weir
