// A client and a server joined by two strings. A seeded scheduler decides who moves, how many bytes pass, how much is
// written and who stalls. Whatever it decides, every body arrives whole, every stream ends once and all credit returns.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/wire/http2_frames_test.h"

namespace weir::http2_pair_test {
namespace {

using namespace http2_frames;
using Kind = Http2Event::Kind;

std::string body_of(std::int32_t stream, std::size_t bytes) {
  return std::string(bytes, static_cast<char>('a' + stream / 2 % 26));
}

// One end, and what passed on each of its streams.
struct Joined {
  explicit Joined(Http2::Role role) : end(role) {}

  void take(const std::vector<Http2Event>& events) {
    for (const Http2Event& event : events) {
      if (event.kind == Kind::head) begun.push_back(event.stream);
      if (event.kind == Kind::data) {
        received[event.stream] += event.bytes;
        unconsumed[event.stream] += event.bytes.size();
        EXPECT_LE(unconsumed[event.stream], bounds::http2_stream_window_bytes);
      }
      if (event.kind == Kind::trailers) trailers += event.fields.size();
      if (event.kind == Kind::closed) ++closed;
      if (event.kind == Kind::closed || event.kind == Kind::reset) {
        EXPECT_TRUE(ended.insert({event.stream, true}).second) << event.stream;
        unconsumed.erase(event.stream);
      }
    }
  }

  // Writes, and passes up to `bytes` of it on to the other.
  void move(Joined& other, std::size_t bytes) {
    std::vector<Http2Event> events;
    end.http2.fill(end.out, end.out.size() + bytes, events);
    take(events);
    const std::string part = end.out.substr(0, std::min(bytes, bounds::http2_receive_bytes_max));
    end.out.erase(0, part.size());
    if (part.empty()) return;
    std::vector<Http2Event> seen;
    EXPECT_TRUE(other.end.http2.receive(part, {}, seen));
    other.take(seen);
  }

  void consume() {
    for (auto& [stream, bytes] : unconsumed) end.http2.consumed(stream, std::exchange(bytes, 0));
  }

  End end;
  std::vector<std::int32_t> begun;
  std::map<std::int32_t, std::string> received;
  std::map<std::int32_t, std::size_t> unconsumed;
  std::map<std::int32_t, bool> ended;
  std::size_t closed = 0;
  std::size_t trailers = 0;
};

void run_pair(unsigned seed) {
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  Joined client(Http2::Role::client);
  Joined server(Http2::Role::server);
  const std::size_t requests = 20;
  const std::size_t pieces[] = {1, 9, 100, 5000, 16384};
  std::map<std::int32_t, std::size_t> sizes;

  const auto ask = [&] {
    const std::size_t bytes = below(3) == 0 ? 0 : below(150'000);
    const auto stream = client.end.http2.request({"POST", "https", "h", "/", {}, true});
    ASSERT_TRUE(stream);
    sizes[*stream] = bytes;
    client.end.bodies.put(*stream, body_of(*stream, bytes), true);
  };
  const auto answer = [&] {
    for (const std::int32_t stream : std::exchange(server.begun, {})) {
      server.end.bodies.put(stream, body_of(stream, sizes[stream]), true);
      server.end.http2.respond(stream, 200, {}, true);
      server.end.http2.trailers(stream, {"sum: 1\r\n", {}});
    }
  };
  const auto done = [&] { return sizes.size() == requests && client.ended.size() == requests; };
  for (int step = 0; step < 2'000'000 && !done(); ++step) {
    switch (below(8)) {
      case 0:
        if (sizes.size() < requests) ask();
        break;
      case 1:
        answer();
        break;
      case 2:
        server.consume();
        break;
      case 3:
        client.consume();
        break;
      case 4:
      case 5:
        client.move(server, pieces[below(std::size(pieces))]);
        break;
      default:
        server.move(client, pieces[below(std::size(pieces))]);
        break;
    }
  }
  for (int i = 0; i < 1000; ++i) {
    client.move(server, 16384);
    server.move(client, 16384);
  }

  EXPECT_EQ(client.closed, requests);
  EXPECT_EQ(client.trailers, requests);
  for (const auto& [stream, bytes] : sizes) EXPECT_EQ(client.received[stream], body_of(stream, bytes)) << stream;
  // A response may overtake its request: then the server stops that with NO_ERROR, and this too is complete.
  EXPECT_EQ(server.closed, requests);
  EXPECT_EQ(client.end.http2.streams() + server.end.http2.streams(), 0u);
}

TEST(Http2Pair, DeliversEveryBodyHoweverTheTwoAreScheduled) {
  for (unsigned seed = 1; seed <= 12; ++seed) run_pair(seed);
}

}  // namespace
}  // namespace weir::http2_pair_test
