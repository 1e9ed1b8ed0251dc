#include "weir/wire/http2.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/wire/http2_frames_test.h"

namespace weir::http2_test {
namespace {

using namespace http2_frames;

constexpr std::string_view kGetHead = "head 1 :method=GET :scheme=https :authority=h :path=/";
constexpr Http2Request kGet{"GET", "https", "h", "/", {}, false};
constexpr Http2Request kPost{"POST", "https", "h", "/", {}, true};

// A server that has seen the client's opening, and says nothing of it.
std::unique_ptr<End> opened() {
  auto server = std::make_unique<End>();
  server->receive(opening());
  server->take_out();
  return server;
}

// Both ends, joined by strings: what one writes the other gets, `piece` bytes at a time.
struct Pair {
  explicit Pair(std::size_t each = bounds::http2_receive_bytes_max) : piece(each) {}

  // Until neither has anything to say.
  void run() {
    for (;;) {
      client.fill();
      server.fill();
      const std::string to_server = client.take_out();
      const std::string to_client = server.take_out();
      if (to_server.empty() && to_client.empty()) return;
      EXPECT_TRUE(server.receive(to_server, piece));
      EXPECT_TRUE(client.receive(to_client, piece));
    }
  }

  std::size_t piece;
  End client{Http2::Role::client};
  End server{Http2::Role::server};
};

TEST(Http2, AnnouncesItsSettings) {
  End server;
  server.fill();
  const auto sent = frames(server.take_out());
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].payload, number(2, 2) + number(0, 4) + number(4, 2) + number(64 << 10, 4) + number(6, 2) +
                                 number(64 << 10, 4) + number(1, 2) + number(4096, 4) + number(5, 2) +
                                 number(16 << 10, 4) + number(9, 2) + number(1, 4) + number(3, 2) + number(128, 4));
  EXPECT_EQ(words(sent[1]), "WINDOW_UPDATE 0 " + std::to_string((8 << 20) - 65535));
}

TEST(Http2, SendsARequestAndItsResponseHoweverTheyAreSplit) {
  for (std::size_t piece = 1; piece <= 40; ++piece) {
    SCOPED_TRACE(piece);
    Pair pair(piece);
    pair.client.bodies.put(1, "a question", true);
    const HttpHeader agent{"User-Agent", "test"};
    Http2Request post = kPost;
    post.fields = {"X-Line: 1\r\nConnection: close\r\n", {&agent, 1}};
    ASSERT_EQ(*pair.client.http2.request(post), 1);
    pair.run();
    EXPECT_EQ(pair.server.take_record(),
              "head 1 :method=POST :scheme=https :authority=h :path=/ x-line=1 user-agent=test, data 1 a question, "
              "end 1");
    pair.server.bodies.put(1, "an answer", true);
    pair.server.http2.respond(1, 200, {"Content-Type: text/plain\r\nRateLimit: 5\r\n", {}}, true);
    pair.run();
    EXPECT_EQ(pair.client.take_record(),
              "head 1 :status=200 content-type=text/plain ratelimit=5, data 1 an answer, end 1, closed 1");
    EXPECT_EQ(pair.server.take_record(), "closed 1");
    EXPECT_EQ(pair.client.http2.streams() + pair.server.http2.streams(), 0u);
  }
}

TEST(Http2, ReadsTheSameWhereverTheInputIsCut) {
  const std::string bytes = opening() + headers(1, request({}, "POST"), end_headers) + data(1, "hello") + ping() +
                            headers(1, {{"sum", "1"}}) + frame(type_headers, end_stream, 3, "") +
                            continuation(3, block(request())) + continuation(3, "", end_headers) + rst_stream(3, 8);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    End server;
    EXPECT_TRUE(server.receive(bytes.substr(0, cut)) || cut == 0);
    EXPECT_TRUE(server.receive(bytes.substr(cut)) || cut == bytes.size());
    EXPECT_EQ(server.take_record(),
              "head 1 :method=POST :scheme=https :authority=h :path=/, data 1 hello, trailers 1 sum=1, end 1, head 3 "
              ":method=GET :scheme=https :authority=h :path=/, end 3, reset 3 CANCEL")
        << cut;
  }
}

