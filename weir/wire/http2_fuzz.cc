// Any bytes as an HTTP/2 peer of a server or of a client: no crash, nothing kept too long, no stream that ends twice,
// no window overrun, no memory left; and the same events however the bytes are split.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/assert.h"
#include "weir/wire/http2.h"
#include "weir/wire/http2_frames_test.h"

namespace {

using weir::Http2;
using weir::Http2Event;
using weir::http2_frames::End;

// Three requests: one complete, one with a body under way, one with trailers.
void ask(End& client) {
  client.bodies.put(3, "body", false);
  client.bodies.put(5, "body", true);
  for (const bool body : {false, true, true})
    static_cast<void>(client.http2.request({"GET", "https", "h", "/", {}, body}));
  client.http2.trailers(5, {"a: b\r\n", {}});
  client.fill();
  client.take_out();
}

void start(End& end, Http2::Role role, bool opened) {
  if (role == Http2::Role::client) {
    ask(end);
  } else {
    end.fill();
    if (opened) end.receive(weir::http2_frames::opening());
  }
}

// The events, without any answers, in words. Up to a GOAWAY: when no stream is open, nghttp2 reads what is behind it to
// the end of the piece and no further.
std::string events_of(std::string_view bytes, std::size_t piece, Http2::Role role, bool opened) {
  End end(role);
  start(end, role, opened);
  bool good = true;
  while (!bytes.empty() && good) {
    const std::string part(bytes.substr(0, piece));
    bytes.remove_prefix(part.size());
    std::vector<Http2Event> events;
    good = end.http2.receive(part, end.now, events).has_value();
    end.note(events);
  }
  end.fill();
  const std::string record = end.take_record() + (good ? "" : " failed");
  return record.substr(0, record.find("goaway"));
}

// Answers in ways that the bytes choose, and checks what is promised about streams and windows.
class Answering {
 public:
  explicit Answering(Http2::Role role) : role_(role), end_(role) {}

  void run(std::string_view bytes, std::size_t piece, bool opened) {
    start(end_, role_, opened);
    bool good = true;
    while (!bytes.empty() && good) {
      const std::string part(bytes.substr(0, piece));
      bytes.remove_prefix(part.size());
      end_.now += std::chrono::milliseconds{1};
      std::vector<Http2Event> events;
      good = end_.http2.receive(part, end_.now, events).has_value();
      for (const Http2Event& event : events) take(event);
      fill(1 + piece * 64);
    }
    end_.http2.go_away();
    fill(1u << 20);
    fill(1u << 20);
  }

 private:
  void fill(std::size_t bytes_max) {
    std::vector<Http2Event> events;
    end_.http2.fill(end_.out, bytes_max, events);
    WEIR_ASSERT(end_.out.size() <= bytes_max + 16384 + 9);
    end_.take_out();
    for (const Http2Event& event : events) take(event);
  }

  void take(const Http2Event& event) {
    using Kind = Http2Event::Kind;
    if (event.kind != Kind::goaway) WEIR_ASSERT(!ended_.contains(event.stream));
    std::size_t& unconsumed = end_.delivered[event.stream];
    switch (event.kind) {
      case Kind::head:
        WEIR_ASSERT(event.fields.size() <= weir::bounds::http_headers_max + 5);
        end_.http2.waits_since(event.stream, end_.now);
        if (role_ == Http2::Role::server) respond(event.stream);
        break;
      case Kind::refused:
        end_.http2.respond(event.stream, static_cast<int>(event.code), {}, false);
        break;
      case Kind::data:
        unconsumed += event.bytes.size();
        WEIR_ASSERT(unconsumed <= weir::bounds::http2_stream_window_bytes);
        if (event.bytes.front() % 2 == 0) end_.http2.consumed(event.stream, unconsumed);
        if (event.bytes.front() % 2 == 0) unconsumed = 0;
        if (event.bytes.front() == 'r') end_.http2.reset(event.stream, weir::Http2Code::cancel);
        break;
      case Kind::closed:
      case Kind::reset:
        ended_.insert(event.stream);
        break;
      default:
        break;
    }
  }

  void respond(std::int32_t stream) {
    switch (stream / 2 % 4) {
      case 0:
        return end_.http2.respond(stream, 204, {"Date: x\r\n", {}}, false);
      case 1:
        end_.http2.respond(stream, 103, {}, false);
        end_.bodies.put(stream, std::string(70'000, 'x'), true);
        return end_.http2.respond(stream, 200, {}, true);
      case 2:
        end_.bodies.put(stream, "x", true);
        end_.http2.respond(stream, 200, {}, true);
        return end_.http2.trailers(stream, {"a: b\r\n", {}});
      default:
        return end_.http2.respond(stream, 200, {}, true);
    }
  }

  Http2::Role role_;
  End end_;
  std::set<std::int32_t> ended_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Http2::Role role = (data[0] & 1) != 0 ? Http2::Role::client : Http2::Role::server;
  const bool opened = (data[0] & 2) != 0;
  const std::size_t piece = 1 + data[0] / 4;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);

  const std::string whole = events_of(bytes, weir::bounds::http2_receive_bytes_max, role, opened);
  // How much one read may decode is bounded, so that bound depends on the split.
  if (whole.find(" 431") == whole.npos) WEIR_ASSERT(whole == events_of(bytes, piece, role, opened));
  Answering(role).run(bytes, piece, opened);
  return 0;
}
