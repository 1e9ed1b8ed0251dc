// Known attacks on HTTP/2 servers, replayed by name. Each must be stopped, or cost no memory; and what honest clients
// do must not be mistaken for one.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/wire/http2_frames_test.h"

namespace weir::http2_flood_test {
namespace {

using namespace http2_frames;
using Flood = Http2Meter::Flood;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::unique_ptr<End> attacked() {
  auto server = std::make_unique<End>();
  server->receive(opening());
  server->take_out();
  return server;
}

// How often this can be sent before the connection ends. `stream` goes up by two each time.
template <class Attack>
std::size_t rounds_until_stopped(End& server, std::size_t most, Attack attack) {
  for (std::size_t i = 0; i < most; ++i) {
    if (!server.receive(attack(static_cast<std::uint32_t>(2 * i + 1)))) return i;
    if (server.http2.finished()) return i;
  }
  return most;
}

void expect_stopped(End& server, Flood flood) {
  EXPECT_EQ(server.http2.flood(), flood);
  EXPECT_TRUE(server.take_frames().ends_with("GOAWAY ENHANCE_YOUR_CALM"));
  EXPECT_TRUE(server.http2.finished());
  EXPECT_FALSE(server.receive(ping()));
}

std::string request_and_reset(std::uint32_t stream) {
  return headers(stream, request({}, "POST"), end_headers) + data(stream, "x", 0) + rst_stream(stream, 8);
}

constexpr std::size_t kFrames = bounds::http2_idle_frames_max;
constexpr std::size_t kResets = bounds::http2_resets_max;
constexpr std::size_t kOpening = 2;  // SETTINGS and its acknowledgment are counted too

TEST(Http2Flood, Cve2023x44487RapidReset) {
  const auto server = attacked();
  EXPECT_EQ(
      rounds_until_stopped(*server, 10'000,
                           [](std::uint32_t stream) { return headers(stream, request()) + rst_stream(stream, 8); }),
      kResets);
  expect_stopped(*server, Flood::resets);
}

TEST(Http2Flood, Cve2023x44487RapidResetWithoutAnError) {
  const auto server = attacked();
  EXPECT_EQ(
      rounds_until_stopped(*server, 10'000,
                           [](std::uint32_t stream) { return headers(stream, request()) + rst_stream(stream, 0); }),
      kResets);
  expect_stopped(*server, Flood::resets);
}

TEST(Http2Flood, Cve2023x44487RapidResetAfterTheAnswerHasBegun) {
  const auto server = attacked();
  std::size_t rounds = 0;
  for (std::uint32_t stream = 1; rounds < 10'000; stream += 2, ++rounds) {
    if (!server->receive(headers(stream, request()))) break;
    server->http2.respond(static_cast<std::int32_t>(stream), 200, {}, true);
    server->fill();
    if (!server->receive(rst_stream(stream, 8))) break;
  }
  EXPECT_EQ(rounds, kResets);
  expect_stopped(*server, Flood::resets);
}

TEST(Http2Flood, Cve2025x8671MadeYouReset) {
  // Each makes the server reset a stream by itself, with the request already accepted.
  const std::string_view names[] = {"window overflow", "too short", "too long", "bad trailers", "beyond the window"};
  for (const std::string_view name : names) {
    SCOPED_TRACE(name);
    const auto server = attacked();
    const auto attack = [&](std::uint32_t stream) {
      const std::string open = headers(stream, request({}, "POST"), end_headers);
      const std::string sized = headers(stream, request({{"content-length", "3"}}, "POST"), end_headers);
      if (name == "window overflow") return open + window_update(stream, 0x7FFFFFFF);
      if (name == "too short") return sized + data(stream, "x", end_stream);
      if (name == "too long") return sized + data(stream, "xxxx");
      if (name == "bad trailers") return open + headers(stream, {{":path", "/"}});
      return open + repeat(data(stream, std::string(16384, 'x')), 4) + data(stream, "x");
    };
    EXPECT_EQ(rounds_until_stopped(*server, 10'000, attack), kResets);
    EXPECT_EQ(server->http2.flood(), Flood::resets);
    EXPECT_TRUE(server->http2.finished());
  }
}

TEST(Http2Flood, Cve2019x9511DataDribble) {
  const auto server = attacked();
  server->receive(settings({{4, 0}}) + headers(1, request()));
  server->bodies.put(1, std::string(10'000, 'x'), true);
  server->http2.respond(1, 200, {}, true);
  server->fill();
  const std::size_t bytes = server->shared.library_bytes();
  for (int i = 0; i < 9'000; ++i) {
    ASSERT_TRUE(server->receive(window_update(1, 1)));
    ASSERT_LT(server->take_out().size(), 64u);  // a byte at a time, never stored up
  }
  EXPECT_LE(server->shared.library_bytes(), bytes + 1024);
}

TEST(Http2Flood, Cve2019x9512PingFlood) {
  const auto server = attacked();
  EXPECT_EQ(rounds_until_stopped(*server, 10'000, [](std::uint32_t) { return ping(); }), kFrames - kOpening);
  expect_stopped(*server, Flood::frames);
}

TEST(Http2Flood, Cve2019x9512PingFloodBesidesUsefulWorkWithoutReadingTheAnswers) {
  const auto server = attacked();
  std::vector<Http2Event> events;
  ASSERT_TRUE(server->http2.receive(headers(1, request({}, "POST"), end_headers), {}, events));
  std::size_t pings = 0;
  while (pings < 10'000 && server->http2.receive(data(1, "x") + ping(), {}, events)) ++pings;
  EXPECT_EQ(pings, bounds::http2_unsent_acks_max);
  EXPECT_EQ(server->http2.flood(), Flood::none);  // the library's own limit
  server->fill();
  EXPECT_TRUE(server->take_frames().ends_with("GOAWAY ENHANCE_YOUR_CALM"));
}

TEST(Http2Flood, Cve2019x9513ResourceLoop) {
  const auto server = attacked();
  EXPECT_EQ(rounds_until_stopped(
                *server, 10'000,
                [](std::uint32_t stream) { return frame(type_priority, 0, stream, number(stream + 2, 4) + "\x10"); }),
            kFrames - kOpening);
  expect_stopped(*server, Flood::frames);
}

TEST(Http2Flood, Cve2019x9514ResetFlood) {
  const auto server = attacked();
  EXPECT_EQ(rounds_until_stopped(*server, 10'000,
                                 [](std::uint32_t stream) {
                                   return headers(stream, request({{"Invalid", "x"}}));
                                 }),
            kResets);
  EXPECT_EQ(server->http2.flood(), Flood::resets);
  EXPECT_TRUE(server->http2.finished());
}

TEST(Http2Flood, Cve2019x9515SettingsFlood) {
  const auto server = attacked();
  EXPECT_EQ(rounds_until_stopped(*server, 10'000,
                                 [](std::uint32_t) {
                                   return settings({{4, 1}});
                                 }),
            kFrames - kOpening);
  expect_stopped(*server, Flood::frames);
}

TEST(Http2Flood, Cve2019x9516ZeroLengthHeadersLeak) {
  const auto server = attacked();
  const std::size_t bytes = server->shared.library_bytes();
  const std::string leak = block(request()) + repeat(std::string(3, '\0'), 5000);
  EXPECT_EQ(
      rounds_until_stopped(*server, 10'000, [&](std::uint32_t stream) { return frame(type_headers, 5, stream, leak); }),
      kResets);
  EXPECT_EQ(server->take_record(), "");
  EXPECT_LE(server->shared.library_bytes(), bytes + 1024);
}

TEST(Http2Flood, Cve2019x9517InternalDataBuffering) {
  // The windows are wide open, but nothing is read: the output stays within its bound.
  const auto server = attacked();
  server->receive(settings({{4, 0x7FFFFFFF}}) + window_update(0, 0x7FFF0000));
  for (std::uint32_t stream = 1; stream < 2 * bounds::http2_streams_max; stream += 2) {
    server->receive(headers(stream, request()));
    server->bodies.put(static_cast<std::int32_t>(stream), std::string(100'000, 'x'), true);
    server->http2.respond(static_cast<std::int32_t>(stream), 200, {}, true);
  }
  server->take_out();
  const std::size_t before = server->shared.library_bytes();
  for (int i = 0; i < 100; ++i) server->fill(64u << 10);
  EXPECT_LE(server->out.size(), (64u << 10) + 16384 + kHttp2FrameHeaderBytes);
  EXPECT_LE(server->shared.library_bytes(), before + 1024);
}

TEST(Http2Flood, Cve2019x9518EmptyFramesFlood) {
  const auto server = attacked();
  server->receive(headers(1, request({}, "POST"), end_headers));
  EXPECT_EQ(rounds_until_stopped(*server, 10'000, [](std::uint32_t) { return data(1, ""); }), kFrames - kOpening);
  expect_stopped(*server, Flood::frames);

  const auto padded_server = attacked();
  padded_server->receive(headers(1, request({}, "POST"), end_headers));
  EXPECT_EQ(
      rounds_until_stopped(*padded_server, 10'000, [](std::uint32_t) { return data(1, std::string(1, '\0'), padded); }),
      kFrames - kOpening);
  expect_stopped(*padded_server, Flood::frames);
}

TEST(Http2Flood, Cve2024x27316ContinuationFlood) {
  const auto server = attacked();
  server->receive(headers(1, request(), end_stream));
  const std::size_t bytes = server->shared.library_bytes();
  const std::string fields = block({{"a", std::string(1000, 'x')}});
  EXPECT_EQ(rounds_until_stopped(*server, 10'000, [&](std::uint32_t) { return continuation(1, fields); }),
            bounds::http2_continuations_max);
  EXPECT_LE(server->shared.library_bytes(), bytes + 1024);
  expect_stopped(*server, Flood::header_block);
}

TEST(Http2Flood, Cve2024x27316ContinuationFloodWithNothingInIt) {
  const auto server = attacked();
  server->receive(headers(1, request(), end_stream));
  EXPECT_EQ(rounds_until_stopped(*server, 10'000, [](std::uint32_t) { return continuation(1, ""); }),
            bounds::http2_continuations_max);
  expect_stopped(*server, Flood::header_block);
}

TEST(Http2Flood, Cve2024x27316ContinuationFloodForAStreamThatIsRefused) {
  const auto server = attacked();
  server->receive(frame(type_headers, end_stream, 1, block(request({{"Invalid", "x"}}))));
  EXPECT_EQ(rounds_until_stopped(*server, 10'000, [](std::uint32_t) { return continuation(1, "\x82"); }),
            bounds::http2_continuations_max);
  expect_stopped(*server, Flood::header_block);
}

TEST(Http2Flood, HpackBombsCountAsResets) {
  // One field of 4,000 bytes in the table, named 16,000 times: 64 MB of fields in each frame.
  const auto server = attacked();
  const std::string big = "\x40\x01x" + hpack_string(std::string(4000, 'v'));
  server->receive(frame(type_headers, 5, 1, block(request()) + big));
  server->take_record();
  const std::size_t bytes = server->shared.library_bytes();
  const std::string bomb = block(request()) + std::string(16'000, '\xBE');
  EXPECT_EQ(rounds_until_stopped(*server, 10'000,
                                 [&](std::uint32_t stream) { return frame(type_headers, 5, stream + 2, bomb); }),
            kResets);
  EXPECT_EQ(server->take_record(), "");
  EXPECT_LE(server->shared.library_bytes(), bytes + 1024);
  expect_stopped(*server, Flood::resets);
}

TEST(Http2Flood, StreamsRefusedBeforeTheSettingsAreAcknowledgedCount) {
  End server;
  server.receive(std::string(kPreface) + settings());
  const std::size_t rounds =
      rounds_until_stopped(server, 10'000, [](std::uint32_t stream) { return headers(stream, request()); });
  EXPECT_EQ(rounds, bounds::http2_streams_max + kResets);
  EXPECT_EQ(server.http2.flood(), Flood::resets);
}

TEST(Http2Flood, CallersThatGiveUpWaitingForUsAreNotAttackers) {
  const auto server = attacked();
  for (std::uint32_t stream = 1; stream < 10'001; stream += 2) {
    ASSERT_TRUE(server->receive(headers(stream, request())));
    server->http2.waits_since(static_cast<std::int32_t>(stream), server->now);
    server->now += bounds::http2_reset_excused_after;
    // Frames have tokens of their own; other work on the connection earns them.
    server->http2.respond(static_cast<std::int32_t>(stream), 200, {}, true);
    server->bodies.put(static_cast<std::int32_t>(stream), "x", false);
    server->fill();
    ASSERT_TRUE(server->receive(rst_stream(stream, 8)));
    server->take_out();
  }
}

// A proxy whose timeout is over at the very moment at which we tell it so.
TEST(Http2Flood, CallersThatGiveUpWhileTheResponseIsNotSentAreNotAttackersEither) {
  const auto server = attacked();
  for (std::uint32_t stream = 1; stream < 10'001; stream += 2) {
    ASSERT_TRUE(server->receive(headers(stream, request({}, "POST"), end_headers) + data(stream, "x", end_stream)));
    server->http2.waits_since(static_cast<std::int32_t>(stream), server->now);
    server->now += bounds::http2_reset_excused_after;
    server->http2.respond(static_cast<std::int32_t>(stream), 200, {}, false);
    server->http2.waited_until(static_cast<std::int32_t>(stream), server->now);
    ASSERT_TRUE(server->receive(rst_stream(stream, 8))) << stream;
    server->take_out();
  }
}

TEST(Http2Flood, WhoeverIsAnsweredAtOnceAndResetsAllTheSameIsOne) {
  const auto server = attacked();
  EXPECT_EQ(rounds_until_stopped(*server, 10'000,
                                 [&](std::uint32_t stream) {
                                   const auto id = static_cast<std::int32_t>(stream);
                                   EXPECT_TRUE(server->receive(headers(stream, request())));
                                   server->http2.waits_since(id, server->now);
                                   server->http2.respond(id, 200, {}, true);
                                   server->http2.waited_until(id, server->now);
                                   return rst_stream(stream, 8);
                                 }),
            kResets);
  expect_stopped(*server, Flood::resets);
}

// A proxy whose timeouts end while we leave its bytes unread: request and reset are read together.
TEST(Http2Flood, CallersThatGaveUpBeforeWeReadThemAreNotAttackers) {
  const auto server = attacked();
  server->now += seconds{1};
  const Time paused = server->now;
  server->now += bounds::http2_reset_excused_after;
  server->http2.was_unread(paused, server->now);
  std::uint32_t stream = 1;
  for (; stream < 4001; stream += 2) ASSERT_TRUE(server->receive(request_and_reset(stream))) << stream;

  // Short pauses that follow each other are one long one: the bytes never stop waiting.
  for (int i = 0; i < 100; ++i) {
    const Time again = server->now;
    server->now += milliseconds{5};
    server->http2.was_unread(again, server->now);
    for (int j = 0; j < 10; ++j, stream += 2) ASSERT_TRUE(server->receive(request_and_reset(stream))) << stream;
  }

  // What comes later did not wait.
  server->now += bounds::http2_reset_excused_after + milliseconds{1};
  std::size_t counted = 0;
  while (counted < 1000 && server->receive(request_and_reset(stream + 2 * static_cast<std::uint32_t>(counted))))
    ++counted;
  EXPECT_EQ(counted, kResets);
  expect_stopped(*server, Flood::resets);
}

// nghttp2 refills its bucket at whole seconds of its own clock, which a test cannot set.
TEST(Http2Flood, EvenExcusedResetsEndAtTheLibrarysLimit) {
  const auto server = attacked();
  server->now += seconds{1};
  const Time paused = server->now;
  server->now += bounds::http2_reset_excused_after;
  server->http2.was_unread(paused, server->now);
  const auto begin = std::chrono::steady_clock::now();
  std::size_t resets = 0;
  for (std::uint32_t stream = 1; resets < 1'000'000 && server->receive(request_and_reset(stream)); stream += 2) {
    server->take_out();
    if (server->http2.finished()) break;
    ++resets;
  }
  const auto refills = std::chrono::ceil<seconds>(std::chrono::steady_clock::now() - begin).count() + 1;
  EXPECT_GE(resets, bounds::http2_library_resets_max);
  EXPECT_LE(resets, bounds::http2_library_resets_max +
                        static_cast<std::uint64_t>(refills) * bounds::http2_library_resets_per_second);
  EXPECT_EQ(server->http2.flood(), Flood::none);
}

TEST(Http2Flood, AShortPauseExcusesNothing) {
  const auto server = attacked();
  server->now += seconds{1};
  const Time paused = server->now;
  server->now += bounds::http2_reset_excused_after - milliseconds{1};
  server->http2.was_unread(paused, server->now);
  EXPECT_EQ(
      rounds_until_stopped(*server, 10'000,
                           [](std::uint32_t stream) { return headers(stream, request()) + rst_stream(stream, 8); }),
      kResets);
}

TEST(Http2Flood, OurOwnResetsAreNotCounted) {
  const auto server = attacked();
  for (std::uint32_t stream = 1; stream < 2'001; stream += 2) {
    ASSERT_TRUE(server->receive(headers(stream, request())));
    server->http2.reset(static_cast<std::int32_t>(stream), Http2Code::internal_error);
    server->fill();
  }
  EXPECT_EQ(server->http2.flood(), Flood::none);
}

TEST(Http2Flood, AConnectionThatDoesUsefulWorkMayGoOnForever) {
  const auto server = attacked();
  for (std::uint32_t stream = 1; stream < 10'001; stream += 2) {
    const std::string bytes = headers(stream, request({}, "POST"), end_headers) + data(stream, "x", end_stream);
    ASSERT_TRUE(server->receive(bytes + window_update(0, 1) + ping() + ping() + ping()));
    server->bodies.put(static_cast<std::int32_t>(stream), "y", true);
    server->http2.respond(static_cast<std::int32_t>(stream), 200, {}, true);
    server->fill();
    server->take_out();
  }
  EXPECT_EQ(server->http2.streams(), 0u);
}

TEST(Http2Flood, ABackendThatResetsItsStreamsIsNotAnAttacker) {
  End client(Http2::Role::client);
  client.receive(settings() + settings_ack());
  for (int i = 0; i < 900; ++i) {
    const auto stream = client.http2.request({"GET", "http", "h", "/", {}, false});
    ASSERT_TRUE(stream);
    client.fill();
    ASSERT_TRUE(client.receive(rst_stream(static_cast<std::uint32_t>(*stream), 7)));
  }
  EXPECT_EQ(client.http2.flood(), Flood::none);
}

}  // namespace
}  // namespace weir::http2_flood_test