TEST(Http2, SendsTrailersBehindABodyOrWithoutOne) {
  for (const std::string_view body : {"", "message"}) {
    Pair pair;
    ASSERT_TRUE(pair.client.http2.request(kGet));
    pair.run();
    const HttpHeader status{"Grpc-Status", "0"};
    pair.server.bodies.put(1, body, true);
    pair.server.http2.respond(1, 200, {}, true);
    pair.server.http2.trailers(1, {"X: y\r\n", {&status, 1}});
    pair.run();
    const std::string data = body.empty() ? "" : ", data 1 message";
    EXPECT_EQ(pair.client.take_record(),
              "head 1 :status=200" + data + ", trailers 1 x=y grpc-status=0, end 1, closed 1");
  }
}

TEST(Http2, SendsInterimResponses) {
  Pair pair;
  ASSERT_TRUE(pair.client.http2.request(kGet));
  pair.run();
  pair.server.http2.respond(1, 103, {"Link: </a>\r\n", {}}, false);
  pair.server.http2.respond(1, 204, {}, false);
  pair.run();
  EXPECT_EQ(pair.client.take_record(), "head 1 :status=103 link=</a>, head 1 :status=204, end 1, closed 1");
}

TEST(Http2, WaitsForTheSourceAndGoesOnWhenItIsWoken) {
  Pair pair;
  ASSERT_TRUE(pair.client.http2.request(kGet));
  pair.run();
  pair.server.http2.respond(1, 200, {}, true);
  pair.run();
  EXPECT_EQ(pair.client.take_record(), "head 1 :status=200");
  pair.server.bodies.put(1, "one", false);
  pair.server.http2.wake(1);
  pair.run();
  pair.server.bodies.put(1, "two", true);
  pair.server.http2.wake(1);
  pair.run();
  EXPECT_EQ(pair.client.take_record(), "data 1 onetwo, end 1, closed 1");
}

TEST(Http2, ReportsAnAnswerBeforeTheBodyWasReceivedAsComplete) {
  const auto server = opened();
  server->receive(headers(1, request({}, "POST"), end_headers));
  server->bodies.put(1, "too much", true);
  server->http2.respond(1, 413, {}, true);
  server->fill();
  EXPECT_EQ(server->take_frames(), "HEADERS 1, DATA 1 8 end, RST_STREAM 1 NO_ERROR");
  EXPECT_TRUE(server->take_record().ends_with(", closed 1"));

  Pair pair;
  ASSERT_TRUE(pair.client.http2.request(kPost));
  pair.run();
  pair.server.http2.respond(1, 413, {}, false);
  pair.run();
  EXPECT_EQ(pair.client.take_record(), "head 1 :status=413, end 1, closed 1");
}

TEST(Http2, ReopensWindowsOnlyForWhatWasConsumed) {
  const auto server = opened();
  const std::string piece(16384, 'x');
  server->receive(headers(1, request({}, "POST"), end_headers) + repeat(data(1, piece), 4));
  EXPECT_EQ(server->take_frames(), "");
  EXPECT_EQ(server->delivered[1], bounds::http2_stream_window_bytes);
  server->http2.consumed(1, (bounds::http2_stream_window_bytes / 2) - 1);
  server->fill();
  EXPECT_EQ(server->take_frames(), "");
  server->http2.consumed(1, 1);
  server->fill();
  EXPECT_EQ(server->take_frames(), "WINDOW_UPDATE 1 32768");
}

TEST(Http2, RefusesABodyBeyondItsWindow) {
  const auto server = opened();
  server->receive(headers(1, request({}, "POST"), end_headers) + repeat(data(1, std::string(16384, 'x')), 4));
  server->take_record();
  server->receive(data(1, "x"));  // RFC 9113 §6.9.1: a stream or a connection error; nghttp2 chooses the former
  EXPECT_EQ(server->take_frames(), "RST_STREAM 1 FLOW_CONTROL_ERROR");
  EXPECT_EQ(server->take_record(), "reset 1 FLOW_CONTROL_ERROR");
  EXPECT_EQ(server->delivered[1], bounds::http2_stream_window_bytes);
}

TEST(Http2, ReturnsTheConnectionsWindowWhenStreamsEndUnread) {
  const auto server = opened();
  std::size_t returned = 0;
  const std::size_t streams = 10'000;
  const std::size_t each = 2048;
  for (std::size_t i = 0; i < streams; ++i) {
    const auto stream = static_cast<std::uint32_t>(2 * i + 1);
    server->now += std::chrono::milliseconds{50};
    server->receive(headers(stream, request({}, "POST"), end_headers) + data(stream, std::string(each, 'x')) +
                    rst_stream(stream, 8));
    for (const Frame& frame : frames(server->take_out())) {
      if (frame.type == type_window_update && frame.stream == 0) returned += frame.number_at(0, 4);
    }
  }
  EXPECT_GT(returned + bounds::http2_connection_window_bytes / 2, streams * each);
  EXPECT_LE(returned, streams * each);
}

