#include "weir/http/http1_client.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "weir/http/client_parts_test.h"

namespace weir::http1_client_test {
namespace {

using namespace http;

constexpr Time kStart = Time{std::chrono::seconds{100}};

// A client whose server is the test.
struct Connected {
  CallStates calls;
  ClientShared shared;
  TextOutput out;
  Http1Client client{out, shared};
  TellingOwner owner;
  Call call;
  Time now = kStart;

  void begin(const CallHead& head, BodyPart first = {{}, true, {}}) {
    CallState& state = calls.take(head, first, owner, {}, now);
    call = state.handle();
    client.begin(state, now);
  }
  // What the client has written, accepted by the kernel.
  std::string written(std::size_t bytes_max = std::string::npos) {
    client.fill(out.unsent(), now);
    std::string text = out.take(bytes_max);
    client.sent(out.taken, now);
    return text;
  }
  // The server sends this, with whatever the client left before.
  std::string receive(std::string_view bytes) {
    unread += bytes;
    unread.erase(0, client.receive(unread, now));
    return owner.take();
  }
  // A GET whose request is sent.
  void ask(std::string_view method = "GET") {
    CallHead head;
    head.method = method;
    head.authority = "h";
    begin(head);
    written();
  }
  std::string unread;
};

CallHead post(std::optional<std::uint64_t> length = {}) {
  CallHead head;
  head.method = "POST";
  head.authority = "example.com";
  head.path = "/a?b=c";
  head.length = length;
  return head;
}

TEST(Http1Client, WritesARequest) {
  Connected server;
  CallHead head = post();
  const HttpHeader list[] = {{"X-Two", "2"}, {"Host", "evil"}, {"Content-Length", "9"}};
  head.fields = {"X-One: 1\r\nConnection: keep-alive\r\nExpect: x\r\n", list};
  server.begin(head, {"hello", true, {}});
  EXPECT_EQ(server.written(),
            "POST /a?b=c HTTP/1.1\r\nHost: example.com\r\nX-One: 1\r\nX-Two: 2\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(server.owner.drained_bytes, 5u);
}

TEST(Http1Client, WritesABodyOfUnknownLengthInChunks) {
  Connected server;
  server.begin(post(), {"ab", false, {}});
  EXPECT_EQ(server.written(),
            "POST /a?b=c HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
  server.call.write({"cde", false, {}});
  EXPECT_EQ(server.call.room(), bounds::http_window_bytes - 3);
  EXPECT_EQ(server.written(), "3\r\ncde\r\n");
  EXPECT_EQ(server.call.room(), bounds::http_window_bytes);
  const HttpHeader trailer{"sum", "1"};
  server.call.write({{}, true, {&trailer, 1}});
  EXPECT_EQ(server.written(), "0\r\nsum: 1\r\n\r\n");
  EXPECT_EQ(server.owner.drained_bytes, 5u);
}

TEST(Http1Client, WritesABodyOfKnownLengthAsItIs) {
  Connected server;
  CallHead head = post(5);
  head.expect_continue = true;
  server.begin(head, {});
  EXPECT_EQ(server.written(),
            "POST /a?b=c HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(server.receive("HTTP/1.1 100 Continue\r\n\r\n"), "informed 100\n");
  server.call.write({"hello", false, {}});
  server.call.write({{}, true, {}});
  EXPECT_EQ(server.written(), "hello");
  EXPECT_EQ(server.receive("HTTP/1.1 204 No Content\r\n\r\n"), "head 204\nlast \n");
  EXPECT_TRUE(server.client.can_begin());
}

TEST(Http1Client, ReportsTheBodyAsDrainedWhenItHasLeft) {
  Connected server;
  server.begin(post(10), {"0123456789", true, {}});
  const std::size_t head_bytes = server.out.bytes.size() - 10;
  server.written(head_bytes + 9);
  EXPECT_EQ(server.owner.drained_bytes, 0u);
  EXPECT_EQ(server.call.room(), bounds::http_window_bytes - 10);
  server.written();
  EXPECT_EQ(server.owner.drained_bytes, 10u);
}

TEST(Http1Client, ReturnsAllCreditOfManySmallParts) {
  Connected server;
  server.begin(post(), {});
  for (std::size_t i = 0; i < 3 * bounds::http_unsent_parts_max; ++i) server.call.write({"x", false, {}});
  server.written(200);
  EXPECT_LT(server.owner.drained_bytes, 3 * bounds::http_unsent_parts_max);
  server.written();
  EXPECT_EQ(server.owner.drained_bytes, 3 * bounds::http_unsent_parts_max);
}

TEST(Http1Client, FailsABodyOfAnotherLengthThanAnnounced) {
  for (const BodyPart part : {BodyPart{"123456", false, {}}, BodyPart{"1234", true, {}}}) {
    Connected server;
    server.begin(post(5), {});
    server.written();
    server.call.write(part);
    server.written();
    EXPECT_EQ(server.owner.take(), "failed invalid sent: the request body is not as long as announced\n");
    EXPECT_EQ(server.client.end(), ClientEnd::close);
  }
}

struct ResponseCase {
  std::string_view bytes;
  std::string_view record;
  bool reusable;
  std::string_view method = "GET";
};

TEST(Http1Client, ReadsResponsesHoweverTheyAreSplit) {
  const ResponseCase kCases[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "head 200 Content-Length=5\nlast hello\n", true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "head 200 Content-Length=0\nlast \n", true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx",
       "head 200 Content-Length=1 Connection=close\nlast x\n", false},
      {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", "head 200 Content-Length=1\nlast x\n", false},
      {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\nx",
       "head 200 Content-Length=1 Connection=keep-alive\nlast x\n", true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nsum: 1\r\n\r\n",
       "head 200 Transfer-Encoding=chunked\nlast abcde\ntrailer sum=1\n", true},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 204 N\r\n\r\n",
       "informed 100\ninformed 103\nhead 204\nlast \n", true},
      {"HTTP/1.1 304 N\r\nContent-Length: 7\r\n\r\n", "head 304 Content-Length=7\nlast \n", true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", "head 200 Content-Length=7\nlast \n", true, "HEAD"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "head 200 Transfer-Encoding=chunked\nlast \n", true,
       "HEAD"},
      {"HTTP/1.1 204 N\r\nContent-Length: 4\r\n\r\n", "head 204 Content-Length=4\nlast \n", false},
      {"HTTP/1.1 204 N\r\nTransfer-Encoding: chunked\r\n\r\n", "head 204 Transfer-Encoding=chunked\nlast \n", false},
  };
  for (const ResponseCase& row : kCases) {
    for (std::size_t piece = 1; piece <= row.bytes.size(); ++piece) {
      Connected server;
      server.owner.joins = true;
      server.ask(row.method);
      std::string record;
      for (std::size_t at = 0; at < row.bytes.size(); at += piece) {
        server.unread += row.bytes.substr(at, piece);
        server.unread.erase(0, server.client.receive(server.unread, server.now));
      }
      EXPECT_EQ(server.owner.take(), row.record) << piece;
      EXPECT_EQ(server.client.can_begin(), row.reusable) << row.bytes;
      EXPECT_EQ(server.client.end(), row.reusable ? ClientEnd::open : ClientEnd::close) << row.bytes;
      EXPECT_EQ(server.owner.ends, 1);
      EXPECT_FALSE(server.call);
    }
  }
}

TEST(Http1Client, RefusesAmbiguousResponses) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "must not be combined"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", "given twice"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n", "not a whole number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", "not a whole number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "too large"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "only supported"},
      {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0"},
      {"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "folded"},
      {"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "not a token"},
      {"HTTP/1.1 200 OK\nA: b\r\n\r\n", "LF alone"},
      {"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", "control character"},
      {"HTTP/1.1 20 OK\r\n\r\n", "no status"},
      {"HTTP/1.1 099 OK\r\n\r\n", "no status"},
      {"HTTP/2.0 200 OK\r\n\r\n", "no version"},
      {"ICY 200 OK\r\n\r\n", "no version"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "hexadecimal"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "CRLF"},
      {"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", "101"},
  };
  for (const auto& [bytes, why] : kCases) {
    Connected server;
    server.ask();
    const std::string record = server.receive(bytes);
    EXPECT_NE(record.find("failed invalid sent"), record.npos) << bytes << record;
    EXPECT_NE(record.find(why), record.npos) << bytes << record;
    EXPECT_EQ(server.client.end(), ClientEnd::close);
    EXPECT_EQ(server.owner.ends, 1);
  }
}

TEST(Http1Client, LimitsAResponseHead) {
  for (const std::size_t extra : {0u, 1u}) {
    Connected server;
    server.ask();
    std::string head = "HTTP/1.1 204 N\r\nA: ";
    head += std::string(bounds::http_head_bytes_max - head.size() - 4 + extra, 'a') + "\r\n\r\n";
    EXPECT_EQ(server.receive(head).starts_with(extra == 0 ? "head 204" : "failed invalid"), true);
  }
}

TEST(Http1Client, LimitsInterimResponses) {
  for (const int extra : {0, 1}) {
    Connected server;
    server.ask();
    for (int i = 0; i < bounds::http_interim_responses_max; ++i)
      EXPECT_EQ(server.receive("HTTP/1.1 102 P\r\n\r\n"), "informed 102\n");
    const std::string record = server.receive(extra == 0 ? "HTTP/1.1 204 N\r\n\r\n" : "HTTP/1.1 102 P\r\n\r\n");
    EXPECT_EQ(record.starts_with(extra == 0 ? "head 204" : "failed invalid"), true) << record;
  }
}

TEST(Http1Client, ReadsUntilTheServerCloses) {
  Connected server;
  server.ask();
  EXPECT_EQ(server.receive("HTTP/1.1 200 OK\r\n\r\nab"), "head 200\nbody ab\n");
  EXPECT_EQ(server.receive("cd"), "body cd\n");
  server.client.end_of_input(server.now);
  EXPECT_EQ(server.owner.take(), "last \n");
  EXPECT_EQ(server.client.end(), ClientEnd::close);
}

TEST(Http1Client, FailsWhenTheServerClosesTooEarly) {
  for (const std::string_view bytes : {"", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
                                       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n"}) {
    Connected server;
    server.ask();
    const bool begun = server.receive(bytes).starts_with("head");
    server.client.end_of_input(server.now);
    EXPECT_EQ(server.owner.take(), begun ? "failed unavailable sent begun: the server closed the connection within the "
                                           "response\n"
                                         : "failed unavailable sent: the server closed the connection before it "
                                           "responded\n");
    EXPECT_EQ(server.owner.ends, 1);
  }
}

TEST(Http1Client, StopsReadingWhileTheOwnerConsumesNothing) {
  Connected server;
  server.ask();
  const std::string body(bounds::http_window_bytes + 10, 'x');
  server.receive("HTTP/1.1 200 OK\r\n\r\n");
  server.receive(body);
  EXPECT_EQ(server.owner.unconsumed, bounds::http_window_bytes);
  EXPECT_FALSE(server.client.reading());
  EXPECT_EQ(server.unread.size(), 10u);
  server.client.end_of_input(server.now);  // the rest comes first
  EXPECT_EQ(server.owner.ends, 0);
  server.out.take_touched();
  server.call.consumed(5);
  EXPECT_TRUE(server.out.take_touched());
  EXPECT_TRUE(server.client.reading());
  EXPECT_EQ(server.receive(""), "body xxxxx\n");  // a connection passes the rest again
  server.call.consumed(5);
  EXPECT_EQ(server.receive(""), "body xxxxx\nlast \n");
}

TEST(Http1Client, ReadsBetweenChunksHoweverLittleCreditIsLeft) {
  Connected server;
  server.ask();
  const std::string chunk(bounds::http_window_bytes - 2, 'x');
  server.receive("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffe\r\n" + chunk);
  EXPECT_EQ(server.receive("\r\n000005\r\nhello\r\n0\r\nSum: 1\r\n\r\n"), "body he\n");
  EXPECT_FALSE(server.client.reading());
  server.client.end_of_input(server.now);
  EXPECT_EQ(server.owner.ends, 0);
  server.call.consumed(4);
  EXPECT_EQ(server.receive(""), "last llo\ntrailer Sum=1\n");
}

TEST(Http1Client, TakesAResponseBeforeTheRequestIsComplete) {
  Connected server;
  server.begin(post(), {"ab", false, {}});
  server.written();
  EXPECT_EQ(server.receive("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno"),
            "head 413 Content-Length=2\nlast no\n");
  EXPECT_EQ(server.client.end(), ClientEnd::close);  // the server would take what follows for the rest of the request
  server.call.write({"more", true, {}});             // does nothing
  EXPECT_EQ(server.written(), "");
}

TEST(Http1Client, UsesAConnectionAgain) {
  Connected server;
  server.ask();
  server.receive("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5, max=10\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(server.client.keep_alive(), std::chrono::seconds{5});
  server.ask();
  EXPECT_EQ(server.receive("HTTP/1.1 404 N\r\nContent-Length: 0\r\n\r\n"), "head 404 Content-Length=0\nlast \n");
  EXPECT_EQ(server.client.keep_alive(), Duration::max());
}

TEST(Http1Client, DoesNotUseAConnectionAgainAfterBytesThatNobodyAskedFor) {
  Connected server;
  server.ask();
  server.receive("HTTP/1.1 204 N\r\n\r\nHTTP/1.1 200");
  EXPECT_EQ(server.owner.ends, 1);
  EXPECT_EQ(server.client.end(), ClientEnd::close);

  Connected idle;
  idle.ask();
  idle.receive("HTTP/1.1 204 N\r\n\r\n");
  EXPECT_EQ(idle.client.end(), ClientEnd::open);
  idle.receive("x");
  EXPECT_EQ(idle.client.end(), ClientEnd::close);
}

TEST(Http1Client, ReturnsACallOfWhichNothingWasSent) {
  Connected server;
  server.begin(post(), {"ab", false, {}});
  server.call.write({"cd", false, {}});
  server.client.lost({Fault::unavailable, "reset"});
  EXPECT_EQ(server.owner.take(), "");
  const std::vector<CallState*> returned = server.client.take_unprocessed();
  ASSERT_EQ(returned.size(), 1u);
  server.call.write({"ef", true, {}});

  TextOutput out;
  Http1Client other(out, server.shared);
  other.begin(*returned[0], server.now);
  EXPECT_EQ(out.take(), "POST /a?b=c HTTP/1.1\r\nHost: example.com\r\nContent-Length: 6\r\n\r\nabcdef");
  other.sent(out.taken, server.now);
  EXPECT_EQ(server.owner.drained_bytes, 6u);
  other.receive("HTTP/1.1 204 N\r\n\r\n", server.now);
  EXPECT_EQ(server.owner.take(), "head 204\nlast \n");
}

TEST(Http1Client, FailsACallOfWhichOneByteWasSent) {
  Connected server;
  server.begin(post(), {"ab", true, {}});
  server.written(1);
  server.client.lost({Fault::unavailable, "reset"});
  EXPECT_EQ(server.owner.take(), "failed unavailable sent: reset\n");
  EXPECT_TRUE(server.client.take_unprocessed().empty());
}

TEST(Http1Client, ForgetsAReturnedCallThatIsCanceled) {
  Connected server;
  server.begin(post(), {});
  server.client.lost({Fault::unavailable, "reset"});
  server.call.cancel();
  EXPECT_TRUE(server.client.take_unprocessed().empty());
  EXPECT_TRUE(server.calls.live().empty());
}

TEST(Http1Client, ClosesTheConnectionOfACanceledCall) {
  Connected server;
  server.ask();
  server.receive("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe");
  server.call.cancel();
  EXPECT_EQ(server.client.end(), ClientEnd::close);
  EXPECT_EQ(server.receive("llo"), "");
  EXPECT_TRUE(server.calls.live().empty());
}

// Cancels its call in one of its callbacks.
class CancelingOwner final : public TellingOwner {
 public:
  Call* call = nullptr;
  std::string in;
  void informed(const ResponseHead& head) override {
    TellingOwner::informed(head);
    if (in == "informed") call->cancel();
  }
  void head(const ResponseHead& head, BodyPart first) override {
    TellingOwner::head(head, first);
    if (in == "head") call->cancel();
  }
  void body(BodyPart part) override {
    TellingOwner::body(part);
    if (in == (part.last ? "last" : "body")) call->cancel();
  }
  void drained(std::size_t bytes) override {
    TellingOwner::drained(bytes);
    if (in == "drained") call->cancel();
  }
};

TEST(Http1Client, AllowsToCancelInEveryCallback) {
  for (const std::string_view in : {"informed", "head", "body", "last", "drained"}) {
    Connected server;
    CancelingOwner owner;
    owner.call = &server.call;
    owner.in = in;
    CallState& state = server.calls.take(post(), {"ab", true, {}}, owner, {}, kStart);
    server.call = state.handle();
    server.client.begin(state, kStart);
    server.written();
    server.receive("HTTP/1.1 102 P\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n");
    server.receive("0\r\n\r\n");
    EXPECT_TRUE(server.calls.live().empty()) << in;
    EXPECT_EQ(server.client.end(), in == "last" ? ClientEnd::open : ClientEnd::close) << in;
  }
}

TEST(Http1Client, TurnsIntoATunnel) {
  Connected server;
  CallHead head;
  head.authority = "h";
  head.upgrade = "websocket";
  server.begin(head, {});
  server.call.write({"early ", false, {}});
  EXPECT_EQ(server.written(), "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_EQ(server.receive("HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\nfirst"),
            "head 101 Upgrade=websocket\nbody first\n");
  EXPECT_EQ(server.written(), "early ");
  server.call.write({"ping", false, {}});
  EXPECT_EQ(server.written(), "ping");
  EXPECT_EQ(server.owner.drained_bytes, 10u);
  EXPECT_EQ(server.receive("pong"), "body pong\n");
  EXPECT_FALSE(server.client.half_closed());
  server.client.end_of_input(server.now);
  EXPECT_EQ(server.owner.take(), "last \n");
  EXPECT_TRUE(server.call);
  server.call.write({"bye", true, {}});
  EXPECT_TRUE(server.client.half_closed());
  EXPECT_EQ(server.written(), "bye");
  EXPECT_FALSE(server.call);
  EXPECT_EQ(server.client.end(), ClientEnd::finish);
}

TEST(Http1Client, EndsATunnelThatWeEndFirst) {
  Connected server;
  CallHead head;
  head.authority = "h";
  head.upgrade = "x";
  server.begin(head, {});
  server.written();
  server.receive("HTTP/1.1 101 S\r\n\r\n");
  server.call.write({"bye", true, {}});
  EXPECT_EQ(server.written(), "bye");
  EXPECT_TRUE(server.client.half_closed());
  EXPECT_EQ(server.receive("answer"), "body answer\n");
  server.client.end_of_input(server.now);
  EXPECT_EQ(server.owner.take(), "last \n");
  EXPECT_FALSE(server.call);
  EXPECT_EQ(server.client.end(), ClientEnd::finish);
}

TEST(Http1Client, TakesAnOrdinaryResponseToAnUpgrade) {
  Connected server;
  CallHead head;
  head.authority = "h";
  head.upgrade = "x";
  server.begin(head, {});
  server.call.write({"held", false, {}});
  server.written();
  EXPECT_EQ(server.receive("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"), "head 403 Content-Length=0\nlast \n");
  EXPECT_TRUE(server.client.can_begin());
  EXPECT_EQ(server.written(), "");
}

TEST(CallState, TellsWhenACallHasTakenTooLong) {
  Connected server;
  CallOptions options;
  options.deadline = kStart + std::chrono::minutes{2};
  CallState& state = server.calls.take(post(), {"ab", false, {}}, server.owner, options, kStart);
  server.call = state.handle();
  EXPECT_EQ(state.due(), kStart + std::chrono::seconds{5});  // no connection
  server.client.begin(state, kStart);
  EXPECT_EQ(state.due(), kStart + std::chrono::seconds{60});  // the server does not take the body
  server.now += std::chrono::seconds{3};
  server.written();
  EXPECT_EQ(state.due(), options.deadline);  // the owner has to continue
  server.call.write({{}, true, {}});
  EXPECT_EQ(state.due(), server.now + std::chrono::seconds{60});
  EXPECT_EQ(server.client.timed_out(state).detail, "no response within 60000 ms");
  server.receive("HTTP/1.1 200 OK\r\n\r\n");
  EXPECT_EQ(state.due(), options.deadline);
  state.options.deadline = Time::max();
  EXPECT_EQ(state.due(), server.now + std::chrono::minutes{5});
}

TEST(CallState, LetsAHandleOutliveEverythingElse) {
  auto server = std::make_unique<Connected>();
  server->ask();
  Call call = std::move(server->call);
  EXPECT_TRUE(call);
  server.reset();
  EXPECT_FALSE(call);
  call.write({"x", true, {}});
  call.consumed(1);
}

}  // namespace
}  // namespace weir::http1_client_test
