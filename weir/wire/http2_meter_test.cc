#include "weir/wire/http2_meter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "weir/wire/http2_frames_test.h"

namespace weir::http2_meter_test {
namespace {

using namespace http2_frames;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Flood = Http2Meter::Flood;

constexpr Time kStart{std::chrono::hours{1}};

// A meter behind the preface, and a clock.
struct Metered {
  Http2Meter meter{0};
  Time now = kStart;

  // What nghttp2 gets.
  std::string pass(std::string_view bytes) {
    std::string out;
    for (auto part = meter.next(bytes, now); !part.empty(); part = meter.next(bytes, now)) out += part;
    return out;
  }
  // How many of these frames pass before there is a flood; `most` if all of them do.
  std::size_t pass_many(std::string_view frame, std::size_t most) {
    for (std::size_t i = 0; i < most; ++i) {
      pass(frame);
      if (meter.flood() != Flood::none) return i;
    }
    return most;
  }
};

constexpr std::size_t kMost = bounds::http2_idle_frames_max;

TEST(Http2Meter, PassesEverythingOnUnchanged) {
  const std::string bytes = headers(1, request()) + data(1, "hello") + ping() + data(1, "", end_stream);
  EXPECT_EQ(Metered{}.pass(bytes), bytes);
}

TEST(Http2Meter, PassesThePrefaceBeforeItLooksForFrames) {
  Metered metered{Http2Meter(kPreface.size())};
  EXPECT_EQ(metered.pass(kPreface.substr(0, 20)), kPreface.substr(0, 20));
  EXPECT_EQ(metered.pass(std::string(kPreface.substr(20)) + ping()), std::string(kPreface.substr(20)) + ping());
}

TEST(Http2Meter, HoldsBackAnIncompleteFrameHeaderAndNothingElse) {
  const std::string bytes = settings({{4, 1}}) + data(1, "hello") + ping();
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    Metered metered;
    const std::string first = metered.pass(bytes.substr(0, cut));
    EXPECT_LE(cut - first.size(), kHttp2FrameHeaderBytes - 1) << cut;
    EXPECT_EQ(first + metered.pass(bytes.substr(cut)), bytes) << cut;
  }
}

TEST(Http2Meter, GivesAFrameHeaderInOnePiece) {
  Metered metered;
  const std::string bytes = ping();
  for (std::size_t i = 0; i + 1 < kHttp2FrameHeaderBytes; ++i) EXPECT_EQ(metered.pass(bytes.substr(i, 1)), "");
  EXPECT_EQ(metered.pass(bytes.substr(8, 1)), bytes.substr(0, 9));
  EXPECT_EQ(metered.pass(bytes.substr(9)), bytes.substr(9));
}

TEST(Http2Meter, CountsEveryFrameThatCarriesNothing) {
  const std::string idle[] = {
      ping(),
      ping(ack),
      settings(),
      settings_ack(),
      window_update(0, 1),
      rst_stream(1, 8),
      frame(type_priority, 0, 1, "12345"),
      goaway(0, 0),
      frame(0xFA, 0, 0, "unknown"),
      data(1, ""),
      data(1, std::string(1, '\0'), padded),
      data(1, std::string(256, '\xFF'), padded),
      headers(1, {}, 0),
      headers(1, {}, end_headers),
  };
  for (const std::string& frame : idle) {
    Metered metered;
    EXPECT_EQ(metered.pass_many(frame, kMost + 1), kMost) << words(frames(frame)[0]);
    EXPECT_EQ(metered.meter.flood(), Flood::frames);
    EXPECT_EQ(metered.pass(ping()), "") << "nothing passes after a flood";
  }
}

TEST(Http2Meter, DoesNotCountFramesThatCarrySomething) {
  const std::string useful[] = {
      data(1, "x"),
      data(1, "", end_stream),
      data(1, std::string(257, '\0'), padded),
      headers(1, request(), end_headers),
      headers(1, {}, end_stream),
  };
  for (const std::string& frame : useful)
    EXPECT_EQ(Metered{}.pass_many(frame, 2 * kMost), 2 * kMost) << words(frames(frame)[0]);
}

TEST(Http2Meter, CountsContinuationsOnceHoweverTheyAreSplit) {
  Metered metered;
  const std::string one = headers(1, request(), 0) + continuation(1, "", end_headers);
  for (std::size_t i = 0; i < kMost; ++i) {
    for (const char byte : one) metered.pass({&byte, 1});
    ASSERT_EQ(metered.meter.flood(), Flood::none) << i;
  }
  metered.pass(one);
  EXPECT_EQ(metered.meter.flood(), Flood::frames);
}

TEST(Http2Meter, EarnsOneFrameASecond) {
  Metered metered;
  EXPECT_EQ(metered.pass_many(ping(), kMost), kMost);
  metered.now += seconds{3};
  EXPECT_EQ(metered.pass_many(ping(), 10), 3u);

  Metered impatient;
  EXPECT_EQ(impatient.pass_many(ping(), kMost), kMost);
  impatient.now += seconds{1} - Duration{1};
  EXPECT_EQ(impatient.pass_many(ping(), 1), 0u);
}

TEST(Http2Meter, EarnsNoMoreThanItStartsWith) {
  Metered metered;
  metered.pass(ping());
  metered.now += std::chrono::days{365};
  EXPECT_EQ(metered.pass_many(ping(), kMost + 1), kMost);
}

TEST(Http2Meter, EarnsFramesByUsefulWork) {
  const auto left_after = [](auto work) {
    Metered metered;
    metered.pass_many(ping(), kMost);
    work(metered);
    return metered.pass_many(ping(), kMost);
  };
  EXPECT_EQ(left_after([](Metered&) {}), 0u);
  EXPECT_EQ(left_after([](Metered& metered) { metered.pass(data(1, "x")); }), 2u);
  EXPECT_EQ(left_after([](Metered& metered) { metered.meter.sent_content(); }), 2u);
  EXPECT_EQ(left_after([](Metered& metered) { metered.meter.completed_exchange(); }), 8u);
}

TEST(Http2Meter, IsNotConfusedByAClockThatStandsStill) {
  Metered metered;
  metered.pass_many(ping(), 10);
  metered.now -= seconds{100};
  EXPECT_EQ(metered.pass_many(ping(), kMost), kMost - 10);
}

TEST(Http2Meter, AllowsAHeaderBlockOf16Continuations) {
  Metered metered;
  metered.pass(headers(1, request(), 0));
  EXPECT_EQ(metered.pass_many(continuation(1, "x"), 100), bounds::http2_continuations_max);
  EXPECT_EQ(metered.meter.flood(), Flood::header_block);
}

TEST(Http2Meter, CountsContinuationsOfOneBlockAtATime) {
  Metered metered;
  for (int i = 0; i < 10; ++i) {
    metered.pass(headers(1, request(), 0));
    EXPECT_EQ(metered.pass_many(continuation(1, "x"), bounds::http2_continuations_max),
              bounds::http2_continuations_max);
  }
}

TEST(Http2Meter, AllowsAHeaderBlockOf256KiB) {
  const std::string part(16384, 'x');
  Metered metered;
  metered.pass(frame(type_headers, 0, 1, part));
  EXPECT_EQ(metered.pass_many(continuation(1, part), 15), 15u);
  EXPECT_EQ(metered.pass_many(continuation(1, ""), 1), 1u);

  Metered larger;
  larger.pass(frame(type_headers, 0, 1, part));
  EXPECT_EQ(larger.pass_many(continuation(1, part), 15), 15u);
  EXPECT_EQ(larger.pass_many(continuation(1, "x"), 1), 0u);
  EXPECT_EQ(larger.meter.flood(), Flood::header_block);
}

// How many resets pass, after `waited` on us each.
std::size_t resets(Metered& metered, std::size_t most, Duration waited = {}) {
  for (std::size_t i = 0; i < most; ++i) {
    metered.meter.ended_without_response(metered.now, waited);
    if (metered.meter.flood() != Flood::none) return i;
  }
  return most;
}

TEST(Http2Meter, Allows200ResetsAtOnceAnd20ASecond) {
  Metered metered;
  EXPECT_EQ(resets(metered, bounds::http2_resets_max), 200u);
  metered.now += seconds{1};
  EXPECT_EQ(resets(metered, 100), 20u);
  EXPECT_EQ(metered.meter.flood(), Flood::resets);
  EXPECT_EQ(metered.pass(ping()), "");

  Metered impatient;
  EXPECT_EQ(resets(impatient, bounds::http2_resets_max), 200u);
  impatient.now += milliseconds{50} - Duration{1};
  EXPECT_EQ(resets(impatient, 1), 0u);
}

TEST(Http2Meter, ExcusesAResetAfter10MillisecondsOfWaitingOnUs) {
  Metered metered;
  EXPECT_EQ(resets(metered, 10'000, bounds::http2_reset_excused_after), 10'000u);
  EXPECT_EQ(resets(metered, 10'000, bounds::http2_reset_excused_after - Duration{1}), 200u);
}

}  // namespace
}  // namespace weir::http2_meter_test
