// For tests: HTTP/2 frames written by hand (HPACK literals only, so that every byte is visible), frames and events told
// in words, and one end of a connection.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/wire/http2.h"

namespace weir::http2_frames {

enum Type : unsigned char {
  type_data,
  type_headers,
  type_priority,
  type_rst_stream,
  type_settings,
  type_push_promise,
  type_ping,
  type_goaway,
  type_window_update,
  type_continuation,
};
enum Flag : unsigned char { end_stream = 1, ack = 1, end_headers = 4, padded = 8, with_priority = 32 };

inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

inline std::string number(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
  return out;
}

inline std::string frame(unsigned type, unsigned flags, std::uint32_t stream, std::string_view payload) {
  return number(payload.size(), 3) + number(type, 1) + number(flags, 1) + number(stream, 4) + std::string(payload);
}

// RFC 7541 §5.1, behind `first`, whose low `prefix` bits are free.
inline std::string hpack_number(unsigned first, unsigned prefix, std::uint64_t value) {
  const std::uint64_t most = (1u << prefix) - 1;
  if (value < most) return number(first | value, 1);
  std::string out = number(first | most, 1);
  for (value -= most; value >= 128; value /= 128) out += static_cast<char>(value % 128 + 128);
  return out + static_cast<char>(value);
}

inline std::string hpack_string(std::string_view text) {
  return hpack_number(0, 7, text.size()) + std::string(text);
}

using Fields = std::vector<std::pair<std::string, std::string>>;

// Literals that are not indexed (RFC 7541 §6.2.2).
inline std::string block(const Fields& fields) {
  std::string out;
  for (const auto& [name, value] : fields) out += std::string(1, '\0') + hpack_string(name) + hpack_string(value);
  return out;
}

// A request's pseudo-fields and more.
inline Fields request(const Fields& more = {}, std::string_view method = "GET") {
  Fields out = {{":method", std::string(method)}, {":scheme", "https"}, {":authority", "h"}, {":path", "/"}};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

inline std::string headers(std::uint32_t stream, const Fields& fields, unsigned flags = end_headers | end_stream) {
  return frame(type_headers, flags, stream, block(fields));
}
inline std::string continuation(std::uint32_t stream, std::string_view part, unsigned flags = 0) {
  return frame(type_continuation, flags, stream, part);
}
inline std::string data(std::uint32_t stream, std::string_view bytes, unsigned flags = 0) {
  return frame(type_data, flags, stream, bytes);
}
inline std::string settings(const std::vector<std::pair<unsigned, std::uint32_t>>& entries = {}) {
  std::string payload;
  for (const auto& [id, value] : entries) payload += number(id, 2) + number(value, 4);
  return frame(type_settings, 0, 0, payload);
}
inline std::string settings_ack() {
  return frame(type_settings, ack, 0, "");
}
inline std::string rst_stream(std::uint32_t stream, std::uint32_t code) {
  return frame(type_rst_stream, 0, stream, number(code, 4));
}
inline std::string ping(unsigned flags = 0) {
  return frame(type_ping, flags, 0, "12345678");
}
inline std::string window_update(std::uint32_t stream, std::uint32_t by) {
  return frame(type_window_update, 0, stream, number(by, 4));
}
inline std::string goaway(std::uint32_t last, std::uint32_t code) {
  return frame(type_goaway, 0, 0, number(last, 4) + number(code, 4));
}
inline std::string repeat(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

inline std::string code_name(std::uint64_t code) {
  static constexpr std::array<std::string_view, 14> kNames = {
      "NO_ERROR",           "PROTOCOL_ERROR",   "INTERNAL_ERROR",
      "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
      "FRAME_SIZE_ERROR",   "REFUSED_STREAM",   "CANCEL",
      "COMPRESSION_ERROR",  "CONNECT_ERROR",    "ENHANCE_YOUR_CALM",
      "INADEQUATE_SECURITY"};
  return code < kNames.size() ? std::string(kNames[code]) : std::to_string(code);
}

struct Frame {
  unsigned type = 0;
  unsigned flags = 0;
  std::uint32_t stream = 0;
  std::string payload;

  std::uint64_t number_at(std::size_t at, std::size_t bytes) const {
    std::uint64_t value = 0;
    for (std::size_t i = at; i < at + bytes && i < payload.size(); ++i)
      value = value << 8 | static_cast<unsigned char>(payload[i]);
    return value;
  }
};

// The whole frames of an output, the preface left out.
inline std::vector<Frame> frames(std::string_view bytes) {
  if (bytes.starts_with(kPreface)) bytes.remove_prefix(kPreface.size());
  std::vector<Frame> out;
  while (bytes.size() >= kHttp2FrameHeaderBytes) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(bytes[i])); };
    const std::size_t size = at(0) << 16 | at(1) << 8 | at(2);
    const std::uint32_t stream = at(5) << 24 | at(6) << 16 | at(7) << 8 | at(8);
    out.push_back({at(3), at(4), stream, std::string(bytes.substr(kHttp2FrameHeaderBytes, size))});
    bytes.remove_prefix(std::min(bytes.size(), kHttp2FrameHeaderBytes + size));
  }
  return out;
}

