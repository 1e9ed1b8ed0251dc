// Who may call the decision API: no web page, and with tokens nobody else.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/testing/http1_peer.h"
#include "weir/protocol/http/check_handler.h"

namespace weir::http_callers_test {
namespace {

// The status of the answer to one request; every question is allowed.
class HttpCallersTest : public ::testing::Test {
 protected:
  std::string send(std::string_view bytes) {
    http::Http1Peer peer(*handler_ptr_, "127.0.0.1");
    asked_.clear();
    const std::string out = peer.send(bytes, [&](const Asked& asked) {
      if (const auto* const facts = std::get_if<RequestFacts>(&asked.query.subject)) {
        for (const Attribute& attribute : facts->attributes) {
          asked_.append(attribute.name).append("=").append(attribute.value).append(" ");
        }
      }
      return Answer{};
    });
    EXPECT_FALSE(peer.lost);
    return out;
  }
  std::string status(std::string_view path, std::string_view fields, std::string_view method = "POST") {
    constexpr std::string_view kContent = R"({"limit":"a","id":"b"})";
    std::string text(method);
    text.append(" ").append(path).append(" HTTP/1.1\r\nHost: h\r\n").append(fields);
    if (method == "POST") text.append("Content-Length: ").append(std::to_string(kContent.size())).append("\r\n");
    text.append("\r\n").append(method == "POST" ? kContent : "");
    return send(text).substr(9, 3);
  }

  Health health_;
  CheckHandler handler_{health_};
  CheckHandler* handler_ptr_ = &handler_;
  std::string asked_;  // attributes of the last questions
};

constexpr std::string_view kJson = "Content-Type: application/json\r\n";

TEST_F(HttpCallersTest, AWebPageCannotPostBecauseItCannotSendJsonUnasked) {
  for (const std::string_view path : {"/v1/check", "/v1/throttle", "/v1/peek", "/v1/refund", "/v1/reset"}) {
    for (const std::string_view fields : {"", "Content-Type: text/plain\r\n", "Content-Type:\r\n"}) {
      EXPECT_EQ(status(path, fields), "415") << path << " " << fields;
    }
  }
  EXPECT_NE(status("/v1/check", kJson), "415");
  EXPECT_NE(status("/v1/authorize", ""), "415");
  EXPECT_NE(send("POST /v1/reset HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n").find("unsupported_media_type"),
            std::string::npos);
}

class HttpTokensTest : public HttpCallersTest {
 protected:
  void require(HttpTokens tokens) { second_.tokens = std::move(tokens); }

  std::string ask(std::string_view path, std::string_view fields, std::string_view method = "POST") {
    handler_ptr_ = &second_;
    return status(path, std::string(fields) + (method == "POST" ? std::string(kJson) : ""), method);
  }
  CheckHandler second_{health_};
};

TEST_F(HttpTokensTest, ACallerNeedsTheTokenOfItsListener) {
  EXPECT_EQ(ask("/v1/check", ""), "200");
  require({{"old", "new"}, ""});
  for (const std::string_view path : {"/v1/check", "/v1/peek", "/v1/refund", "/v1/authorize", "/v1/none", "/json"}) {
    EXPECT_EQ(ask(path, ""), "401") << path;
    EXPECT_EQ(ask(path, "X-Weir-Token: ol\r\n"), "401") << path;
    EXPECT_EQ(ask(path, "X-Weir-Token:\r\n"), "401") << path;
    EXPECT_EQ(ask(path, "Authorization: Basic new\r\n"), "401") << path;
  }
  EXPECT_EQ(ask("/v1/check?token=new", ""), "401");
  EXPECT_EQ(ask("/v1/check", "X-Weir-Token: old\r\n"), "200");
  EXPECT_EQ(ask("/v1/check", "x-weir-token: new\r\n"), "200");
  EXPECT_EQ(ask("/v1/check", "Authorization: Bearer new\r\n"), "200");
  EXPECT_EQ(ask("/v1/none", "X-Weir-Token: new\r\n"), "404");
  EXPECT_EQ(ask("/healthz", "", "GET"), "200");
  EXPECT_EQ(status("/v1/check", kJson), "401") << "this is the handler of the second listener";
  handler_ptr_ = &handler_;
  EXPECT_EQ(status("/v1/check", kJson), "200") << "the first listener has no tokens";
  require({});
  EXPECT_EQ(ask("/v1/check", ""), "200") << "changes live";
}

TEST_F(HttpTokensTest, RefundAndResetNeedTheWriteToken) {
  require({{"reader"}, "writer"});
  for (const std::string_view path : {"/v1/refund", "/v1/reset"}) {
    EXPECT_EQ(ask(path, ""), "401") << path;
    EXPECT_EQ(ask(path, "X-Weir-Token: reader\r\n"), "403") << path;
    EXPECT_EQ(ask(path, "X-Weir-Token: writer\r\n").substr(0, 2), "20") << path;
  }
  EXPECT_EQ(ask("/v1/check", "Authorization: Bearer writer\r\n"), "200");
  require({{}, "writer"});
  EXPECT_EQ(ask("/v1/check", ""), "200");
  EXPECT_EQ(ask("/v1/reset", ""), "401");
}

TEST_F(HttpTokensTest, OnAuthorizeTheAuthorizationFieldIsTheClients) {
  require({{"secret"}, ""});
  EXPECT_EQ(ask("/v1/authorize", "Authorization: Bearer secret\r\n", "GET"), "401");
  EXPECT_EQ(ask("/v1/authorize", "X-Weir-Token: secret\r\nAuthorization: Bearer client\r\n", "GET"), "200");
  EXPECT_NE(asked_.find("header:authorization=Bearer client"), std::string::npos);
  EXPECT_EQ(asked_.find("x-weir-token"), std::string::npos) << "what authenticates the caller is no attribute";
}

}  // namespace
}  // namespace weir::http_callers_test
