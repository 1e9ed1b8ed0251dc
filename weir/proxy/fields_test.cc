#include "weir/proxy/fields.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "weir/wire/http1.h"

namespace weir::proxy::fields_test {
namespace {

struct Head {
  std::string text;
  RequestHead head;
  explicit Head(std::string_view fields) : text("GET /a HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n") {
    EXPECT_EQ(parse_request_head(text, head).size, text.size());
  }
};

// The lines a backend gets.
std::string forwarded(std::string_view fields, bool trusted = false, std::string_view peer = "192.0.2.7") {
  const Head request(fields);
  FieldList kept;
  const std::vector<std::string> decisive = {"x-api-key", "x-both", "x_both", "x_tenant"};
  keep_request_fields(request.head, trusted, decisive, kept);
  std::string lines;
  write_request_fields({kept.begin(), kept.size()}, {peer, "http", "h", "id"}, lines);
  return lines;
}

const std::string kOwn =
    "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\nX-Request-Id: id\r\n";

TEST(RequestFields, EndToEndFieldsArePassedAsWritten) {
  EXPECT_EQ(forwarded("Accept: */*\r\nCookie: a=b\r\nVia: 1.1 x\r\nServer: s\r\nAuthorization: Bearer t\r\n"),
            "Accept: */*\r\nCookie: a=b\r\nVia: 1.1 x\r\nServer: s\r\nAuthorization: Bearer t\r\n" + kOwn);
}

TEST(RequestFields, HopByHopFieldsAreRemoved) {
  EXPECT_EQ(forwarded("Connection: keep-alive\r\nKeep-Alive: timeout=5\r\nProxy-Connection: close\r\nTE: gzip\r\n"
                      "Upgrade: websocket\r\nProxy-Authorization: x\r\nProxy-Authenticate: x\r\nHTTP2-Settings: AA\r\n"
                      "Content-Length: 0\r\nExpect: 100-continue\r\n"),
            kOwn);
}

TEST(RequestFields, FieldsThatConnectionNamesAreRemoved) {
  EXPECT_EQ(forwarded("Connection: x-api-key, close\r\nX-API-Key: k\r\nX-Other: o\r\n"), "X-Other: o\r\n" + kOwn);
  EXPECT_EQ(forwarded("X-A: 1\r\nConnection: close\r\nConnection: X-A ,x-b\r\nX-B: 2\r\n"), kOwn);
  EXPECT_EQ(forwarded("Connection: X-Forwarded-For\r\nX-Forwarded-For: 1.2.3.4\r\n", true), kOwn);
}

TEST(RequestFields, AnUntrustedPeerSaysNothingAboutItsClient) {
  EXPECT_EQ(forwarded("X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\n"
                      "X-Forwarded-Anything: 1\r\nX-Real-IP: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\n"),
            kOwn);
  EXPECT_EQ(forwarded("X_Forwarded_For: 1.2.3.4\r\nx-forwarded_proto: https\r\nX_REAL_IP: 1\r\nX_Real-IP: 2\r\n"),
            kOwn);
  EXPECT_EQ(forwarded("X-Forwarded: 1\r\nX_Custom: 2\r\n"), "X-Forwarded: 1\r\nX_Custom: 2\r\n" + kOwn);
}

TEST(RequestFields, OtherSpellingsOfAFieldThatDecidesAreRemoved) {
  EXPECT_EQ(
      forwarded("X_API_Key: 1\r\nx_api-key: 2\r\nX-API-Key: 3\r\nX-Tenant: 4\r\nX_Tenant: 5\r\nX_Other: 6\r\n", true),
      "X-API-Key: 3\r\nX_Tenant: 5\r\nX_Other: 6\r\n" + kOwn);
  EXPECT_EQ(forwarded("X-Both: 1\r\nX_Both: 2\r\n"), "X-Both: 1\r\nX_Both: 2\r\n" + kOwn) << "two fields that decide";
  EXPECT_EQ(forwarded("X_Request_Id: 1\r\nX_Request-ID: 2\r\n", true), kOwn);
}

TEST(RequestFields, ATrustedPeersXForwardedForIsAppendedToAndTheOthersAreKept) {
  EXPECT_EQ(forwarded("X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 5.6.7.8, 9.9.9.9\r\nX-Forwarded-Proto: https\r\n"
                      "X-Forwarded-Host: a.b\r\nX-Real-IP: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\n",
                      true),
            "X-Forwarded-Proto: https\r\nX-Forwarded-Host: a.b\r\nX-Real-IP: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\n"
            "X-Forwarded-For: 1.2.3.4, 5.6.7.8, 9.9.9.9, 192.0.2.7\r\nX-Request-Id: id\r\n");
  EXPECT_EQ(forwarded("X_Forwarded_For: 1.2.3.4\r\n", true), kOwn) << "two spellings of a field that Weir writes";
}

TEST(RequestFields, APeerOnAUnixSocketHasNoAddress) {
  EXPECT_EQ(forwarded("", false, ""), "X-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\nX-Request-Id: id\r\n");
  EXPECT_EQ(forwarded("X-Forwarded-For: 1.2.3.4\r\n", true, ""),
            "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\nX-Request-Id: id\r\n");
}

TEST(RequestFields, TeIsOfThisConnection) {
  EXPECT_EQ(forwarded("TE: trailers, deflate;q=0.5\r\n"), kOwn);
  EXPECT_TRUE(takes_trailers(Head("TE: deflate;q=0.5, Trailers\r\n").head));
  EXPECT_FALSE(takes_trailers(Head("TE: deflate\r\n").head));
}

TEST(RequestId, IsKeptIfItIsPlainAndShort) {
  const auto id = [](const std::string& value) {
    const Head request("X-Request-Id: " + value + "\r\n");
    return std::string(usable_request_id(request.head));
  };
  EXPECT_EQ(id("aZ09._:-"), "aZ09._:-");
  EXPECT_EQ(id(std::string(128, 'a')), std::string(128, 'a'));
  EXPECT_EQ(id(std::string(129, 'a')), "");
  EXPECT_EQ(id("a b"), "");
  EXPECT_EQ(id("a\"b"), "");
  EXPECT_EQ(id(""), "");
  EXPECT_EQ(usable_request_id(Head("").head), "");
}

std::string returned(std::string_view fields, bool has_rate_headers) {
  const std::string text = "HTTP/1.1 200 OK\r\n" + std::string(fields) + "\r\n";
  ResponseHead head;
  EXPECT_EQ(parse_response_head(text, false, head).size, text.size());
  std::string lines;
  write_response_fields(head, has_rate_headers, lines);
  return lines;
}

TEST(ResponseFields, ServerAndViaAreUnchangedAndHopByHopFieldsRemoved) {
  EXPECT_EQ(returned("Server: nginx\r\nVia: 1.1 a\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nConnection: close, x-hop\r\n"
                     "X-Hop: 1\r\nKeep-Alive: timeout=5\r\nContent-Length: 0\r\nX-Request-Id: theirs\r\n",
                     false),
            "Server: nginx\r\nVia: 1.1 a\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n");
}

TEST(ResponseFields, RateHeadersAreReplacedWhereALimitWasChecked) {
  const std::string rates =
      "X-RateLimit-Limit: 1\r\nX-Ratelimit-Remaining: 0\r\nX-RateLimit-Reset: 9\r\nRateLimit: \"a\";r=1\r\n"
      "RateLimit-Policy: \"a\";q=1\r\nX-RateLimit-Degraded: true\r\n";
  EXPECT_EQ(returned(rates + "RateLimiter: x\r\nRetry-After: 3\r\n", true), "RateLimiter: x\r\nRetry-After: 3\r\n");
  EXPECT_EQ(returned(rates, false), rates);
}

TEST(Trailers, CrossUnlessTheyFrameTheMessageOrSayWhoTheClientIs) {
  const std::vector<HttpHeader> trailers = {{"grpc-status", "0"},     {"Host", "h"},
                                            {"Content-Length", "1"},  {"Transfer-Encoding", "x"},
                                            {"Connection", "close"},  {"TE", "trailers"},
                                            {"Expect", "x"},          {"X-Forwarded-For", "1.2.3.4"},
                                            {"X_Real_IP", "1.2.3.4"}, {"X-Request-Id", "mine"},
                                            {"X-Hop", "1"},           {"X-RateLimit-Limit", "1"}};
  const auto names = [&](std::string_view options, bool has_rate_headers) {
    std::string all;
    for (const HttpHeader& field : keep_trailers(trailers, options, has_rate_headers)) all.append(field.name) += ' ';
    return all;
  };
  EXPECT_EQ(names("", false), "grpc-status X-Hop X-RateLimit-Limit ");
  EXPECT_EQ(names("close, x-hop,", true), "grpc-status ");
  EXPECT_EQ(connection_options(Head("Connection: close\r\nA: b\r\nconnection: X-Hop, te\r\n").head.headers.all()),
            "close,X-Hop, te,");
}

TEST(OriginForm, IsThePathAndQueryOfTheOriginalBytes) {
  EXPECT_EQ(origin_form("GET", "/a//b/../c;x?d=%69"), "/a//b/../c;x?d=%69");
  EXPECT_EQ(origin_form("GET", "http://h:80/a?b"), "/a?b");
  EXPECT_EQ(origin_form("GET", "http://h"), "/");
  EXPECT_EQ(origin_form("GET", "http://h?a"), "?a");
  EXPECT_EQ(origin_form("OPTIONS", "*"), "*");
  EXPECT_EQ(origin_form("OPTIONS", "http://h"), "*");
  EXPECT_EQ(origin_form("OPTIONS", "http://h/"), "/");
  EXPECT_EQ(origin_form("OPTIONS", "http://h?a"), "?a");
}

}  // namespace
}  // namespace weir::proxy::fields_test
