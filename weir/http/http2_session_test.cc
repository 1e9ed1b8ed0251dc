#include "weir/http/http2_session.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "weir/http/http2_scribe_test.h"

namespace weir::http::http2_session_test {
namespace {

TEST_F(Http2SessionTest, AnswersARequest) {
  handler.on_begin = answer_ok;
  send(get(1));
  EXPECT_EQ(handler.take(), "/ begin GET last");
  EXPECT_EQ(frames(), "HEADERS 1, DATA 1 2 end");
  EXPECT_EQ(shared.exchanges->open_count(), 0u);
  EXPECT_FALSE(driver->session->busy());
}

TEST_F(Http2SessionTest, GivesHeadBodyAndEndOfOneReadAtOnceAlsoWhenTheyAreInterleaved) {
  send(post(1, "/a") + post(3, "/b") + data(1, "one", end_stream) + data(3, "two", end_stream));
  EXPECT_EQ(handler.take(), "/a begin POST one last, /b begin POST two last");
}

TEST_F(Http2SessionTest, DeliversABodyInThePartsThatArrive) {
  send(post(1) + data(1, "one") + data(1, "two"));
  EXPECT_EQ(handler.take(), "/ begin POST one, / body two");
  send(data(1, "three"));
  EXPECT_EQ(handler.take(), "/ body three");
  send(headers(1, {{"sum", "6"}}));
  EXPECT_EQ(handler.take(), "/ body last sum=6");
}

TEST_F(Http2SessionTest, GivesTrailersWithTheHeadIfTheyArriveTogether) {
  send(post(1) + data(1, "one") + headers(1, {{"sum", "6"}}));
  EXPECT_EQ(handler.take(), "/ begin POST one last sum=6");
}

TEST_F(Http2SessionTest, SendsInterimResponsesAndTrailers) {
  handler.on_begin = [](Exchange& exchange) {
    const std::vector<HttpHeader> link = {{"Link", "</a>"}};
    const std::vector<HttpHeader> trailers = {{"sum", "6"}};
    exchange.inform(103, {{}, link});
    exchange.respond({200, "text/plain", {}, {}}, {"one", false});
    exchange.write({"two", true, trailers});
  };
  send(get(1));
  EXPECT_EQ(frames(), "HEADERS 1, HEADERS 1, DATA 1 6, HEADERS 1 end");
}

TEST_F(Http2SessionTest, SendsAHeadAloneForHeadAndForNoContent) {
  handler.on_begin = answer_ok;
  send(get(1, "/", end_headers | end_stream, {}, "HEAD"));
  EXPECT_EQ(frames(), "HEADERS 1 end");
  handler.on_begin = [](Exchange& exchange) { exchange.respond({204, {}, {}, {}}, {{}, true}); };
  send(get(3));
  EXPECT_EQ(frames(), "HEADERS 3 end");
  EXPECT_EQ(shared.exchanges->open_count(), 0u);
}

TEST_F(Http2SessionTest, SendsTheHundredOnlyWhenTheBodyIsWanted) {
  send(post(1, "/", {{"expect", "100-continue"}, {"content-length", "2"}}));
  EXPECT_EQ(frames(), "");
  handler.open["/"]->proceed();
  handler.open["/"]->proceed();
  driver->settle();
  EXPECT_EQ(frames(), "HEADERS 1");
}

TEST_F(Http2SessionTest, NeverBeginsAStreamThatIsResetInTheSameRead) {
  send(get(1) + rst_stream(1, 8));
  EXPECT_EQ(handler.take(), "");
  EXPECT_EQ(shared.exchanges->open_count(), 0u);
}

TEST_F(Http2SessionTest, TellsTheReceiverThatTheClientCanceledAndDropsTheLateAnswer) {
  handler.on_begin = [](Exchange& exchange) { ASSERT_NE(exchange.ask(), nullptr); };
  send(get(1));
  send(rst_stream(1, 8));
  EXPECT_EQ(handler.take(), "/ begin GET last, / ended canceled");
  EXPECT_TRUE(driver->session->busy()) << "the question is still open";
  driver->answer_owed();
  EXPECT_EQ(handler.take(), "");
  EXPECT_FALSE(driver->session->busy());
}

TEST_F(Http2SessionTest, ResetsAStreamThatTheHandlerGivesUp) {
  handler.on_begin = [](Exchange& exchange) {
    exchange.respond({200, {}, {}, {}}, {"partial", false});
    exchange.abort();
    exchange.write({"nothing", true});
  };
  send(get(1));
  EXPECT_EQ(handler.take(), "/ begin GET last, / ended aborted");
  EXPECT_EQ(frames(), "RST_STREAM 1 INTERNAL_ERROR");
}

TEST_F(Http2SessionTest, ResetsWithoutAnErrorWhenItAnsweredBeforeTheBodyArrived) {
  handler.on_begin = answer_ok;
  send(post(1));
  EXPECT_EQ(frames(), "HEADERS 1, DATA 1 2 end, RST_STREAM 1 NO_ERROR");
  send(data(1, "late"));
  EXPECT_EQ(handler.take(), "/ begin POST");
  EXPECT_FALSE(driver->lost);
}

TEST_F(Http2SessionTest, DropsABodyThatIsNotWantedAndReturnsItsCredit) {
  handler.on_begin = [](Exchange& exchange) {
    exchange.discard();
    exchange.consumed(5);  // too late, and harmless
  };
  send(post(1) + data(1, "first"));
  for (int i = 0; i < 8; ++i) send(data(1, std::string(16'000, 'x')));
  EXPECT_EQ(handler.take(), "/ begin POST first");
  EXPECT_NE(frames().find("WINDOW_UPDATE 1"), std::string::npos);
}

TEST_F(Http2SessionTest, Answers431OnTheStreamAndTheConnectionGoesOn) {
  handler.on_begin = answer_ok;
  std::string block_bytes = block({{":method", "GET"},
                                   {":scheme", "http"},
                                   {":authority", "h"},
                                   {":path", "/"},
                                   {"a", std::string(40'000, 'x')},
                                   {"b", std::string(30'000, 'x')}});
  std::string bytes = frame(type_headers, end_stream, 1, block_bytes.substr(0, 16'000));
  for (std::size_t at = 16'000; at < block_bytes.size(); at += 16'000)
    bytes += continuation(1, block_bytes.substr(at, 16'000), at + 16'000 >= block_bytes.size() ? end_headers : 0);
  send(bytes);
  EXPECT_EQ(handler.take(), "");
  EXPECT_EQ(frames().substr(0, 9), "HEADERS 1");
  send(get(3));
  EXPECT_EQ(frames(), "HEADERS 3, DATA 3 2 end");
}

TEST_F(Http2SessionTest, AnswersBadRequestsItself) {
  const auto status = [&](const std::string& bytes) {
    send(bytes);
    std::string out;
    for (const Frame& frame : http2_frames::frames(driver->take())) {
      if (frame.type == type_data) out += frame.payload;
    }
    return out;
  };
  EXPECT_EQ(status(headers(1, {{":method", "CONNECT"}, {":authority", "h:1"}})),
            "{\"error\":\"method_not_allowed\",\"message\":\"CONNECT is not supported\"}\n");
  EXPECT_NE(
      status(headers(3, {{":method", "GET"}, {":scheme", "ftp"}, {":authority", "h"}, {":path", "/"}})).find("scheme"),
      std::string::npos);
  EXPECT_NE(status(get(5, "/", end_headers | end_stream, {{"expect", "wonders"}})).find("expectation_failed"),
            std::string::npos);
  EXPECT_EQ(handler.take(), "");
  EXPECT_EQ(shared.exchanges->open_count(), 0u);
}

TEST_F(Http2SessionTest, HoldsAWindowOfAResponseAndReportsWhatLeaves) {
  std::size_t first_room = 0;
  handler.on_begin = [&](Exchange& exchange) {
    exchange.respond({200, {}, {}, {}}, {{}, false});
    first_room = exchange.room();
    exchange.write({std::string(first_room, 'x'), false});
    EXPECT_EQ(exchange.room(), 0u);
  };
  send(get(1));
  EXPECT_EQ(first_room, bounds::http_window_bytes);
  EXPECT_EQ(handler.drained_bytes, 65'535u) << "the stream's window";
  EXPECT_EQ(handler.open["/"]->room(), 65'535u);
  send(window_update(1, 1) + window_update(0, 100));
  EXPECT_EQ(handler.drained_bytes, 65'536u);
  EXPECT_EQ(handler.drained_calls, 2u);
  handler.open["/"]->write({"end", true});
  driver->settle();
  send(window_update(1, 3));
  EXPECT_EQ(shared.exchanges->open_count(), 0u);
}

TEST_F(Http2SessionTest, AStalledKernelHoldsBackTheOutputNotTheStreams) {
  handler.on_begin = [&](Exchange& exchange) { exchange.respond({200, {}, {}, {}}, {std::string(60'000, 'x'), true}); };
  driver->stalled = true;
  send(window_update(0, 10'000'000));
  for (std::uint32_t i = 0; i < 20; ++i) send(get(1 + 2 * i, "/" + std::to_string(i)));
  EXPECT_GE(driver->unsent(), bounds::http_window_bytes);
  EXPECT_LE(driver->unsent(), bounds::http_window_bytes + 17'000) << "one frame may exceed it";
  driver->stalled = false;
  driver->settle();
  EXPECT_EQ(shared.exchanges->open_count(), 0u);
}

TEST_F(Http2SessionTest, OneStalledStreamDoesNotHoldBackTheOthers) {
  handler.on_begin = [&](Exchange& exchange) {
    exchange.respond({200, {}, {}, {}},
                     {std::string(handler.path_of[&exchange] == "/slow" ? 200'000 : 1000, 'x'), true});
  };
  send(settings({{4, 20'000}}));  // windows of streams
  send(get(1, "/slow"));
  EXPECT_EQ(frames(), "HEADERS 1, DATA 1 16384, DATA 1 3616");
  for (std::uint32_t i = 1; i < 40; ++i) {
    send(get(1 + 2 * i));
    const std::string on = std::to_string(1 + 2 * i);
    EXPECT_EQ(frames(), "HEADERS " + on + ", DATA " + on + " 1000 end");
    send(window_update(0, 1000));
  }
  EXPECT_EQ(shared.exchanges->open_count(), 1u);
}

TEST_F(Http2SessionTest, NarrowsStreamsWhenOneConnectionBuffersMuch) {
  handler.on_begin = [&](Exchange& exchange) { exchange.respond({200, {}, {}, {}}, {{}, false}); };
  send(settings({{4, 0}}));
  std::vector<Exchange*> open;
  for (std::uint32_t i = 0; i < 18; ++i) {
    send(get(1 + 2 * i, "/" + std::to_string(i)));
    open.push_back(handler.open["/" + std::to_string(i)]);
  }
  for (std::size_t i = 0; i < 16; ++i) open[i]->write({std::string(bounds::http_window_bytes, 'x'), false});
  EXPECT_EQ(open[16]->room(), bounds::http_window_bytes) << "at the bound";
  open[16]->write({"x", false});
  EXPECT_EQ(open[16]->room(), bounds::http2_crowded_stream_bytes - 1) << "one past it";
  EXPECT_EQ(open[17]->room(), bounds::http2_crowded_stream_bytes);
  EXPECT_EQ(open[0]->room(), 0u);
}

TEST_F(Http2SessionTest, RefusesStreamsWhileTooMuchIsBuffered) {
  handler.on_begin = [&](Exchange& exchange) {
    exchange.respond({200, {}, {}, {}}, {{}, false});
    exchange.write({std::string(bounds::http_response_bytes_max - 1, 'x'), false});
  };
  send(settings({{4, 0}}));
  send(get(1, "/1"));
  handler.on_begin = [&](Exchange& exchange) { exchange.respond({200, {}, {}, {}}, {"x", true}); };
  send(get(3, "/3"));
  frames();
  send(get(5, "/5"));
  EXPECT_EQ(frames(), "RST_STREAM 5 REFUSED_STREAM");
  EXPECT_EQ(shared.exchanges->open_count(), 2u);
}

TEST_F(Http2SessionTest, KeepsTheConnectionsWindowHoweverManyStreamsAreFilledAndCanceled) {
  std::size_t credit = bounds::http2_connection_window_bytes;
  std::uint32_t stream = 1;
  for (int i = 0; i < 10'000; ++i, stream += 2) {
    driver->advance(std::chrono::seconds{1});
    std::string bytes = post(stream, "/");
    for (int part = 0; part < 4; ++part) bytes += data(stream, std::string(16'384, 'x'));
    ASSERT_GE(credit, bounds::http2_stream_window_bytes) << i;
    credit -= bounds::http2_stream_window_bytes;
    send(bytes);
    send(rst_stream(stream, 8));
    for (const Frame& frame : http2_frames::frames(driver->take())) {
      if (frame.type == type_window_update && frame.stream == 0) credit += frame.number_at(0, 4);
      ASSERT_NE(frame.type, type_goaway);
    }
  }
  EXPECT_EQ(shared.exchanges->open_count(), 0u);
  EXPECT_FALSE(driver->lost);
}

TEST_F(Http2SessionTest, AsksLaterWhenTheBatchIsFull) {
  handler.on_begin = [](Exchange& exchange) {
    for (int i = 0; i < 3; ++i) {
      if (exchange.ask() == nullptr) return;
    }
  };
  handler.on_can_ask = [](Exchange& exchange) { ASSERT_NE(exchange.ask(), nullptr); };
  std::string bytes;
  for (std::uint32_t i = 0; i < 100; ++i) bytes += get(1 + 2 * i, "/" + std::to_string(i));
  send(bytes);
  EXPECT_EQ(driver->owed.size(), 256u + 15u);
  EXPECT_NE(handler.take().find("/85 can_ask"), std::string::npos);
}

TEST_F(Http2SessionTest, StopsReadingWhileTooManyQuestionsAreOwed) {
  handler.on_begin = [](Exchange& exchange) { ASSERT_NE(exchange.ask(), nullptr); };
  std::uint32_t stream = 1;
  const auto ask_and_cancel = [&] {
    driver->advance(std::chrono::milliseconds{50});
    send(get(stream));
    driver->now.time += std::chrono::milliseconds{20};  // as a caller's timeout
    send(rst_stream(stream, 8));
    stream += 2;
  };
  while (stream < 2 * (bounds::http_checks_max - 1)) ask_and_cancel();
  EXPECT_TRUE(driver->session->reading()) << driver->owed.size();
  ask_and_cancel();
  EXPECT_EQ(driver->owed.size(), bounds::http_checks_max);
  EXPECT_FALSE(driver->session->reading());
  driver->answer_owed();
  EXPECT_TRUE(driver->session->reading());
}

TEST_F(Http2SessionTest, EndsEveryExchangeWhenTheConnectionBreaks) {
  send(get(1, "/a") + post(3, "/b"));
  handler.take();
  driver->cut();
  EXPECT_EQ(handler.take(), "/a ended lost, /b ended lost");
  EXPECT_EQ(shared.exchanges->open_count(), 0u);
}

TEST_F(Http2SessionTest, AnswersWhatIsCompleteWhenTheClientSendsNothingMore) {
  send(get(1, "/a") + post(3, "/b"));
  handler.take();
  driver->session->end_of_input(driver->now);
  driver->settle();
  EXPECT_EQ(handler.take(), "/b ended canceled");
  EXPECT_FALSE(driver->session->finished());
  answer_ok(*handler.open["/a"]);
  driver->settle();
  EXPECT_EQ(frames(), "RST_STREAM 3 CANCEL, HEADERS 1, DATA 1 2 end");
  EXPECT_TRUE(driver->session->finished());
}

TEST_F(Http2SessionTest, EndsTheConnectionOfAFlood) {
  std::string bytes;
  for (int i = 0; i < 1001; ++i) bytes += ping();
  send(get(1));
  send(bytes);
  EXPECT_TRUE(driver->lost);
  EXPECT_TRUE(driver->session->finished());
  EXPECT_TRUE(frames().ends_with("GOAWAY ENHANCE_YOUR_CALM"));
  open();
  EXPECT_EQ(handler.take(), "/ begin GET last, / ended lost");
}

TEST_F(Http2SessionTest, ExcusesAResetAfterWaitingOnUs) {
  for (std::uint32_t i = 0; i < 300; ++i) {
    send(get(1 + 2 * i));
    driver->now.time += bounds::http2_reset_excused_after;
    send(rst_stream(1 + 2 * i, 8));
    driver->now.time -= bounds::http2_reset_excused_after;
  }
  EXPECT_FALSE(driver->lost);
  for (std::uint32_t i = 300; i < 600 && !driver->lost; ++i) {
    send(get(1 + 2 * i));
    send(rst_stream(1 + 2 * i, 8));
  }
  EXPECT_TRUE(driver->lost) << "resets without waiting count";
}

// R2 and R3: whatever a receiver does in a callback, also to other exchanges.
TEST_F(Http2SessionTest, SurvivesWhateverAReceiverDoesInACallback) {
  const std::vector<Scribe::Then> deeds = {
      [](Exchange& x) { x.abort(); },
      [](Exchange& x) { x.discard(); },
      [](Exchange& x) { x.proceed(); },
      [](Exchange& x) { x.expire_at(Time{}); },
      [](Exchange& x) { x.ask(); },
      [&](Exchange&) {
        for (const auto& [path, other] : handler.open) other->abort();
      },
      [](Exchange& x) { x.attach(std::make_unique<Scribe>()); },
  };
  for (std::size_t deed = 0; deed < deeds.size(); ++deed) {
    for (int place = 0; place < 7; ++place) {
      handler = Scribe();
      handler.returns_credit = false;
      Scribe::Then* const places[] = {&handler.on_begin,   &handler.on_body,    &handler.on_answered,
                                      &handler.on_can_ask, &handler.on_expired, &handler.on_drained,
                                      &handler.on_ended};
      *places[place] = deeds[deed];
      if (place != 0) {
        handler.on_begin = [&](Exchange& x) {
          x.ask();
          x.expire_at(driver->now.time + std::chrono::seconds{1});
          x.respond({200, {}, {}, {}}, {std::string(100'000, 'x'), false});
        };
      }
      open();
      send(post(1, "/a") + post(3, "/b") + data(1, "one"));
      send(data(1, "two") + data(3, "three", end_stream));
      driver->answer_owed();
      driver->advance(std::chrono::seconds{2});
      send(window_update(1, 10'000) + rst_stream(3, 8));
      driver.reset();
      EXPECT_EQ(shared.exchanges->open_count(), 0u) << deed << " in " << place;
      EXPECT_EQ(shared.http2.library_bytes(), 0u);
    }
  }
}

}  // namespace
}  // namespace weir::http::http2_session_test
