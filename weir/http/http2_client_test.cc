#include "weir/http/http2_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/client_parts_test.h"
#include "weir/wire/http2_frames_test.h"

namespace weir::http2_client_test {
namespace {

using namespace http;
namespace frames = http2_frames;

constexpr Time kStart = Time{std::chrono::seconds{100}};

struct OpenCall {
  TellingOwner owner;
  Call call;
  CallState* state = nullptr;
};

CallHead head_of(std::string_view method = "GET") {
  CallHead head;
  head.method = method;
  head.scheme = "https";
  head.authority = "example.com";
  return head;
}

// A client whose server is the test: it writes frames by hand.
struct Connected {
  CallStates calls;
  ClientShared shared;
  TextOutput out;
  Http2Client client{out, shared};
  Time now = kStart;
  std::vector<std::unique_ptr<OpenCall>> open;

  Connected() { written(); }

  OpenCall& begin(const CallHead& head = head_of(), BodyPart first = {{}, true, {}}) {
    open.push_back(std::make_unique<OpenCall>());
    OpenCall& opened = *open.back();
    opened.state = &calls.take(head, first, opened.owner, {}, now);
    opened.call = opened.state->handle();
    client.begin(*opened.state, now);
    return opened;
  }
  std::string written() {
    client.fill(out.unsent(), now);
    std::string text = out.take();
    client.sent(out.taken, now);
    return text;
  }
  void receive(std::string_view bytes) { EXPECT_EQ(client.receive(bytes, now), bytes.size()); }
  void settings(const std::string& payload = "") {
    receive(frames::frame(frames::type_settings, 0, 0, payload) +
            frames::frame(frames::type_settings, frames::ack, 0, ""));
    written();
  }
};

std::string response(std::uint32_t stream, const frames::Fields& more = {}, unsigned flags = frames::end_headers,
                     std::string_view status = "200") {
  frames::Fields fields = {{":status", std::string(status)}};
  fields.insert(fields.end(), more.begin(), more.end());
  return frames::headers(stream, fields, flags);
}
std::string data(std::uint32_t stream, std::string_view bytes, bool last = false) {
  return frames::frame(frames::type_data, last ? frames::end_stream : 0, stream, bytes);
}
std::string rst(std::uint32_t stream, Http2Code code) {
  return frames::frame(frames::type_rst_stream, 0, stream, frames::number(static_cast<std::uint32_t>(code), 4));
}
std::string goaway(std::uint32_t last, Http2Code code = Http2Code::no_error) {
  return frames::frame(frames::type_goaway, 0, 0,
                       frames::number(last, 4) + frames::number(static_cast<std::uint32_t>(code), 4));
}
constexpr unsigned kEnd = frames::end_headers | frames::end_stream;

TEST(Http2Client, PassesAResponseOnInOnePart) {
  Connected server;
  OpenCall& call = server.begin();
  EXPECT_FALSE(server.written().empty());
  server.settings();
  server.receive(response(1, {{"a", "b"}, {"content-length", "5"}}) + data(1, "hello", true));
  EXPECT_EQ(call.owner.take(), "head 200 a=b content-length=5\nlast hello\n");
  EXPECT_EQ(call.owner.ends, 1);
  EXPECT_FALSE(call.call);
  EXPECT_TRUE(server.calls.live().empty());
}

TEST(Http2Client, PassesInterimResponsesAndTrailersOn) {
  Connected server;
  OpenCall& call = server.begin();
  server.written();
  server.settings();
  server.receive(response(1, {}, frames::end_headers, "103") + response(1));
  EXPECT_EQ(call.owner.take(), "informed 103\nhead 200\n");
  server.receive(data(1, "ab"));
  EXPECT_EQ(call.owner.take(), "body ab\n");
  server.receive(data(1, "cd") + frames::headers(1, {{"sum", "1"}}, kEnd));
  EXPECT_EQ(call.owner.take(), "last cd\ntrailer sum=1\n");
}

TEST(Http2Client, GivesTheSameEventsHoweverTheBytesAreSplit) {
  const std::string bytes = frames::frame(frames::type_settings, 0, 0, "") +
                            response(1, {}, frames::end_headers, "100") + response(1, {{"a", "b"}}) + data(1, "hello") +
                            data(1, " world") + frames::headers(1, {{"sum", "1"}}, kEnd);
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    Connected server;
    OpenCall& call = server.begin();
    call.owner.joins = true;
    server.written();
    for (std::size_t at = 0; at < bytes.size(); at += piece) server.receive(std::string_view(bytes).substr(at, piece));
    EXPECT_EQ(call.owner.take(), "informed 100\nhead 200 a=b\nlast hello world\ntrailer sum=1\n") << piece;
  }
}

TEST(Http2Client, CarriesManyCallsAtOnce) {
  Connected server;
  server.settings();
  std::vector<OpenCall*> opened;
  for (int i = 0; i < 5; ++i) opened.push_back(&server.begin());
  server.written();
  for (std::uint32_t stream = 9; stream >= 1 && stream <= 9; stream -= 2)
    server.receive(response(stream) + data(stream, std::to_string(stream), true));
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(opened[static_cast<std::size_t>(i)]->owner.take(), "head 200\nlast " + std::to_string(2 * i + 1) + "\n");
}

TEST(Http2Client, AssumesAHundredStreamsUntilItKnowsTheSettings) {
  Connected server;
  for (std::size_t i = 0; i < bounds::http2_streams_before_settings; ++i) {
    ASSERT_TRUE(server.client.can_begin());
    server.begin();
  }
  EXPECT_FALSE(server.client.can_begin());
  server.written();
  server.settings();  // no limit: ours
  std::size_t more = 0;
  for (; server.client.can_begin(); ++more) server.begin();
  EXPECT_EQ(more, bounds::http2_streams_max - bounds::http2_streams_before_settings);
}

TEST(Http2Client, KeepsToTheServersNumberOfStreams) {
  Connected server;
  server.settings(frames::number(3, 2) + frames::number(2, 4));  // MAX_CONCURRENT_STREAMS
  server.begin();
  EXPECT_TRUE(server.client.can_begin());
  server.begin();
  EXPECT_FALSE(server.client.can_begin());
  server.written();
  server.receive(response(1, {}, kEnd));
  EXPECT_TRUE(server.client.can_begin());
}

TEST(Http2Client, ReturnsARefusedCall) {
  Connected server;
  server.settings();
  OpenCall& call = server.begin(head_of("POST"), {"body", true, {}});
  server.written();
  EXPECT_EQ(call.owner.drained_bytes, 4u);
  server.receive(rst(1, Http2Code::refused_stream));
  EXPECT_EQ(call.owner.take(), "");
  const std::vector<CallState*> returned = server.client.take_unprocessed();
  ASSERT_EQ(returned.size(), 1u);

  Connected other;  // the same loop's other connection
  other.settings();
  other.client.begin(*returned[0], kStart);
  EXPECT_NE(other.written().find("body"), std::string::npos);
  EXPECT_EQ(call.owner.drained_bytes, 4u);  // reported once
  other.receive(response(1, {}, kEnd));
  EXPECT_EQ(call.owner.take(), "head 200\nlast \n");
}

TEST(Http2Client, FailsARefusedCallWhoseBodyIsGone) {
  Connected server;
  server.settings();
  const std::string part(bounds::http_window_bytes - 1, 'x');
  OpenCall& call = server.begin(head_of("POST"), {part, false, {}});
  server.written();
  EXPECT_GT(call.owner.drained_bytes, 0u);
  call.call.write({"yz", false, {}});
  server.receive(rst(1, Http2Code::refused_stream));
  EXPECT_EQ(call.owner.take(), "failed unavailable unsent: the server refused the stream\n");
}

TEST(Http2Client, ReturnsTheCallsAboveAGoaway) {
  Connected server;
  server.settings();
  OpenCall& first = server.begin();
  OpenCall& second = server.begin();
  server.written();
  server.receive(goaway(1));
  EXPECT_FALSE(server.client.can_begin());
  EXPECT_EQ(server.client.take_unprocessed(), std::vector<CallState*>{second.state});
  server.receive(response(1, {}, kEnd));
  EXPECT_EQ(first.owner.take(), "head 200\nlast \n");
  EXPECT_EQ(server.client.calls(), 0u);
}

TEST(Http2Client, TakesNoErrorBehindACompleteResponseForSuccess) {
  Connected server;
  server.settings();
  OpenCall& call = server.begin(head_of("POST"), {"a", false, {}});
  server.written();
  server.receive(response(1, {}, kEnd, "413") + rst(1, Http2Code::no_error));
  EXPECT_EQ(call.owner.take(), "head 413\nlast \n");
  call.call.write({"more", true, {}});  // does nothing
  EXPECT_EQ(server.client.end(), ClientEnd::open);
}

TEST(Http2Client, FailsAStreamThatTheServerResets) {
  const std::pair<Http2Code, std::string_view> kCases[] = {
      {Http2Code::cancel, "failed unavailable sent: the stream was reset with code 8\n"},
      {Http2Code::no_error, "failed invalid sent: bad response: the stream was reset with code 0\n"},
      {Http2Code::internal_error, "failed unavailable sent: the stream was reset with code 2\n"}};
  for (const auto& [code, record] : kCases) {
    Connected server;
    server.settings();
    OpenCall& call = server.begin();
    OpenCall& other = server.begin();
    server.written();
    server.receive(rst(1, code));
    EXPECT_EQ(call.owner.take(), record);
    EXPECT_TRUE(other.call);
  }
}

TEST(Http2Client, RefusesBadResponsesOnTheirStream) {
  const std::string kBad[] = {
      response(1, {{"Upper", "x"}}),
      response(1, {{"connection", "close"}}),
      response(1, {{"content-length", "5"}}) + data(1, "four", true),
      response(1, {}, frames::end_headers, "101"),
      frames::headers(1, {{"a", "b"}}, frames::end_headers),
      data(1, "first"),
  };
  for (const std::string& bytes : kBad) {
    Connected server;
    server.settings();
    OpenCall& call = server.begin();
    OpenCall& other = server.begin();
    server.written();
    server.receive(bytes);
    server.written();  // sends the reset
    SCOPED_TRACE(testing::PrintToString(bytes));
    EXPECT_EQ(call.owner.ends, 1);
    EXPECT_NE(call.owner.take().find("failed invalid sent"), std::string::npos);
    EXPECT_TRUE(other.call || other.owner.ends == 1);
  }
}

TEST(Http2Client, FailsAllCallsWhenTheServerDoesNotSpeakHttp2) {
  Connected server;
  OpenCall& call = server.begin();
  server.written();
  server.receive("HTTP/1.1 400 Bad Request\r\n\r\n");
  server.written();  // GOAWAY
  EXPECT_NE(call.owner.take().find("failed invalid"), std::string::npos);
  EXPECT_NE(server.client.end(), ClientEnd::open);
}

TEST(Http2Client, ReturnsCallsWhoseHeadsHaveNotLeft) {
  Connected server;
  server.settings();
  OpenCall& sent = server.begin();
  server.written();
  OpenCall& unsent = server.begin();
  server.client.fill(0, kStart);
  OpenCall& unwritten = server.begin();
  server.client.sent(server.out.taken, kStart);
  server.client.lost({Fault::unavailable, "reset"});
  EXPECT_EQ(sent.owner.take(), "failed unavailable sent: reset\n");
  std::vector<CallState*> returned = server.client.take_unprocessed();
  EXPECT_EQ(returned.size(), 2u);
  EXPECT_TRUE(unsent.call && unwritten.call);
}

TEST(Http2Client, KeepsTheWindowOfAStreamClosedUntilItsOwnerConsumes) {
  Connected server;
  server.settings();
  OpenCall& call = server.begin();
  server.written();
  server.receive(response(1));
  const std::string part(16u << 10, 'x');
  for (int i = 0; i < 4; ++i) server.receive(data(1, part));
  EXPECT_EQ(call.owner.unconsumed, bounds::http_window_bytes);
  EXPECT_EQ(server.written(), "");
  call.call.consumed(bounds::http_window_bytes);
  EXPECT_NE(server.written(), "");  // WINDOW_UPDATE
  server.receive(data(1, "y", true));
  EXPECT_EQ(call.owner.ends, 1);
}

TEST(Http2Client, FailsAServerThatIgnoresTheWindow) {
  Connected server;
  server.settings();
  OpenCall& call = server.begin();
  server.written();
  server.receive(response(1));
  const std::string part(16u << 10, 'x');
  for (int i = 0; i < 4; ++i) server.receive(data(1, part));
  server.receive(data(1, "y"));
  server.written();
  EXPECT_EQ(call.owner.ends, 1);
  EXPECT_NE(call.owner.take().find("failed"), std::string::npos);
}

TEST(Http2Client, HoldsTheBodyWhileTheServerHasNoWindow) {
  Connected server;
  server.settings(frames::number(4, 2) + frames::number(10, 4));  // INITIAL_WINDOW_SIZE
  OpenCall& call = server.begin(head_of("POST"), {"0123456789abcdef", false, {}});
  server.written();
  EXPECT_EQ(call.owner.drained_bytes, 10u);
  EXPECT_EQ(call.call.room(), bounds::http_window_bytes - 6);
  EXPECT_EQ(call.state->due(), kStart + std::chrono::seconds{60});
  server.receive(frames::frame(frames::type_window_update, 0, 1, frames::number(100, 4)));
  EXPECT_NE(server.written().find("abcdef"), std::string::npos);
  EXPECT_EQ(call.owner.drained_bytes, 16u);
  const HttpHeader trailer{"sum", "1"};
  call.call.write({"end", true, {&trailer, 1}});
  EXPECT_NE(server.written().find("end"), std::string::npos);
  EXPECT_EQ(call.call.room(), bounds::http_window_bytes);
}

TEST(Http2Client, ResetsACanceledStreamAndReturnsItsCredit) {
  Connected server;
  server.settings();
  const std::string part(16u << 10, 'x');
  for (std::uint32_t stream = 1; stream < 2 * 600; stream += 2) {  // 600 x 16 KiB pass the connection's window of 8 MiB
    OpenCall& call = server.begin();
    server.written();
    server.receive(response(stream) + data(stream, part));
    ASSERT_EQ(call.owner.ends, 0) << call.owner.record;
    call.call.cancel();
    const std::string sent = server.written();
    ASSERT_NE(sent.find(rst(stream, Http2Code::cancel)), sent.npos);
    server.open.clear();
  }
  EXPECT_EQ(server.client.end(), ClientEnd::open);
  EXPECT_TRUE(server.calls.live().empty());
}

TEST(Http2Client, SendsNothingOfACallThatIsCanceledBeforeItLeaves) {
  Connected server;
  server.settings();
  server.begin().call.cancel();
  EXPECT_EQ(server.written(), "");
  EXPECT_TRUE(server.client.can_begin());
}

TEST(Http2Client, PingsAServerThatIsSilent) {
  Connected server;
  server.settings();
  EXPECT_EQ(server.client.deadline(), Time::max());
  OpenCall& call = server.begin();
  server.written();
  EXPECT_EQ(server.client.deadline(), kStart + bounds::http2_silence_max);
  server.now = kStart + bounds::http2_silence_max;
  server.client.expire(server.now);
  const std::string ping = server.written();
  EXPECT_EQ(ping.size(), 17u);
  EXPECT_EQ(server.client.deadline(), server.now + bounds::http2_ping_time_max);
  server.receive(frames::frame(frames::type_ping, frames::ack, 0, ping.substr(9)));
  EXPECT_EQ(server.client.deadline(), server.now + bounds::http2_silence_max);
  server.now += bounds::http2_silence_max;
  server.client.expire(server.now);
  server.now += bounds::http2_ping_time_max;
  server.client.expire(server.now);
  EXPECT_EQ(call.owner.take(), "failed timeout sent: the server does not answer a PING\n");
  EXPECT_EQ(server.client.end(), ClientEnd::close);
}

TEST(Http2Client, RefusesAnUpgrade) {
  Connected server;
  CallHead head = head_of();
  head.upgrade = "websocket";
  OpenCall& call = server.begin(head, {});
  EXPECT_EQ(server.client.take_unprocessed(), std::vector<CallState*>{call.state});
  EXPECT_EQ(call.state->why.fault, Fault::invalid);
}

TEST(Http2Client, RespectsTheServersHeaderListSize) {
  Connected server;
  server.settings(frames::number(6, 2) + frames::number(200, 4));  // MAX_HEADER_LIST_SIZE
  CallHead head = head_of();
  const std::string big = "a: " + std::string(200, 'x') + "\r\n";
  head.fields.lines = big;
  OpenCall& call = server.begin(head);
  EXPECT_EQ(server.client.take_unprocessed(), std::vector<CallState*>{call.state});
  EXPECT_EQ(call.state->why.fault, Fault::too_large);
}

TEST(Http2Client, FreesEverything) {
  ClientShared shared;
  const std::size_t before = shared.http2.library_bytes();
  {
    TextOutput out;
    CallStates calls;
    TellingOwner owner;
    Http2Client client(out, shared);
    CallState& state = calls.take(head_of(), {"x", false, {}}, owner, {}, kStart);
    Call call = state.handle();
    client.begin(state, kStart);
    client.fill(0, kStart);
  }
  EXPECT_EQ(shared.http2.library_bytes(), before);
}

}  // namespace
}  // namespace weir::http2_client_test
