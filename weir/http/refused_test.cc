// Requests that cannot be read: who answers them, in both versions.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "weir/http/error_reply.h"
#include "weir/http/http1_session.h"
#include "weir/http/http2_session.h"
#include "weir/http/testing/session_driver.h"
#include "weir/wire/http2_frames_test.h"

namespace weir::http::refused_test {
namespace {

using namespace http2_frames;

// Answers refusals itself, and attaches a receiver of its own to requests for /attached.
class Refuser final : public Handler {
 public:
  void begin(Exchange& exchange, const RequestHead& head, BodyPart first) override {
    record += "begin ";
    exchange.consumed(first.bytes.size());
    if (head.path == "/attached") exchange.attach(std::make_unique<Attached>(*this));
    if (head.path == "/early") exchange.respond({200, {}, {}, {}}, {"part", false});
  }
  void body(Exchange& exchange, BodyPart part) override { exchange.consumed(part.bytes.size()); }
  void refused(Exchange& exchange, const HttpProblem& problem) override { answer("handler", exchange, problem); }
  void ended(Exchange&, Ending ending) override { record += ending == Ending::canceled ? "canceled " : "ended "; }

  std::string record;
  bool says_nothing = false;

 private:
  class Attached final : public Receiver {
   public:
    explicit Attached(Refuser& handler) : handler_(handler) {}
    void body(Exchange& exchange, BodyPart part) override { exchange.consumed(part.bytes.size()); }
    void refused(Exchange& exchange, const HttpProblem& problem) override {
      handler_.answer("attached", exchange, problem);
    }
    void ended(Exchange& exchange, Ending ending) override { handler_.ended(exchange, ending); }

   private:
    Refuser& handler_;
  };

  void answer(const std::string& who, Exchange& exchange, const HttpProblem& problem) {
    record += who + " " + std::to_string(problem.status) + " ";
    if (says_nothing) return;
    exchange.respond({problem.status, "text/plain", {"X-By: me\r\n", {}}, {}}, {"no", true});
  }
};

struct Fixture {
  HttpShared shared;
  Refuser handler;
  std::unique_ptr<SessionDriver> driver;

