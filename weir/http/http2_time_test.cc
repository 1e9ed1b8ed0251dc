#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "weir/base/bounds.h"
#include "weir/base/time.h"
#include "weir/http/http2_scribe_test.h"

namespace weir::http::http2_time_test {
namespace {

class Http2TimeTest : public Http2SessionTest {};

TEST_F(Http2TimeTest, ExpiresEachExchangeAtItsOwnTime) {
  handler.on_begin = [&](Exchange& exchange) {
    exchange.expire_at(driver->now.time +
                       (handler.path_of[&exchange] == "/a" ? std::chrono::seconds{5} : std::chrono::seconds{7}));
  };
  handler.on_expired = answer_ok;
  send(get(1, "/a") + get(3, "/b"));
  EXPECT_EQ(driver->session->deadline(), driver->now.time + std::chrono::seconds{5});
  handler.take();
  driver->advance(std::chrono::seconds{4});
  EXPECT_EQ(handler.take(), "");
  driver->advance(std::chrono::seconds{1});
  EXPECT_EQ(handler.take(), "/a expired");
  EXPECT_EQ(frames(), "HEADERS 1, DATA 1 2 end");
  EXPECT_EQ(driver->session->deadline(), driver->now.time + std::chrono::seconds{2});
  driver->advance(std::chrono::seconds{2});
  EXPECT_EQ(handler.take(), "/b expired");
}

TEST_F(Http2TimeTest, ForgetsTheTimeOfAnExchangeThatHasEnded) {
  handler.on_begin = [&](Exchange& exchange) {
    exchange.expire_at(driver->now.time + std::chrono::milliseconds{20});
    answer_ok(exchange);
  };
  send(get(1));
  EXPECT_EQ(driver->session->deadline(), driver->now.time + bounds::http_idle_time_max);
}

TEST_F(Http2TimeTest, Answers408WhenTheBodyDoesNotArrive) {
  handler.returns_credit = true;
  send(post(1) + data(1, "one"));
  handler.open["/"]->consumed(3);
  driver->advance(bounds::http_body_time_max - std::chrono::seconds{1});
  for (int i = 0; i < 4; ++i) send(data(1, std::string(16'384, 'x')));  // a window: the time starts anew
  send(data(1, "two"));                                                 // less than one: it goes on
  driver->advance(bounds::http_body_time_max - std::chrono::nanoseconds{1});
  EXPECT_TRUE(handler.take().ends_with("/ body two"));
  driver->advance(std::chrono::nanoseconds{1});
  EXPECT_EQ(handler.take(), "/ ended canceled");
  const std::string out = frames();
  EXPECT_TRUE(out.ends_with("HEADERS 1, DATA 1 73 end, RST_STREAM 1 NO_ERROR")) << out;
  EXPECT_EQ(shared.exchanges->open_count(), 0u);
}

TEST_F(Http2TimeTest, WaitsForABodyOnlyWhileTheHandlerTakesIt) {
  send(post(1) + data(1, "one"));
  driver->advance(2 * bounds::http_body_time_max);
  EXPECT_EQ(handler.take(), "/ begin POST one");
}

TEST_F(Http2TimeTest, WaitsForNoBodyThatIsNotWanted) {
  handler.on_begin = [](Exchange& exchange) { exchange.discard(); };
  send(post(1) + data(1, "one"));
  driver->advance(2 * bounds::http_body_time_max);
  EXPECT_EQ(handler.take(), "/ begin POST one");
}

TEST_F(Http2TimeTest, ResetsAStreamThatIsNotReadAndNoOther) {
  handler.on_begin = [&](Exchange& exchange) {
    exchange.respond({200, {}, {}, {}}, {std::string(40'000, 'x'), false});
  };
  send(settings({{4, 30'000}}));
  send(get(1, "/a"));
  driver->advance(std::chrono::seconds{10});
  send(get(3, "/b"));
  frames();
  driver->advance(bounds::http2_write_time_max - std::chrono::seconds{10} - std::chrono::nanoseconds{1});
  EXPECT_EQ(frames(), "");
  driver->advance(std::chrono::nanoseconds{1});
  EXPECT_EQ(frames(), "RST_STREAM 1 CANCEL");
  send(window_update(3, 1));
  driver->advance(std::chrono::seconds{20});
  EXPECT_EQ(frames(), "DATA 3 1") << "progress";
  driver->advance(std::chrono::seconds{10});
  EXPECT_EQ(frames(), "RST_STREAM 3 CANCEL");
  EXPECT_EQ(shared.exchanges->open_count(), 0u);
}

TEST_F(Http2TimeTest, ClosesAnIdleConnectionWithTwoGoaways) {
  handler.on_begin = answer_ok;
  send(get(1));
  frames();
  driver->advance(bounds::http_idle_time_max - std::chrono::nanoseconds{1});
  EXPECT_EQ(frames(), "");
  driver->advance(std::chrono::nanoseconds{1});
  EXPECT_EQ(frames(), "GOAWAY NO_ERROR, PING");
  EXPECT_FALSE(driver->session->finished());
  send(get(3));
  EXPECT_EQ(frames(), "HEADERS 3, DATA 3 2 end") << "it was on its way";
  send(ping(ack));
  EXPECT_EQ(frames(), "GOAWAY NO_ERROR");
  EXPECT_TRUE(driver->session->finished());
}

TEST_F(Http2TimeTest, StaysOpenForAsLongAsItsListenerLetsItIdle) {
  handler.on_begin = answer_ok;
  idle_timeout = std::chrono::hours{1};
  open();
  driver->advance(idle_timeout - std::chrono::nanoseconds{1});
  EXPECT_EQ(frames(), "");
  driver->advance(std::chrono::nanoseconds{1});
  EXPECT_EQ(frames(), "GOAWAY NO_ERROR, PING");
  idle_timeout = Duration::zero();
  open();
  send(get(1));
  EXPECT_EQ(frames(), "HEADERS 1, DATA 1 2 end");
  driver->advance(std::chrono::weeks{1});
  EXPECT_EQ(frames(), "");
  EXPECT_EQ(driver->session->deadline(), Time::max());
}

TEST_F(Http2TimeTest, ServesTheOpenStreamsOfAConnectionThatIsTooOld) {
  idle_timeout = Duration::zero();
  max_age = std::chrono::minutes{5};
  open();
  driver->advance(max_age - std::chrono::seconds{60});
  send(get(1, "/long"));
  driver->advance(std::chrono::seconds{60} - std::chrono::nanoseconds{1});
  EXPECT_EQ(frames(), "") << "bytes do not make it younger";
  driver->advance(std::chrono::nanoseconds{1});
  EXPECT_EQ(frames(), "GOAWAY NO_ERROR, PING");
  send(get(3, "/on-its-way") + ping(ack));
  EXPECT_EQ(frames(), "GOAWAY NO_ERROR");
  EXPECT_EQ(handler.take(), "/long begin GET last, /on-its-way begin GET last") << "nobody is told to hurry";
  driver->advance(max_age);
  EXPECT_FALSE(driver->session->finished());
  for (Exchange* const exchange : {handler.open["/long"], handler.open["/on-its-way"]}) answer_ok(*exchange);
  driver->settle();
  EXPECT_EQ(frames(), "HEADERS 1, HEADERS 3, DATA 1 2 end, DATA 3 2 end");
  EXPECT_TRUE(driver->session->finished());
}

TEST_F(Http2TimeTest, TellsReceiversToEndResponsesWithoutAnEnd) {
  handler.on_begin = [](Exchange& exchange) { exchange.respond({200, "text/event-stream", {}, {}}, {"a", false}); };
  handler.on_draining = [](Exchange& exchange) { exchange.write({"z", true}); };
  send(get(1));
  EXPECT_EQ(frames(), "HEADERS 1, DATA 1 1");
  driver->session->drain(driver->now.time);
  driver->settle();
  EXPECT_EQ(frames(), "GOAWAY NO_ERROR, PING, DATA 1 1 end");
}

TEST_F(Http2TimeTest, DrainsWithoutAnAnswerToItsPing) {
  send(get(1));
  driver->session->drain(driver->now.time);
  driver->settle();
  EXPECT_EQ(frames(), "GOAWAY NO_ERROR, PING");
  driver->advance(bounds::http2_pong_time_max - std::chrono::nanoseconds{1});
  EXPECT_EQ(frames(), "");
  driver->advance(std::chrono::nanoseconds{1});
  EXPECT_EQ(frames(), "GOAWAY NO_ERROR");
  send(get(3, "/late"));
  EXPECT_EQ(handler.take(), "/ begin GET last") << "3 is above the last stream";
  EXPECT_FALSE(driver->session->finished());
  answer_ok(*handler.open["/"]);
  driver->settle();
  EXPECT_EQ(frames(), "HEADERS 1, DATA 1 2 end");
  EXPECT_TRUE(driver->session->finished());
}

}  // namespace
}  // namespace weir::http::http2_time_test