TEST(Http2, SendsNoMoreThanThePeersWindow) {
  const auto server = opened();
  server->receive(headers(1, request()) + headers(3, request()));
  server->bodies.put(1, std::string(100'000, 'x'), true);
  server->http2.respond(1, 200, {}, true);
  server->fill();
  EXPECT_EQ(server->take_frames(), "HEADERS 1, DATA 1 16384, DATA 1 16384, DATA 1 16384, DATA 1 16383");
  server->fill();
  EXPECT_EQ(server->take_frames(), "");
  server->receive(window_update(1, 10));  // the connection's is still closed
  EXPECT_EQ(server->take_frames(), "");
  server->http2.respond(3, 204, {}, false);  // a stalled stream holds up nobody else
  server->fill();
  EXPECT_EQ(server->take_frames(), "HEADERS 3 end");
  server->receive(window_update(0, 100'000));
  EXPECT_EQ(server->take_frames(), "DATA 1 10");
}

TEST(Http2, StopsWritingAtTheBoundAndGoesOnLater) {
  const auto server = opened();
  server->receive(headers(1, request()) + window_update(0, 1u << 20) + window_update(1, 1u << 20));
  server->take_out();
  server->bodies.put(1, std::string(200'000, 'x'), true);
  server->http2.respond(1, 200, {}, true);
  std::size_t total = 0;
  for (int i = 0; i < 100 && server->http2.streams() > 0; ++i) {
    server->fill(20'000);
    EXPECT_LT(server->out.size(), 20'000 + kHttp2FrameHeaderBytes + 16384);
    for (const Frame& frame : frames(server->take_out())) total += frame.type == type_data ? frame.payload.size() : 0;
  }
  EXPECT_EQ(total, 200'000u);
  EXPECT_TRUE(server->take_record().ends_with(", closed 1"));
}

TEST(Http2, LetsStreamsTakeTurns) {
  const auto server = opened();
  server->receive(window_update(0, 1u << 20) + headers(1, request()) + headers(3, request({{"priority", "u=0"}})));
  for (const std::int32_t stream : {1, 3}) {
    server->bodies.put(stream, std::string(40'000, 'x'), true);
    server->http2.respond(stream, 200, {}, true);
  }
  server->take_out();
  server->fill();
  EXPECT_EQ(server->take_frames(),
            "HEADERS 1, HEADERS 3, DATA 1 16384, DATA 3 16384, DATA 1 16384, DATA 3 16384, DATA 1 7232 end, "
            "DATA 3 7232 end");
}

TEST(Http2, Answers431ForAHeadThatIsTooLargeAndGoesOn) {
  // RFC 9113 §6.5.2: name, value and 32 for each field. The pseudo-fields are 177 and a pair of the rest 33 + value.
  const auto record = [](const Fields& fields) {
    const auto server = opened();
    const std::string all = block(fields);
    std::string bytes = frame(type_headers, end_stream, 1, all.substr(0, 16384));
    for (std::size_t at = 16384; at < all.size(); at += 16384) bytes += continuation(1, all.substr(at, 16384));
    server->receive(bytes + continuation(1, "", end_headers) + headers(3, request()));
    const std::string events = server->take_record();
    if (events.starts_with("refused")) {
      server->http2.respond(1, 431, {}, false);
      server->fill();
      EXPECT_EQ(server->take_frames(), "HEADERS 1 end");
    }
    return events.substr(0, events.find(' ', events.find(' ') + 1)) + events.substr(events.rfind(", head"));
  };
  const std::string next = ", head 3 :method=GET :scheme=https :authority=h :path=/, end 3";
  std::size_t pseudo = 0;
  for (const auto& [name, value] : request()) pseudo += name.size() + value.size() + 32;
  const std::size_t room = bounds::http_head_bytes_max - pseudo - 33 - 33;
  const std::string half(room / 2, 'x');
  const std::string rest(room - half.size(), 'y');
  EXPECT_EQ(record(request({{"a", half}, {"b", rest}})), "head 1" + next);
  EXPECT_EQ(record(request({{"a", half}, {"b", rest + "y"}})), "refused 1" + next);

  Fields many;
  for (std::size_t i = 0; i < bounds::http_headers_max; ++i) many.push_back({"x", "y"});
  EXPECT_EQ(record(request(many)), "head 1" + next);
  many.push_back({"x", "y"});
  EXPECT_EQ(record(request(many)), "refused 1" + next);
}

TEST(Http2, ResetsAStreamWhoseFieldsAreTooManyToLookAt) {
  std::size_t pseudo = 0;
  for (const auto& [name, value] : request()) pseudo += name.size() + value.size() + 32;
  // The table holds "x" with 3,967 bytes: 4,000 in the list each time it is named.
  const std::string named = "\x40\x01x" + hpack_string(std::string(3967, 'v')) + std::string(64, '\xBE');
  const std::size_t rest = bounds::http2_list_bytes_max - pseudo - 65 * 4000 - 33;
  const auto answer = [&](std::size_t last) {
    const auto server = opened();
    server->receive(frame(type_headers, 5, 1, block(request()) + named + block({{"y", std::string(last, 'z')}})) +
                    headers(3, request()));
    return server->take_record().substr(0, 9) + " | " + server->take_frames();
  };
  EXPECT_EQ(answer(rest), "refused 1 | ");
  EXPECT_EQ(answer(rest + 1), "head 3 :m | RST_STREAM 1 INTERNAL_ERROR");
}

TEST(Http2, CountsJoinedCookiesAsOneField) {
  Fields crumbs;
  for (int i = 0; i < 300; ++i) crumbs.push_back({"cookie", "a=" + std::to_string(i)});
  const auto server = opened();
  server->receive(headers(1, request(crumbs)));
  EXPECT_TRUE(server->take_record().starts_with(std::string(kGetHead) + " cookie=a=0; a=1; a=2; a=3"));
}

TEST(Http2, DropsTheBodyOfARefusedRequest) {
  const auto server = opened();
  server->receive(headers(1, {{":method", "CONNECT"}, {":authority", "h:1"}}, end_headers) + data(1, "hello"));
  EXPECT_EQ(server->take_record(), "refused 1 405");
  server->http2.respond(1, 405, {"Allow: GET\r\n", {}}, false);
  server->fill();
  EXPECT_EQ(server->take_record(), "closed 1");
  EXPECT_EQ(server->take_frames(), "HEADERS 1 end, RST_STREAM 1 NO_ERROR");
}

TEST(Http2, Answers431WhenOneReadDecodesTooMuch) {
  // One field of 4,000 bytes goes to the table; each later block names it 15 times: 60 KB of fields for 16 bytes.
  const auto server = opened();
  const std::string big = "\x40\x01x" + hpack_string(std::string(4000, 'v'));
  server->receive(frame(type_headers, 5, 1, block(request()) + big));
  server->take_record();
  std::string bytes;
  for (std::uint32_t stream = 3; stream < 3 + 2 * 40; stream += 2)
    bytes += frame(type_headers, 5, stream, block(request()) + std::string(15, '\xBE'));
  ASSERT_LE(bytes.size(), bounds::http2_receive_bytes_max);
  std::vector<Http2Event> events;
  ASSERT_TRUE(server->http2.receive(bytes, {}, events));
  std::size_t heads = 0;
  std::size_t refused = 0;
  std::size_t kept = 0;
  for (const Http2Event& event : events) {
    heads += event.kind == Http2Event::Kind::head;
    refused += event.kind == Http2Event::Kind::refused && event.code == 431;
    for (const HttpHeader& field : event.fields) kept += field.value.size();
  }
  EXPECT_EQ(heads + refused, 40u);
  EXPECT_GT(heads, 10u);
  EXPECT_GT(refused, 10u);
  EXPECT_LE(kept, bounds::http2_fields_bytes_max);
}

TEST(Http2, RejectsResponseFieldsThatAreTooLarge) {
  Pair pair;
  ASSERT_TRUE(pair.client.http2.request(kGet));
  pair.run();
  const std::string large = "X: " + std::string(40'000, 'x') + "\r\n";
  pair.server.http2.respond(1, 200, {large + large, {}}, false);
  pair.run();
  EXPECT_EQ(pair.client.take_record(), "reset 1 PROTOCOL_ERROR");
}

TEST(Http2, SendsAHeadOfUpTo256KiB) {
  // As nghttp2 estimates it: 12 for the table, 5 for a priority, and 12 for each field besides its name and value.
  const std::size_t room = bounds::http2_sent_block_bytes_max - 12 - 5 - 2 * 12 - std::string(":status200x").size();
  const auto sent = [](std::size_t value_bytes) {
    const auto server = opened();
    server->receive(headers(1, request()));
    server->take_record();
    const std::string line = "X: " + std::string(value_bytes, '~') + "\r\n";  // longer in Huffman's code: sent as it is
    server->http2.respond(1, 200, {line, {}}, false);
    server->fill();
    return server->take_frames().substr(0, 29) + " | " + server->take_record();
  };
  EXPECT_EQ(sent(room), "HEADERS 1 end, CONTINUATION 1 | closed 1");
  EXPECT_EQ(sent(room + 1), "RST_STREAM 1 INTERNAL_ERROR | reset 1 INTERNAL_ERROR");
}

TEST(Http2, RefusesStreamsBeyondTheBoundUntilTheClientKnowsIt) {
  End server;
  std::string bytes = std::string(kPreface) + settings();
  for (std::uint32_t i = 0; i <= bounds::http2_streams_max; ++i) bytes += headers(2 * i + 1, request());
  server.receive(bytes);
  EXPECT_EQ(server.http2.streams(), bounds::http2_streams_max);
  EXPECT_TRUE(server.take_frames().ends_with("RST_STREAM 257 REFUSED_STREAM"));
  server.receive(settings_ack() + headers(259, request()));  // RFC 9113 §5.1.2: now it is a connection error
  EXPECT_EQ(server.take_frames(), "GOAWAY PROTOCOL_ERROR");
}

TEST(Http2, ClientKeepsToThePeersLimits) {
  End client(Http2::Role::client);
  client.receive(settings({{3, 2}, {6, 200}}));
  EXPECT_EQ(client.http2.streams_max(), 2u);
  const auto with = [](const std::string& line) {
    Http2Request get = kGet;
    get.fields.lines = line;
    return get;
  };
  std::size_t pseudo = 0;
  for (const auto& [name, value] : request()) pseudo += name.size() + value.size() + 32;
  const std::string fits(200 - pseudo - 33, 'x');
  EXPECT_EQ(client.http2.request(with("a: " + fits + "x\r\n")).error().fault, Fault::too_large);
  EXPECT_TRUE(client.http2.request(with("a: " + fits + "\r\n")));
  EXPECT_TRUE(client.http2.request(kGet));
  EXPECT_EQ(client.http2.request(kGet).error().fault, Fault::overloaded);
}

TEST(Http2, ClientAssumes100StreamsUntilItKnows) {
  EXPECT_EQ(End(Http2::Role::client).http2.streams_max(), 100u);
}

TEST(Http2, ClientLearnsWhichRequestsWereNotProcessed) {
  End client(Http2::Role::client);
  client.receive(settings());
  ASSERT_TRUE(client.http2.request(kGet));
  ASSERT_TRUE(client.http2.request(kGet));
  client.fill();
  client.receive(goaway(1, 0));
  EXPECT_EQ(client.take_record(), "goaway 1 NO_ERROR, reset 3 REFUSED_STREAM");
  EXPECT_EQ(client.http2.request(kGet).error().fault, Fault::unavailable);
  client.receive(frame(type_headers, 5, 1, "\x88"));
  EXPECT_EQ(client.take_record(), "head 1 :status=200, end 1, closed 1");
  EXPECT_TRUE(client.http2.finished());
}

TEST(Http2, ClientSendsNothingForARequestThatIsCancelledBeforeItLeft) {
  End client(Http2::Role::client);
  client.fill();
  client.take_out();
  ASSERT_TRUE(client.http2.request(kGet));
  client.http2.reset(1, Http2Code::cancel);
  client.fill();
  EXPECT_EQ(client.take_frames(), "");
  EXPECT_EQ(client.take_record(), "reset 1 CANCEL");
  EXPECT_EQ(client.http2.streams(), 0u);
}

TEST(Http2, ClientRefusesPushedStreams) {
  End client(Http2::Role::client);
  ASSERT_TRUE(client.http2.request(kGet));
  client.fill();
  client.take_out();
  const std::string push = frame(type_push_promise, end_headers, 1, number(2, 4) + block(request()));
  client.receive(settings() + push + headers(2, {{":status", "200"}}, end_headers) + data(2, "x", end_stream));
  EXPECT_EQ(client.take_frames(), "RST_STREAM 2 CANCEL");
  EXPECT_EQ(client.take_record(), "");
  client.receive(settings_ack() + frame(type_push_promise, end_headers, 1, number(4, 4) + block(request())));
  EXPECT_EQ(client.take_frames(), "GOAWAY PROTOCOL_ERROR");
}

TEST(Http2, ResetsBothWays) {
  Pair pair;
  ASSERT_TRUE(pair.client.http2.request(kPost));
  ASSERT_TRUE(pair.client.http2.request(kPost));
  pair.run();
  pair.server.take_record();
  pair.client.http2.reset(1, Http2Code::cancel);
  pair.server.http2.reset(3, Http2Code::internal_error);
  pair.run();
  EXPECT_EQ(pair.client.take_record(), "reset 1 CANCEL, reset 3 INTERNAL_ERROR");
  EXPECT_EQ(pair.server.take_record(), "reset 3 INTERNAL_ERROR, reset 1 CANCEL");
}

TEST(Http2, IgnoresCallsForStreamsThatHaveEnded) {
  const auto server = opened();
  server->receive(headers(1, request({}, "POST"), end_headers) + data(1, "x") + rst_stream(1, 8));
  server->take_out();
  server->http2.respond(1, 200, {}, true);
  server->http2.trailers(1, {"a: b\r\n", {}});
  server->http2.wake(1);
  server->http2.consumed(1, 1);
  server->http2.reset(1, Http2Code::cancel);
  server->http2.waits_since(1, {});
  server->http2.waited_until(1, {});
  server->fill();
  EXPECT_EQ(server->take_frames(), "");
}

TEST(Http2, GoesAwayInTwoSteps) {
  Pair pair;
  ASSERT_TRUE(pair.client.http2.request(kGet));
  pair.run();
  pair.server.http2.announce_shutdown();
  pair.server.fill();
  const auto sent = frames(pair.server.out);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].number_at(0, 4), 0x7FFFFFFFu);
  EXPECT_EQ(words(sent[1]), "PING");
  ASSERT_TRUE(pair.client.http2.request(kGet));  // on its way when the announcement arrives
  pair.run();
  EXPECT_EQ(pair.server.take_record(), std::string(kGetHead) +
                                           ", end 1, head 3 :method=GET :scheme=https :authority=h "
                                           ":path=/, end 3, pong");
  pair.server.http2.go_away();
  pair.run();
  EXPECT_EQ(pair.client.take_record(), "goaway 2147483647 NO_ERROR, goaway 3 NO_ERROR");
  EXPECT_FALSE(pair.server.http2.finished());
  pair.server.http2.respond(1, 204, {}, false);
  pair.server.http2.respond(3, 204, {}, false);
  pair.run();
  EXPECT_TRUE(pair.server.http2.finished());
  EXPECT_TRUE(pair.client.http2.finished());
}

TEST(Http2, ReadsUpTo16KiBAtATime) {
  const auto server = opened();
  std::vector<Http2Event> events;
  EXPECT_TRUE(server->http2.receive(frame(0xFA, 0, 0, std::string(16384 - 9, 'x')), {}, events));
  EXPECT_DEATH(static_cast<void>(server->http2.receive(std::string(16385, 'x'), {}, events)),
               "http2_receive_bytes_max");
}

TEST(Http2, AnIdleConnectionIsFinishedByTheSecondGoaway) {
  const auto server = opened();
  server->http2.announce_shutdown();
  server->fill();
  EXPECT_FALSE(server->http2.finished());
  server->http2.go_away();
  server->fill();
  EXPECT_TRUE(server->http2.finished());
}

TEST(Http2, FreesAllMemoryOfTheLibrary) {
  Http2Shared shared;
  Bodies bodies;
  EXPECT_EQ(shared.library_bytes(), 0u);
  {
    Http2 server(Http2::Role::server, shared, bodies);
    const std::size_t fresh = shared.library_bytes();
    EXPECT_GT(fresh, 0u);
    EXPECT_LT(fresh, 32u << 10);
    std::string out;
    std::vector<Http2Event> events;
    const auto serve = [&](std::uint32_t first, std::uint32_t last) {
      for (std::uint32_t stream = first; stream < last; stream += 2) {
        const std::string bytes = (stream == 1 ? opening() : "") + headers(stream, request());
        ASSERT_TRUE(server.receive(bytes, {}, events));
        server.respond(static_cast<std::int32_t>(stream), 204, {}, false);
        server.fill(out, 1u << 20, events);
        out.clear();
        events.clear();
      }
    };
    serve(1, 21);
    const std::size_t used = shared.library_bytes();
    serve(21, 5'001);
    EXPECT_EQ(shared.library_bytes(), used);
    EXPECT_EQ(server.streams(), 0u);
  }
  EXPECT_EQ(shared.library_bytes(), 0u);
}

}  // namespace
}  // namespace weir::http2_test
