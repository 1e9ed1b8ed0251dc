#include "weir/proxy/reply.h"

#include <gtest/gtest.h>

#include "weir/http/testing/fake_exchange.h"

namespace weir::proxy::reply_test {
namespace {

using namespace std::chrono_literals;

class NoHandler final : public http::Handler {
 public:
  void begin(http::Exchange&, const RequestHead&, http::BodyPart) override {}
  void body(http::Exchange&, http::BodyPart) override {}
};

struct Fixture {
  NoHandler handler;
  http::FakeExchange exchange{handler, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"};

  std::string response() {
    return std::to_string(exchange->status) + " " + exchange->content_type + "\n" + exchange->fields +
           exchange->content;
  }
};

std::string replied(const Reply& reply, ReplyForm form) {
  Fixture fixture;
  respond(*fixture.exchange, reply, form, "A: b\r\n");
  return fixture.response();
}

TEST(Reply, IsAnErrorAndAMessage) {
  EXPECT_EQ(replied({502, "backend_unreachable", "No."}, {}),
            "502 application/json\nA: b\r\n{\"error\":\"backend_unreachable\",\"message\":\"No.\"}");
  EXPECT_EQ(replied({503, "overloaded", "Busy.", true}, {}),
            "503 application/json\nA: b\r\nRetry-After: 1\r\n{\"error\":\"overloaded\",\"message\":\"Busy.\"}");
}

TEST(Reply, IsAProblemForThoseWhoAcceptExactlyThat) {
  EXPECT_EQ(replied({404, "no_route", "No."}, {false, true}),
            "404 application/problem+json\nA: b\r\n{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,"
            "\"detail\":\"No.\",\"error\":\"no_route\"}");
}

TEST(Reply, IsAStatusForGrpc) {
  EXPECT_EQ(replied({502, "backend_unreachable", "100% away"}, {true, false}),
            "200 application/grpc\nA: b\r\ngrpc-status: 14\r\ngrpc-message: 100%25 away\r\n");
  EXPECT_EQ(replied({429, "store_unavailable", "x", true}, {true, false}),
            "200 application/grpc\nA: b\r\ngrpc-status: 8\r\ngrpc-message: x\r\ngrpc-retry-pushback-ms: 1000\r\n");
  for (const auto& [status, grpc] : std::vector<std::pair<int, int>>{
           {400, 3}, {403, 7}, {404, 12}, {408, 4}, {504, 4}, {413, 8}, {429, 8}, {502, 14}, {503, 14}}) {
    EXPECT_EQ(grpc_status_of(status), grpc) << status;
  }
}

TEST(Reply, NamesWhatIsWrongWithTheQuestion) {
  const Reply missing = reply_to({Fault::invalid, "no key", 0, "missing_key"}, 429);
  EXPECT_EQ(missing.status, 400);
  EXPECT_EQ(missing.error, "missing_key");
  EXPECT_EQ(reply_to({Fault::invalid, "x"}, 429).error, "bad_request");
  const Reply closed = reply_to({Fault::unavailable, "x", 503}, 429);
  EXPECT_EQ(closed.status, 503);
  EXPECT_EQ(closed.error, "store_unavailable");
  EXPECT_TRUE(closed.retry_soon);
  EXPECT_EQ(reply_to({Fault::timeout, "x"}, 429).status, 429);
  EXPECT_EQ(reply_to({Fault::overloaded, "x"}, 429).status, 503);
  EXPECT_EQ(reply_to({Fault::internal, "secret"}, 429).message.find("secret"), std::string::npos);
}

TEST(Reply, SaysWhatIsWrongWithARequestThatCannotBeRead) {
  const Reply timeout = reply_to(HttpProblem{408, "the content did not come in time"});
  EXPECT_EQ(timeout.status, 408);
  EXPECT_EQ(timeout.error, "request_timeout");
  EXPECT_EQ(timeout.message, "The content did not come in time.");
  EXPECT_EQ(reply_to(HttpProblem{405, "CONNECT is not supported"}).message, "CONNECT is not supported.");
  EXPECT_TRUE(reply_to(HttpProblem{503, "x"}).retry_soon);
}

Answer denial(Duration wait) {
  Answer answer;
  answer.verdict.all.push_back(Decision{false, 20, 0, wait, 1s});
  answer.verdict.allowed = false;
  answer.labels[0].limit = "per-ip";
  answer.labels[0].key = "ip";
  answer.labels[0].id = "192.168.1.1";
  return answer;
}

std::string denied(const Answer& answer, ReplyForm form) {
  Fixture fixture;
  respond_denied(*fixture.exchange, answer, form, "A: b\r\n");
  return fixture.response();
}

TEST(Denial, HasWholeSecondsRoundedUp) {
  EXPECT_EQ(
      denied(denial(1ms), {}),
      "429 application/json\nA: b\r\n{\"error\":\"rate limit exceeded\",\"message\":\"Too many requests. Please try "
      "again later.\",\"identifier\":\"ip:192.168.1.1\",\"limit\":\"per-ip\",\"retry_after\":1}");
  EXPECT_NE(denied(denial(1001ms), {}).find("\"retry_after\":2}"), std::string::npos);
  EXPECT_EQ(denied(denial(kNever), {}).find("retry_after"), std::string::npos);
}

TEST(Denial, ByAListIs403) {
  Answer answer = denial(kNever);
  answer.access = Access::deny_listed;
  EXPECT_EQ(denied(answer, {}).substr(0, 3), "403");
  EXPECT_NE(denied(answer, {}).find("\"error\":\"access denied\""), std::string::npos);
  EXPECT_NE(denied(answer, {true, false}).find("grpc-status: 7\r\n"), std::string::npos);
}

TEST(Denial, OfGrpcSaysWhenToTryAgain) {
  EXPECT_NE(denied(denial(1500us), {true, false}).find("grpc-status: 8\r\n"), std::string::npos);
  EXPECT_NE(denied(denial(1500us), {true, false}).find("grpc-retry-pushback-ms: 2\r\n"), std::string::npos);
  EXPECT_NE(denied(denial(kNever), {true, false}).find("grpc-retry-pushback-ms: -1\r\n"), std::string::npos);
}

}  // namespace
}  // namespace weir::proxy::reply_test
