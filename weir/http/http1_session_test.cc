#include "weir/http/http1_session.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/http/testing/http1_peer.h"

namespace weir::http::http1_session_test {
namespace {

using namespace std::chrono_literals;

// Writes down its events and does what a test says.
class Script final : public Handler {
 public:
  using Step = std::function<void(Exchange&)>;

  void begin(Exchange& exchange, const RequestHead& head, BodyPart first) override {
    log.append(head.method).append(" ").append(head.path).append(" ");
    open.push_back(&exchange);
    note(first);
    if (on_begin) on_begin(exchange);
  }
  void body(Exchange& exchange, BodyPart part) override {
    log += "+";
    note(part);
    if (on_body) on_body(exchange);
  }
  void answered(Exchange& exchange, std::uint32_t, const Result<Answer>&) override {
    log += "answered ";
    if (on_answer) on_answer(exchange);
  }
  void can_ask(Exchange& exchange) override {
    log += "can_ask ";
    if (on_can_ask) on_can_ask(exchange);
  }
  void expired(Exchange& exchange) override {
    log += "expired ";
    if (on_expired) on_expired(exchange);
  }
  void drained(Exchange& exchange, std::size_t bytes) override {
    drained_bytes += bytes;
    if (on_drained) on_drained(exchange);
  }
  void draining(Exchange& exchange) override {
    log += "draining ";
    if (on_draining) on_draining(exchange);
  }
  void ended(Exchange& exchange, Ending ending) override {
    static constexpr const char* kNames[] = {"complete", "canceled", "aborted", "lost", "drained"};
    log.append(kNames[static_cast<int>(ending)]).append(" ");
    if (on_ended) on_ended(exchange);
  }
  bool overlaps() const noexcept override { return overlap; }

  void note(BodyPart part) {
    log.append(part.bytes.size() > 40 ? std::to_string(part.bytes.size()) : part.bytes);
    for (const HttpHeader& field : part.trailers) log.append(" ").append(field.name).append("=").append(field.value);
    log += part.last ? ". " : "... ";
  }