// "RST_STREAM 1 CANCEL"; empty for what every connection starts with.
inline std::string words(const Frame& frame) {
  const std::string on = " " + std::to_string(frame.stream);
  const std::string ending = (frame.flags & end_stream) != 0 ? " end" : "";
  switch (frame.type) {
    case type_data:
      return "DATA" + on + " " + std::to_string(frame.payload.size()) + ending;
    case type_headers:
      return "HEADERS" + on + ending;
    case type_rst_stream:
      return "RST_STREAM" + on + " " + code_name(frame.number_at(0, 4));
    case type_ping:
      return (frame.flags & ack) != 0 ? "PING ack" : "PING";
    case type_goaway:
      return "GOAWAY " + code_name(frame.number_at(4, 4));
    case type_window_update:
      return "WINDOW_UPDATE" + on + " " + std::to_string(frame.number_at(0, 4));
    case type_continuation:
      return "CONTINUATION" + on;
    default:
      return "";
  }
}

inline std::string words(const Http2Event& event) {
  using Kind = Http2Event::Kind;
  const std::string on = " " + std::to_string(event.stream);
  std::string fields;
  for (const HttpHeader& field : event.fields) fields.append(" ").append(field.name).append("=").append(field.value);
  switch (event.kind) {
    case Kind::head:
      return "head" + on + fields;
    case Kind::data:
      return "data" + on + " " + std::string(event.bytes);
    case Kind::trailers:
      return "trailers" + on + fields;
    case Kind::end:
      return "end" + on;
    case Kind::refused:
      return "refused" + on + " " + std::to_string(event.code);
    case Kind::closed:
      return "closed" + on;
    case Kind::reset:
      return "reset" + on + " " + code_name(event.code);
    case Kind::goaway:
      return "goaway" + on + " " + code_name(event.code);
    case Kind::settings:
      return "settings";
    case Kind::pong:
      return "pong";
  }
  return "";
}

// Bodies to send, by stream.
class Bodies final : public Http2::Source {
 public:
  void put(std::int32_t stream, std::string_view bytes, bool last) {
    Kept& kept = kept_[stream];
    kept.bytes += bytes;
    kept.last = last;
  }
  Body waiting(std::int32_t stream) override { return {kept_[stream].bytes, kept_[stream].last}; }
  void sent(std::int32_t stream, std::size_t bytes) override { kept_[stream].bytes.erase(0, bytes); }

 private:
  struct Kept {
    std::string bytes;
    bool last = false;
  };
  std::map<std::int32_t, Kept> kept_;
};

// One end of a connection: what it was told and what it wrote, in words, until taken.
class End {
 public:
  explicit End(Http2::Role role = Http2::Role::server) : http2(role, shared, bodies) {}

  // Pieces of at most `piece` bytes; the output is written after each.
  bool receive(std::string_view bytes, std::size_t piece = bounds::http2_receive_bytes_max) {
    bool good = true;
    while (!bytes.empty()) {
      const std::string part(bytes.substr(0, piece));  // of its own, so that the sanitizer sees a view kept too long
      bytes.remove_prefix(part.size());
      std::vector<Http2Event> events;
      good = http2.receive(part, now, events).has_value();
      note(events);
      fill();
    }
    return good;
  }

  void fill(std::size_t bytes_max = 1u << 20) {
    std::vector<Http2Event> events;
    http2.fill(out, bytes_max, events);
    note(events);
  }

  // Data of one stream that comes in a row is one piece, so that it is told alike however it was split.
  void note(const std::vector<Http2Event>& events) {
    for (const Http2Event& event : events) {
      const bool goes_on = event.kind == Http2Event::Kind::data && last_data_ == event.stream && event.stream != 0;
      last_data_ = event.kind == Http2Event::Kind::data ? event.stream : 0;
      if (event.kind == Http2Event::Kind::settings) continue;
      if (event.kind == Http2Event::Kind::data) delivered[event.stream] += event.bytes.size();
      if (goes_on) {
        record += event.bytes;
      } else {
        record += (record.empty() ? "" : ", ") + words(event);
      }
    }
  }

  std::string take_record() { return std::exchange(record, {}); }
  std::string take_out() { return std::exchange(out, {}); }
  // The frames written since, without SETTINGS.
  std::string take_frames() {
    std::string all;
    for (const Frame& frame : frames(take_out())) {
      const std::string one = words(frame);
      if (!one.empty()) all += (all.empty() ? "" : ", ") + one;
    }
    return all;
  }

  Http2Shared shared;
  Bodies bodies;
  Http2 http2;
  Time now{};
  std::string out;
  std::string record;
  std::map<std::int32_t, std::size_t> delivered;

 private:
  std::int32_t last_data_ = 0;
};

// A server that has the client's preface and settings, and their acknowledgment of its own.
inline std::string opening() {
  return std::string(kPreface) + settings() + settings_ack();
}

}  // namespace weir::http2_frames
