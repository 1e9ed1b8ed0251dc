#include "weir/protocol/http/authorize.h"

#include <gtest/gtest.h>

#include <string>

#include "weir/http/testing/http1_peer.h"
#include "weir/protocol/http/check_handler.h"

namespace weir::authorize_test {
namespace {

using namespace std::chrono_literals;

std::string call(std::string_view target, std::string_view fields = {}, std::string_view method = "GET") {
  return std::string(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: weir:8080\r\n").append(fields) +
         "\r\n";
}

class AuthorizeTest : public ::testing::Test {
 protected:
  // "peer=… method=… path=… host=… header:…": what is asked, or the whole response.
  std::string attributes(std::string_view bytes) {
    Queries queries;
    (void)peer_.session->receive(bytes, queries, {});
    if (queries.all().empty()) return peer_.take();
    std::string text;
    for (const auto& [name, value] : std::get<RequestFacts>(queries.all()[0].query.subject).attributes) {
      if (!name.starts_with("header:")) text.append(name).append("=").append(value).append(" ");
    }
    return text;
  }

  std::string reply(std::string_view bytes, const Result<Answer>& answer) {
    return peer_.send(bytes, [&](const Asked&) { return answer; });
  }

  static Answer answer_of(const Decision& decision) {
    Answer answer;
    answer.verdict.all.push_back(decision);
    answer.verdict.allowed = decision.allowed;
    answer.labels[0] = {"per-ip", "203.0.113.9", "ip", {"per-ip:203.0.113.9", 1s, 50ms}};
    answer.labelled = 1;
    return answer;
  }

  Health health_;
  CheckHandler handler_{health_};
  http::Http1Peer peer_{handler_, "10.0.0.1"};
};

TEST_F(AuthorizeTest, ReadsTheRequestFromTheHeadersOfTheProxy) {
  EXPECT_EQ(attributes(call("/v1/authorize",
                            "X-Forwarded-Method: POST\r\nX-Forwarded-Uri: /signin?a=b\r\n"
                            "X-Forwarded-Host: example.com\r\n")),
            "peer=10.0.0.1 method=POST path=/signin?a=b host=example.com ");
  EXPECT_EQ(attributes(call("/v1/authorize", "X-Original-Method: PUT\r\nX-Original-URI: /x\r\n", "HEAD")),
            "peer=10.0.0.1 method=PUT path=/x host=weir:8080 ");
  EXPECT_EQ(attributes(call("/v1/authorize?deny=403", {}, "DELETE")),
            "peer=10.0.0.1 method=DELETE path=/v1/authorize?deny=403 host=weir:8080 ");
}

TEST_F(AuthorizeTest, PassesEveryHeaderOn) {
  Queries queries;
  const std::string bytes =
      call("/v1/authorize", "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 5.6.7.8\r\nCookie: a=b\r\n");
  (void)peer_.session->receive(bytes, queries, {});
  ASSERT_EQ(queries.all().size(), 1u);
  std::string text;
  for (const auto& [name, value] : std::get<RequestFacts>(queries.all()[0].query.subject).attributes) {
    if (name.starts_with("header:")) text.append(name).append("=").append(value).append(" ");
  }
  EXPECT_EQ(text,
            "header:host=weir:8080 header:x-forwarded-for=1.2.3.4 header:x-forwarded-for=5.6.7.8 "
            "header:cookie=a=b ");
}

TEST_F(AuthorizeTest, OfTwoNamesForwardedCountsAndOfTwoLinesTheLast) {
  EXPECT_EQ(attributes(call("/v1/authorize", "X-Original-URI: /a\r\nX-Forwarded-Uri: /b\r\nX-Forwarded-Uri: /c\r\n")),
            "peer=10.0.0.1 method=GET path=/c host=weir:8080 ");
}

TEST_F(AuthorizeTest, AnswersWithAStatusAndHeadersAndNothingElse) {
  EXPECT_EQ(reply(call("/v1/authorize"), answer_of({true, 20, 19, 0ns, 50ms})),
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-RateLimit-Limit: 20\r\nX-RateLimit-Remaining: 19\r\n"
            "X-RateLimit-Reset: 1\r\nRateLimit-Policy: \"per-ip\";q=20;w=1\r\nRateLimit: \"per-ip\";r=19;t=1\r\n\r\n");
  const std::string denied = reply(call("/v1/authorize"), answer_of({false, 20, 0, 43ms, 993ms}));
  EXPECT_TRUE(denied.starts_with("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n")) << denied;
  EXPECT_NE(denied.find("Retry-After: 1\r\n"), std::string::npos);
  EXPECT_TRUE(denied.ends_with("\r\n\r\n"));
}

TEST_F(AuthorizeTest, ADenialMayBe403) {
  const Answer denied = answer_of({false, 20, 0, 43ms, 993ms});
  const std::string answer = reply(call("/v1/authorize?deny=403"), denied);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 ")) << answer;
  EXPECT_NE(answer.find("Retry-After: 1\r\n"), std::string::npos);
  EXPECT_TRUE(reply(call("/v1/authorize?deny=200"), denied).starts_with("HTTP/1.1 400 "));
}

TEST_F(AuthorizeTest, ACostThatCanNeverPassIsADenialWithoutRetryAfter) {
  const std::string answer = reply(call("/v1/authorize"), answer_of({false, 20, 20, kNever, 0ns}));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 429 ")) << answer;
  EXPECT_EQ(answer.find("Retry-After"), std::string::npos);
}

TEST_F(AuthorizeTest, WhatCannotBeDecidedSaysWhy) {
  const std::string answer =
      reply(call("/v1/authorize"), Error{Fault::invalid, "the request has no header:x", 0, "missing_key"});
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << answer;
  EXPECT_NE(answer.find(R"("error":"missing_key")"), std::string::npos);
}

// nginx makes 500 of every status of auth_request but 2xx, 401 and 403.
TEST_F(AuthorizeTest, WhoeverWants403ForADenialGetsItForEveryRefusal) {
  const Error away{Fault::unavailable, "the store cannot be asked", 429};
  const std::string closed = reply(call("/v1/authorize?deny=403"), away);
  EXPECT_TRUE(closed.starts_with("HTTP/1.1 403 ")) << closed;
  EXPECT_NE(closed.find(R"("error":"store_unavailable")"), std::string::npos);
  EXPECT_TRUE(reply(call("/v1/authorize"), away).starts_with("HTTP/1.1 429 "));
  const Error away503{Fault::unavailable, "the store cannot be asked", 503};
  EXPECT_TRUE(reply(call("/v1/authorize?deny=403"), away503).starts_with("HTTP/1.1 403 "));
  const Error missing{Fault::invalid, "the request has no header:x", 0, "missing_key"};
  EXPECT_TRUE(reply(call("/v1/authorize?deny=403"), missing).starts_with("HTTP/1.1 403 "));
  const Error own{Fault::internal, "a bug"};
  EXPECT_TRUE(reply(call("/v1/authorize?deny=403"), own).starts_with("HTTP/1.1 500 "));
}

TEST_F(AuthorizeTest, ARefusalBecauseTheStoreIsAwaySaysWhenToComeBack) {
  for (const int code : {429, 503}) {
    const std::string answer = reply(call("/v1/authorize"), Error{Fault::unavailable, "away", code});
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::to_string(code))) << answer;
    EXPECT_NE(answer.find("Retry-After: 1\r\n"), std::string::npos) << answer;
  }
}

TEST_F(AuthorizeTest, ARequestThatThePeerDoesNotFinishIsRefusedAndNothingElseIs) {
  const auto last_words = [this](std::string_view bytes) {
    http::Http1Peer peer{handler_, "10.0.0.1"};
    std::string out = peer.send(bytes);
    peer.session->end_of_input({});
    return out + peer.take();
  };
  const std::string half =
      "POST /v1/check HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 30\r\n\r\n{\"limit\":";
  for (const std::string& bytes : {half, std::string("GET /heal")}) {
    const std::string response = last_words(bytes);
    EXPECT_TRUE(response.starts_with("HTTP/1.1 400 Bad Request\r\n")) << response;
    EXPECT_NE(response.find("the connection ended in the middle of the request"), std::string::npos);
  }
  EXPECT_EQ(last_words(""), "");
  for (const char* behind : {"", "\r", "\r\n"}) {
    const std::string whole = last_words(call("/healthz") + behind);
    EXPECT_TRUE(whole.starts_with("HTTP/1.1 200 ")) << whole;
    EXPECT_EQ(whole.find("400"), std::string::npos) << whole;
  }
}

TEST_F(AuthorizeTest, ContentOfTheRequestIsReadAndForgotten) {
  const std::string bytes = "POST /v1/authorize HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n{x}";
  EXPECT_EQ(attributes(bytes + call("/v1/authorize")), "peer=10.0.0.1 method=POST path=/v1/authorize host=h ");
}

TEST_F(AuthorizeTest, ExplainNamesTheRouteAndTheLimits) {
  Answer answer = answer_of({true, 20, 19, 0ns, 50ms});
  answer.route = "signin";
  answer.labels[1] = {"per-ip", "203.0.113.9", "ip", {"per-ip:203.0.113.9", 1s, 50ms}};
  answer.labels[2].limit = "everyone";
  answer.labelled = 3;
  const std::string body = R"({"request":{"path":"/signin"}})";
  const std::string request =
      "POST /v1/check?explain=true HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  const std::string text = reply(request, answer);
  EXPECT_NE(
      text.find(
          R"(,"bucket":"per-ip:203.0.113.9","source":"limit"}],"route":"signin","limits":["per-ip","everyone"]})"),
      std::string::npos)
      << text;
}

}  // namespace
}  // namespace weir::authorize_test