  template <class Version>
  void open() {
    driver = std::make_unique<SessionDriver>(
        [&](const NewConnection& connection) { return std::make_unique<Version>(shared, handler, connection); });
  }
};

class Http1RefusedTest : public ::testing::Test, protected Fixture {
 protected:
  Http1RefusedTest() { open<Http1Session>(); }
};

class Http2RefusedTest : public ::testing::Test, protected Fixture {
 protected:
  Http2RefusedTest() {
    open<Http2Session>();
    driver->send(opening());
    driver->take();
  }
  static std::string post(const std::string& path, const Fields& more = {}) {
    Fields fields = {{":method", "POST"}, {":scheme", "http"}, {":authority", "h"}, {":path", path}};
    fields.insert(fields.end(), more.begin(), more.end());
    return headers(1, fields, end_headers);
  }
};

TEST_F(Http1RefusedTest, TheHandlerAnswersARequestThatNeverBegan) {
  driver->send("GET / HTTP/1.1\r\nHost: h\r\nBad Name: x\r\n\r\n");
  EXPECT_EQ(handler.record, "handler 400 ") << "and hears nothing else of it";
  EXPECT_EQ(driver->take(),
            "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nX-By: me\r\n"
            "Connection: close\r\n\r\nno");
  EXPECT_TRUE(driver->session->finished());
}

TEST_F(Http1RefusedTest, TheReceiverAnswersARequestThatBegan) {
  driver->send("POST /attached HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  driver->send("zz\r\n");
  EXPECT_EQ(handler.record, "begin attached 400 canceled ");
  EXPECT_TRUE(driver->take().ends_with("X-By: me\r\nConnection: close\r\n\r\nno"));
}

TEST_F(Http1RefusedTest, AResponseThatHasBegunIsCutOff) {
  driver->send("POST /early HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  driver->send("zz\r\n");
  EXPECT_EQ(handler.record, "begin ended ");
  EXPECT_EQ(driver->take().find("X-By"), std::string::npos);
  EXPECT_TRUE(driver->session->finished());
}

TEST_F(Http1RefusedTest, AReceiverThatSaysNothingClosesTheConnection) {
  handler.says_nothing = true;
  driver->send("GET / HTTP/9\r\n\r\n");
  EXPECT_EQ(driver->take(), "");
  EXPECT_TRUE(driver->session->finished());
  EXPECT_EQ(shared.exchanges->open_count(), 0u);
}

TEST_F(Http1RefusedTest, ASlowBodyGoesOnAsLongAsSomethingComesWhereThatIsEnough) {
  shared.limits.body_progress_bytes = 1;
  driver->send("POST /attached HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nab");
  for (int i = 0; i < 10; ++i) {
    driver->advance(bounds::http_body_time_max - std::chrono::nanoseconds{1});
    driver->send("x");
  }
  EXPECT_EQ(handler.record, "begin ");
  driver->advance(bounds::http_body_time_max);
  EXPECT_EQ(handler.record, "begin attached 408 canceled ");
}

TEST_F(Http1RefusedTest, ABodyMayPauseOnceTheResponseHasBegun) {
  driver->send("POST /early HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nab");
  driver->advance(2 * bounds::http_body_time_max);
  driver->send("x");
  driver->advance(2 * bounds::http_body_time_max);
  EXPECT_EQ(handler.record, "begin ");
  EXPECT_FALSE(driver->session->finished());
}

TEST_F(Http2RefusedTest, ABodyMayPauseOnceTheResponseHasBegun) {
  driver->send(post("/early"));
  driver->advance(2 * bounds::http_body_time_max);
  driver->send(data(1, "x"));
  driver->advance(2 * bounds::http_body_time_max);
  EXPECT_EQ(handler.record, "begin ");
  EXPECT_EQ(shared.exchanges->open_count(), 1u);
}

TEST_F(Http2RefusedTest, TheHandlerAnswersARequestThatNeverBegan) {
  shared.limits.head_bytes_max = 200;
  driver->send(post("/", {{"x", std::string(300, 'y')}}));
  EXPECT_EQ(handler.record, "handler 431 ") << "and hears nothing else of it";
  EXPECT_NE(driver->take().find("no"), std::string::npos);
}

TEST_F(Http2RefusedTest, ASlowBodyGoesOnAsLongAsSomethingComesWhereThatIsEnough) {
  shared.limits.body_progress_bytes = 1;
  driver->send(post("/attached"));
  for (int i = 0; i < 10; ++i) {
    driver->advance(bounds::http_body_time_max - std::chrono::nanoseconds{1});
    driver->send(data(1, "x"));
  }
  EXPECT_EQ(handler.record, "begin ");
  driver->advance(bounds::http_body_time_max);
  EXPECT_EQ(handler.record, "begin attached 408 canceled ");
}

TEST_F(Http2RefusedTest, TheStreamOfAReceiverThatSaysNothingIsReset) {
  handler.says_nothing = true;
  driver->send(post("/attached"));
  driver->advance(bounds::http_body_time_max);
  EXPECT_EQ(handler.record, "begin attached 408 canceled ");
  std::string resets;
  for (const Frame& frame : frames(driver->take())) {
    if (frame.type == type_rst_stream) resets += std::to_string(frame.stream);
  }
  EXPECT_EQ(resets, "1");
  EXPECT_EQ(shared.exchanges->open_count(), 0u);
}

TEST_F(Http2RefusedTest, TheReceiverAnswersAndTheStreamEnds) {
  driver->send(post("/attached"));
  driver->take();
  driver->advance(bounds::http_body_time_max);
  EXPECT_EQ(handler.record, "begin attached 408 canceled ");
  const std::string out = driver->take();
  EXPECT_NE(out.find("no"), std::string::npos);
  EXPECT_EQ(shared.exchanges->open_count(), 0u);
}

}  // namespace
}  // namespace weir::http::refused_test