  std::string log;
  std::vector<Exchange*> open;
  std::size_t drained_bytes = 0;
  bool overlap = false;
  Step on_begin, on_body, on_answer, on_can_ask, on_expired, on_drained, on_draining, on_ended;
};

void ok(Exchange& exchange) {
  exchange.respond({200, {}, {}, {}}, {"ok", true});
}

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

std::string get(std::string_view target = "/", std::string_view fields = {}) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n";
}
std::string post(std::string_view content, std::string_view fields = {}) {
  return "POST / HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "Content-Length: " + std::to_string(content.size()) +
         "\r\n\r\n" + std::string(content);
}

class Http1SessionTest : public ::testing::Test {
 protected:
  Script script;
  Http1Peer peer{script, "192.0.2.7", true};
};

TEST_F(Http1SessionTest, PassesOnARequestThatArrivesWholeAndWritesTheResponse) {
  script.on_begin = [](Exchange& exchange) {
    EXPECT_EQ(exchange.peer(), "192.0.2.7");
    EXPECT_TRUE(exchange.secure());
    exchange.respond({201, "text/plain", {"A: b\r\n", {}}, {}}, {"made", true});
  };
  EXPECT_EQ(peer.send(post("abc")),
            "HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nContent-Length: 4\r\nA: b\r\n\r\nmade");
  EXPECT_EQ(script.log, "POST / abc. ");
  EXPECT_EQ(peer.shared.exchanges->open_count(), 0u);
}

TEST_F(Http1SessionTest, DeliversABodyInPiecesWithItsTrailers) {
  script.on_body = [&](Exchange& exchange) {
    if (script.log.ends_with(". ") && !script.log.ends_with("... ")) ok(exchange);
  };
  EXPECT_EQ(peer.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1"), "");
  EXPECT_EQ(peer.send("\r\nc\r\n0\r\nX-Sum: 1\r\nY: 2"), "");
  EXPECT_EQ(peer.send("\r\n\r\n"), kOk);
  EXPECT_EQ(script.log, "POST / ... +ab... +c... + X-Sum=1 Y=2. ");
}

TEST_F(Http1SessionTest, DeliversAtMostOneWindowThatIsNotConsumed) {
  Exchange* exchange = nullptr;
  script.on_begin = [&](Exchange& begun) { exchange = &begun; };
  const std::string content(3 * bounds::http_window_bytes, 'x');
  peer.send(post(content));
  EXPECT_EQ(script.log, "POST / 65536... ");
  EXPECT_FALSE(peer.session->reading());
  EXPECT_EQ(peer.session->deadline(), Time::max()) << "the peer is not the one to wait for";
  exchange->consumed(1);
  EXPECT_TRUE(peer.session->reading());
  EXPECT_TRUE(peer.output.was_touched());
  peer.turn();
  EXPECT_EQ(script.log, "POST / 65536... +x... ");
  exchange->consumed(bounds::http_window_bytes);
  peer.turn();
  exchange->consumed(bounds::http_window_bytes - 1);
  peer.turn();
  EXPECT_TRUE(script.log.ends_with("+65536... +65535. ")) << script.log;
  ok(*exchange);
  EXPECT_EQ(peer.turn(), kOk);
}

TEST_F(Http1SessionTest, BeginsTheNextRequestOnlyBehindAHandlerThatOverlaps) {
  peer.send(get("/1") + get("/2"));
  EXPECT_EQ(script.log, "GET /1 . ");
  EXPECT_FALSE(peer.session->reading());
  ok(*script.open[0]);
  EXPECT_TRUE(peer.output.wants_fill);
  EXPECT_EQ(peer.take(), kOk);
  EXPECT_TRUE(peer.session->reading());
  peer.turn();
  EXPECT_EQ(script.log, "GET /1 . GET /2 . ");
}

TEST_F(Http1SessionTest, WritesOverlappingResponsesInTheOrderOfTheRequests) {
  script.overlap = true;
  peer.send(get("/1") + get("/2") + get("/3"));
  ASSERT_EQ(script.open.size(), 3u);
  script.open[2]->respond({200, {}, {}, {}}, {"3", true});
  script.open[1]->respond({200, {}, {}, {}}, {"2", false});
  EXPECT_EQ(peer.take(), "");
  EXPECT_EQ(script.open[1]->room(), 0u);
  script.open[0]->respond({200, {}, {}, {}}, {"1", true});
  EXPECT_EQ(peer.take(),
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1"
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n2\r\n");
  script.open[1]->write({"", true});
  EXPECT_EQ(peer.take(), "0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n3");
  EXPECT_EQ(script.log, "GET /1 . GET /2 . GET /3 . ");
}

TEST_F(Http1SessionTest, HoldsABoundedNumberOfRequestsAndBytes) {
  script.overlap = true;
  std::string many;
  for (std::size_t i = 0; i <= bounds::http_pipeline_max; ++i) many += get();
  peer.send(many);
  EXPECT_EQ(script.open.size(), bounds::http_pipeline_max);
  EXPECT_FALSE(peer.session->reading());
  ok(*script.open[0]);
  peer.take();
  peer.turn();
  EXPECT_EQ(script.open.size(), bounds::http_pipeline_max + 1);

  Script other;
  other.overlap = true;
  Http1Peer held(other);
  other.on_begin = [&](Exchange& exchange) {
    if (other.open.size() > 1) {
      exchange.respond({200, {}, {}, {}}, {std::string(bounds::session_held_bytes_max - 50, 'x'), true});
    }
  };
  held.send(get() + get() + get() + get());
  // The head makes it more than the bound together with the third.
  EXPECT_EQ(other.open.size(), 3u);
  EXPECT_FALSE(held.session->reading());
}

TEST_F(Http1SessionTest, SaysContinueWhenTheBodyIsWanted) {
  const std::string request = post("abc", "Expect: 100-continue\r\n");
  peer.send(request.substr(0, request.size() - 3));
  EXPECT_EQ(script.log, "POST / ... ");
  EXPECT_FALSE(peer.session->reading());
  script.open[0]->proceed();
  script.open[0]->proceed();
  script.on_body = ok;
  EXPECT_EQ(peer.send("abc"), std::string(kHttpContinue) + std::string(kOk));
  EXPECT_FALSE(peer.session->finished());
}

TEST_F(Http1SessionTest, ClosesAfterARefusalOfABodyThatItNeverAskedFor) {
  script.on_begin = ok;
  EXPECT_EQ(peer.send(post("abc", "Expect: 100-continue\r\n")),
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
  EXPECT_TRUE(peer.session->finished());
  EXPECT_EQ(script.log, "POST / ... ");
}

TEST_F(Http1SessionTest, DropsTheRestOfAnAnsweredRequestIfItIsShort) {
  script.on_begin = ok;
  const std::string fits = post(std::string(bounds::http_window_bytes + 10, 'x'));
  const std::size_t head = fits.find("\r\n\r\n") + 4;
  EXPECT_EQ(peer.send(fits.substr(0, head + 10)), kOk);
  EXPECT_EQ(peer.send(fits.substr(head + 10) + get()), kOk);
  EXPECT_EQ(script.log, "POST / xxxxxxxxxx... GET / . ");

  Script other;
  other.on_begin = ok;
  Http1Peer large(other);
  EXPECT_EQ(large.send(fits.substr(0, head + 9)),
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
  EXPECT_TRUE(large.session->finished());
  Http1Peer chunked(other);
  EXPECT_EQ(chunked.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
}

TEST_F(Http1SessionTest, DiscardsABodyThatNobodyWants) {
  script.on_begin = [](Exchange& exchange) { exchange.discard(); };
  const std::string content(2 * bounds::http_window_bytes, 'x');
  peer.send(post(content));
  EXPECT_TRUE(peer.pending.empty()) << "no credit was returned, and none is needed";
  EXPECT_EQ(script.log, "POST / 65536... ");
  ok(*script.open[0]);
  EXPECT_EQ(peer.take(), kOk);
}

TEST_F(Http1SessionTest, StreamsInChunksAndReportsWhatWasSent) {
  script.on_begin = [](Exchange& exchange) {
    exchange.respond({200, "text/plain", {}, {}}, {});
    EXPECT_LT(exchange.room(), bounds::http_window_bytes) << "the head is not sent yet";
  };
  EXPECT_EQ(peer.send(get()), "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n");
  peer.stalled = true;
  Exchange& exchange = *script.open[0];
  exchange.write({std::string(bounds::http_window_bytes, 'x'), false});
  EXPECT_EQ(exchange.room(), 0u);
  const std::string sent = peer.take();
  EXPECT_EQ(sent.substr(0, 7), "10000\r\n");
  EXPECT_EQ(exchange.room(), 0u) << "not reported yet";
  peer.session->fill(1000);
  EXPECT_EQ(script.drained_bytes, bounds::http_window_bytes - 1000);
  EXPECT_TRUE(peer.output.wants_fill);
  peer.session->fill(0);
  EXPECT_EQ(script.drained_bytes, bounds::http_window_bytes);
  EXPECT_FALSE(peer.output.wants_fill);
  EXPECT_EQ(exchange.room(), bounds::http_window_bytes);
  const HttpHeader sum{"X-Sum", "1"};
  exchange.write({"end", true, {&sum, 1}});
  peer.stalled = false;
  EXPECT_EQ(peer.take(), "3\r\nend\r\n0\r\nX-Sum: 1\r\n\r\n");
  EXPECT_EQ(peer.shared.exchanges->open_count(), 0u);
}

TEST_F(Http1SessionTest, StreamsToHttp10UntilItCloses) {
  script.on_begin = [](Exchange& exchange) { exchange.respond({200, {}, {}, {}}, {"a", false}); };
  EXPECT_EQ(peer.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\na");
  script.open[0]->write({"b", true});
  EXPECT_EQ(peer.take(), "b");
  EXPECT_TRUE(peer.session->finished());
}

TEST_F(Http1SessionTest, KeepsToTheLengthThatWasAnnounced) {
  script.on_begin = [](Exchange& exchange) { exchange.respond({200, {}, {}, 4}, {"ab", false}); };
  EXPECT_EQ(peer.send(get()), "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
  script.open[0]->write({"cd", true});
  EXPECT_EQ(peer.take(), "cd");
  EXPECT_FALSE(peer.session->finished());
  for (const std::string_view wrong : {"c", "cde"}) {
    Script other;
    other.on_begin = script.on_begin;
    Http1Peer cut(other);
    cut.send(get());
    other.open[0]->write({wrong, true});
    EXPECT_EQ(cut.take(), "");
    EXPECT_TRUE(cut.session->finished()) << wrong;
    EXPECT_EQ(other.log, "GET / . aborted ");
  }
}

TEST_F(Http1SessionTest, AnswersHeadWithoutContent) {
  script.on_begin = [](Exchange& exchange) { exchange.respond({200, {}, {}, 4}, {"abcd", true}); };
  EXPECT_EQ(peer.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"), "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
  script.on_begin = [](Exchange& exchange) { exchange.respond({200, {}, {}, {}}, {"abcd", true}); };
  EXPECT_EQ(peer.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"), "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
  script.on_begin = [](Exchange& exchange) { exchange.respond({200, {}, {}, {}}, {{}, true}); };
  EXPECT_EQ(peer.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"), "HTTP/1.1 200 OK\r\n\r\n") << "GET may have content";
  script.on_begin = [](Exchange& exchange) { exchange.respond({304, {}, {}, {}}, {{}, true}); };
  EXPECT_EQ(peer.send(get()), "HTTP/1.1 304 Not Modified\r\n\r\n");
  script.on_begin = [](Exchange& exchange) { exchange.respond({204, {}, {}, {}}, {{}, true}); };
  EXPECT_EQ(peer.send(get()), "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST_F(Http1SessionTest, WritesFieldsOfAListWithoutThoseOfTheConnection) {
  const std::vector<HttpHeader> fields = {
      {"Connection", "x"}, {"X", "1"}, {"Transfer-Encoding", "chunked"}, {"Keep-Alive", "1"}, {"content-length", "7"}};
  script.on_begin = [&](Exchange& exchange) { exchange.respond({200, {}, {{}, fields}, {}}, {"ok", true}); };
  EXPECT_EQ(peer.send(get()), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: 1\r\n\r\nok");
}

TEST_F(Http1SessionTest, AddsADateUnlessTheResponseHasOne) {
  peer.now.wall = Wall{784'111'777s};
  script.on_begin = ok;
  EXPECT_EQ(peer.send(get()), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\nok");
  script.on_begin = [](Exchange& exchange) {
    exchange.respond({200, {}, {"date: d\r\n", {}}, {}, "Fine", true}, {"ok", true});
  };
  EXPECT_EQ(peer.send(get()), "HTTP/1.1 200 Fine\r\nContent-Length: 2\r\ndate: d\r\n\r\nok");
}

TEST_F(Http1SessionTest, InformsBeforeItResponds) {
  const HttpHeader link{"Link", "</a>"};
  script.on_begin = [&](Exchange& exchange) {
    exchange.inform(103, {{}, {&link, 1}});
    ok(exchange);
  };
  EXPECT_EQ(peer.send(get()), "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + std::string(kOk));
  EXPECT_EQ(peer.send("GET / HTTP/1.0\r\n\r\n"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
}

TEST_F(Http1SessionTest, BecomesATunnelWithCreditInBothDirections) {
  const std::vector<HttpHeader> fields = {{"Upgrade", "websocket"}, {"X", "1"}};
  script.on_begin = [&](Exchange& exchange) { exchange.upgrade({101, {}, {{}, fields}, {}}); };
  EXPECT_EQ(peer.send(get("/", "Connection: upgrade\r\nUpgrade: websocket\r\n") + "early"),
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX: 1\r\n\r\n");
  EXPECT_EQ(script.log, "GET / . +early... ");
  Exchange& exchange = *script.open[0];
  exchange.consumed(5);
  exchange.write({"hello", false});
  EXPECT_EQ(peer.take(), "hello");
  EXPECT_EQ(script.drained_bytes, 5u);
  peer.send(std::string(bounds::http_window_bytes + 1, 'x'));
  EXPECT_EQ(peer.pending.size(), 1u);
  exchange.consumed(bounds::http_window_bytes);
  peer.turn();
  EXPECT_TRUE(peer.pending.empty());
  exchange.write({"bye", true});
  EXPECT_EQ(peer.take(), "bye");
  EXPECT_TRUE(peer.output.half_close);
  EXPECT_FALSE(peer.session->finished()) << "the other direction is open";
  peer.session->end_of_input(peer.now);
  EXPECT_TRUE(script.log.ends_with("+x... +. ")) << script.log;
  EXPECT_TRUE(peer.session->finished());
  EXPECT_EQ(peer.shared.exchanges->open_count(), 0u);
}

TEST_F(Http1SessionTest, ATunnelEndsWhenBothSidesHaveEnded) {
  script.on_begin = [](Exchange& exchange) { exchange.upgrade({101, {}, {}, {}}); };
  peer.send(get("/", "Connection: upgrade\r\nUpgrade: x\r\n"));
  peer.session->end_of_input(peer.now);
  EXPECT_FALSE(peer.session->finished());
  script.open[0]->write({"late", true});
  EXPECT_EQ(peer.take(), "late");
  EXPECT_TRUE(peer.session->finished());
}

TEST_F(Http1SessionTest, ClosesWhenAnExchangeIsAborted) {
  script.overlap = true;
  peer.send(get("/1") + get("/2") + get("/3"));
  script.open[1]->abort();
  script.open[1]->respond({200, {}, {}, {}}, {"x", true});
  EXPECT_EQ(peer.take(), "");
  EXPECT_FALSE(peer.session->finished()) << "the first is answered before";
  ok(*script.open[0]);
  EXPECT_EQ(peer.take(), kOk);
  EXPECT_EQ(script.log, "GET /1 . GET /2 . GET /3 . aborted lost ");
  EXPECT_TRUE(peer.session->finished());
}

TEST_F(Http1SessionTest, EndsEverythingWhenTheConnectionIsLost) {
  script.overlap = true;
  peer.send(get("/1") + post("ab").substr(0, post("ab").size() - 1));
  script.on_ended = [](Exchange& exchange) {
    ok(exchange);
    EXPECT_EQ(exchange.ask(), nullptr);
    exchange.consumed(1);
  };
  peer.session->lost();
  EXPECT_EQ(script.log, "GET /1 . POST / a... lost lost ");
  EXPECT_EQ(peer.output.bytes, "");
  EXPECT_EQ(peer.shared.exchanges->open_count(), 0u);
}

TEST_F(Http1SessionTest, AnswersInThePlaceOfARequestThatBreaks) {
  constexpr std::string_view kBad =
      "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 75\r\nConnection: close\r\n\r\n"
      "{\"error\":\"bad_request\",\"message\":\"a chunk's size is not a hexadecimal number\"}\n";
  const std::string broken = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
  std::string expected(kBad);
  expected.replace(expected.find("75"), 2, std::to_string(expected.size() - expected.find("\r\n\r\n") - 4));
  EXPECT_EQ(peer.send(broken), expected);
  EXPECT_EQ(script.log, "POST / ... canceled ");
  EXPECT_TRUE(peer.lost);

  Script other;
  other.overlap = true;
  Http1Peer behind(other);
  EXPECT_EQ(behind.send(get() + broken), "");
  EXPECT_FALSE(behind.lost);
  ok(*other.open[0]);
  EXPECT_EQ(behind.take(), std::string(kOk) + expected);
  EXPECT_TRUE(behind.session->finished());
}

TEST_F(Http1SessionTest, CutsAResponseThatHasBegunWhenTheRequestBreaks) {
  script.on_begin = [](Exchange& exchange) { exchange.respond({200, {}, {}, {}}, {"a", false}); };
  peer.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
  EXPECT_EQ(script.log, "POST / ... aborted ");
  EXPECT_TRUE(peer.session->finished());
}

TEST_F(Http1SessionTest, GivesThirtySecondsForEveryWindowOfContent) {
  script.on_body = [](Exchange& exchange) { exchange.consumed(1000); };
  peer.now.time = Time{1000s};
  peer.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n");
  EXPECT_EQ(peer.session->deadline(), Time{1030s});
  const std::string piece(1000, 'x');
  for (int i = 1; i <= 65; ++i) {
    peer.now.time = Time{1000s + i * 100ms};
    peer.send(piece);
    EXPECT_EQ(peer.session->deadline(), Time{1030s});
  }
  peer.now.time = Time{1007s};
  peer.send(piece);
  EXPECT_EQ(peer.session->deadline(), Time{1037s});
  peer.session->expire(Time{1036s});
  EXPECT_EQ(peer.take(), "");
  peer.session->expire(Time{1037s});
  EXPECT_TRUE(peer.take().starts_with("HTTP/1.1 408 Request Timeout\r\n"));
  EXPECT_TRUE(script.log.ends_with("canceled "));
  EXPECT_TRUE(peer.session->finished());
}

TEST_F(Http1SessionTest, ABodyHasNoDeadlineBetweenTheBeginningOfTheResponseAndItsEnd) {
  script.on_begin = [](Exchange& exchange) { exchange.respond({200, {}, {}, 4}, {"ab", false}); };
  peer.now.time = Time{1000s};
  peer.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(peer.session->deadline(), Time::max());
  peer.now.time = Time{2000s};
  script.open[0]->write({"cd", true});
  EXPECT_EQ(peer.take(), "cd");
  EXPECT_EQ(peer.session->deadline(), Time{2030s}) << "the rest is dropped, if it comes";
  script.on_begin = ok;
  EXPECT_TRUE(peer.send("defghij" + get()).ends_with("ok"));
}

TEST_F(Http1SessionTest, TellsAnExchangeThatItsTimeHasCome) {
  script.overlap = true;
  script.on_begin = [&](Exchange& exchange) { exchange.expire_at(Time{(10 - script.open.size()) * 1s}); };
  script.on_expired = ok;
  peer.send(get() + get());
  EXPECT_EQ(peer.session->deadline(), Time{8s});
  peer.session->expire(Time{8s});
  EXPECT_EQ(script.log, "GET / . GET / . expired ");
  EXPECT_EQ(peer.session->deadline(), Time{9s});
  EXPECT_EQ(peer.take(), "");
  peer.session->expire(Time{9s});
  EXPECT_EQ(peer.take(), std::string(kOk) + std::string(kOk));
  EXPECT_EQ(peer.session->deadline(), Time::max());
}

TEST_F(Http1SessionTest, AnswersTheEndOfInputInTheMiddleOfARequest) {
  for (const std::string& part : {std::string("GET / HT"), post("abc").substr(0, post("abc").size() - 1)}) {
    Script other;
    Http1Peer cut(other);
    cut.send(part);
    cut.session->end_of_input(cut.now);
    EXPECT_TRUE(cut.take().ends_with("the connection ended in the middle of the request\"}\n")) << part;
    EXPECT_TRUE(cut.session->finished());
  }
  peer.send(get());
  peer.session->end_of_input(peer.now);
  EXPECT_FALSE(peer.session->finished()) << "a client may half-close and wait for the response";
  ok(*script.open[0]);
  EXPECT_EQ(peer.take(), kOk);
  EXPECT_TRUE(peer.session->finished());
}

TEST_F(Http1SessionTest, DrainsByAnsweringWhatHasBegun) {
  script.overlap = true;
  script.on_draining = [&](Exchange& exchange) {
    if (&exchange == script.open[0]) exchange.write({"bye", true});
  };
  peer.send(get("/events") + get("/2"));
  script.open[0]->respond({200, {}, {}, {}}, {});
  peer.take();
  peer.session->drain(Time{});
  EXPECT_EQ(peer.take(), "3\r\nbye\r\n0\r\n\r\n");
  EXPECT_FALSE(peer.session->finished());
  ok(*script.open[1]);
  EXPECT_EQ(peer.take(), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
  EXPECT_TRUE(peer.session->finished());
  EXPECT_EQ(script.log, "GET /events . GET /2 . draining draining ");
}

TEST_F(Http1SessionTest, AsksLaterWhenThereIsNoRoom) {
  script.on_begin = [](Exchange& exchange) {
    while (exchange.ask() != nullptr) {
    }
  };
  script.on_can_ask = [](Exchange& exchange) { EXPECT_NE(exchange.ask(), nullptr); };
  peer.send(get());
  EXPECT_EQ(peer.asked.size(), bounds::queries_per_turn_max + 1);
  EXPECT_EQ(script.log, "GET / . can_ask ");
  script.on_answer = [](Exchange& exchange) { exchange.respond({200, {}, {}, {}}, {"ok", true}); };
  peer.reply(3, Answer{});
  EXPECT_EQ(peer.take(), kOk);
  for (std::size_t i = 4; i < peer.asked.size(); ++i) peer.reply(i, Answer{});
  EXPECT_EQ(script.log, "GET / . can_ask answered ") << "the other answers come too late";
}

TEST_F(Http1SessionTest, RefusesRequestsThatFindNoExchangeWithA503) {
  HttpShared full({}, {}, 1);
  Queries queries;
  FakeOutput first_output;
  Http1Session first(full, script, NewConnection{first_output, {}, {}, {}, false});
  ASSERT_TRUE(first.receive(get(), queries, {}));
  FakeOutput output;
  Http1Session second(full, script, NewConnection{output, {}, {}, {}, false});
  EXPECT_FALSE(second.receive(get(), queries, {})) << "the connection closes after the response";
  EXPECT_TRUE(output.bytes.starts_with("HTTP/1.1 503 Service Unavailable\r\n")) << output.bytes;
  EXPECT_NE(output.bytes.find("\r\nRetry-After: 1\r\n"), std::string::npos) << output.bytes;
  EXPECT_NE(output.bytes.find("\r\nConnection: close\r\n"), std::string::npos) << output.bytes;
  EXPECT_TRUE(output.bytes.ends_with("the server has too many open requests\"}\n")) << output.bytes;
  EXPECT_TRUE(second.finished());
  EXPECT_EQ(full.exchanges->open_count(), 1u);
  first.lost();
}

TEST_F(Http1SessionTest, RespondsFromAnotherTurn) {
  ExchangeRef ref;
  script.on_begin = [&](Exchange& exchange) { ref = exchange.ref(); };
  peer.send(get());
  ref.run(ok);
  peer.run_posted();
  EXPECT_EQ(peer.take(), kOk);
  ref.run([](Exchange&) { FAIL() << "it has ended"; });
  peer.run_posted();
}

}  // namespace
}  // namespace weir::http::http1_session_test
