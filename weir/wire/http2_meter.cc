#include "weir/wire/http2_meter.h"

#include <algorithm>

namespace weir {
namespace {

// RFC 9113 §6.
constexpr unsigned kData = 0;
constexpr unsigned kHeaders = 1;
constexpr unsigned kPushPromise = 5;
constexpr unsigned kContinuation = 9;
constexpr unsigned kEndStream = 0x1;
constexpr unsigned kPadded = 0x8;

// The length of the padding and as much of it as there can be.
constexpr std::size_t kPaddingMax = 256;

}  // namespace

struct Http2Meter::FrameHeader {
  std::size_t length;
  unsigned type;
  unsigned flags;

  explicit FrameHeader(std::string_view bytes) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(bytes[i])); };
    length = byte(0) << 16 | byte(1) << 8 | byte(2);
    type = byte(3);
    flags = byte(4);
  }

  bool ends_stream() const noexcept { return (flags & kEndStream) != 0; }
  // Padding is not content, and the header does not say how much of a short payload is padding.
  bool has_content() const noexcept { return (flags & kPadded) != 0 ? length > kPaddingMax : length > 0; }
  bool is_idle() const noexcept {
    if (type == kData) return !has_content() && !ends_stream();
    if (type == kHeaders) return length == 0 && !ends_stream();
    return true;
  }
};

void Http2Meter::Tokens::refill(Time now) noexcept {
  if (refilled_ == Time::min()) refilled_ = now;
  if (now <= refilled_) return;
  const std::int64_t count = (now - refilled_) / every_;
  refilled_ += count * every_;
  earn(std::min(count, most_));
}

std::string_view Http2Meter::next(std::string_view& input, Time now) noexcept {
  if (flood_ != Flood::none) return {};
  frames_.refill(now);
  if (held_ > 0 || (payload_left_ == 0 && input.size() < kHttp2FrameHeaderBytes)) return complete_header(input);
  std::size_t size = 0;
  while (size < input.size()) {
    if (payload_left_ > 0) {
      const std::size_t part = std::min(payload_left_, input.size() - size);
      payload_left_ -= part;
      size += part;
      continue;
    }
    if (input.size() - size < kHttp2FrameHeaderBytes || !admit(input.substr(size, kHttp2FrameHeaderBytes))) break;
    size += kHttp2FrameHeaderBytes;
  }
  const std::string_view admitted = input.substr(0, size);
  input.remove_prefix(size);
  return admitted;
}

std::string_view Http2Meter::complete_header(std::string_view& input) noexcept {
  const std::size_t part = std::min(kHttp2FrameHeaderBytes - held_, input.size());
  std::copy_n(input.data(), part, header_.data() + held_);
  input.remove_prefix(part);
  held_ += part;
  if (held_ < kHttp2FrameHeaderBytes) return {};
  held_ = 0;
  const std::string_view header(header_.data(), header_.size());
  return admit(header) ? header : std::string_view{};
}

bool Http2Meter::admit(std::string_view header) noexcept {
  const FrameHeader frame(header);
  if (!admit_block(frame)) {
    flood_ = Flood::header_block;
  } else if (frame.is_idle() && !frames_.spend()) {
    flood_ = Flood::frames;
  }
  if (flood_ != Flood::none) return false;
  if (frame.type == kData && frame.has_content()) frames_.earn(bounds::http2_frames_earned_by_content);
  payload_left_ = frame.length;
  return true;
}

bool Http2Meter::admit_block(const FrameHeader& frame) noexcept {
  if (frame.type == kHeaders || frame.type == kPushPromise) {
    // One frame cannot pass the bound: nghttp2 refuses frames over 16 KiB.
    block_bytes_ = frame.length;
    continuations_ = 0;
  } else if (frame.type == kContinuation) {
    block_bytes_ += frame.length;
    ++continuations_;
    return block_bytes_ <= bounds::http2_block_bytes_max && continuations_ <= bounds::http2_continuations_max;
  }
  return true;
}

void Http2Meter::ended_without_response(Time now, Duration waited) noexcept {
  if (waited >= bounds::http2_reset_excused_after || flood_ != Flood::none) return;
  resets_.refill(now);
  if (!resets_.spend()) flood_ = Flood::resets;
}

std::string_view sentence_of(Http2Meter::Flood flood) noexcept {
  switch (flood) {
    case Http2Meter::Flood::frames:
      return "HTTP/2: too many frames without content";
    case Http2Meter::Flood::resets:
      return "HTTP/2: too many streams reset";
    case Http2Meter::Flood::header_block:
      return "HTTP/2: a header block is over 256 KiB or has more than 16 CONTINUATION frames";
    case Http2Meter::Flood::none:
      break;
  }
  return {};
}

}  // namespace weir
