#include "weir/wire/http.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/wire/http1.h"

namespace weir::http_test {
namespace {

std::vector<HttpHeader> request(std::vector<HttpHeader> more = {}) {
  std::vector<HttpHeader> fields = {
      {":method", "POST"}, {":scheme", "https"}, {":authority", "h:1"}, {":path", "/a/b?c=d"}};
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

// What a handler can see, in words; or the problem.
std::string record(const HttpProblem& problem, const RequestHead& head) {
  if (problem) return std::to_string(problem.status) + " " + std::string(problem.sentence);
  std::string out;
  const auto add = [&](std::string_view text) { out.append(text).append("|"); };
  for (const std::string_view text : {head.method, head.target, head.path, head.query, head.host, head.content_type,
                                      head.content_encoding, head.accept, head.upgrade})
    add(text);
  add(head.content_length ? std::to_string(*head.content_length) : "none");
  add(head.expects_continue ? "expects" : "");
  for (const HttpHeader& header : head.headers.all())
    out.append(header.name).append("=").append(header.value).append(";");
  return out;
}

std::string check(const std::vector<HttpHeader>& fields, bool has_body = true) {
  const auto head = std::make_unique<RequestHead>();
  return record(check_request(fields, has_body, *head), *head);
}

std::string parse(std::string_view text) {
  const auto head = std::make_unique<RequestHead>();
  return record(parse_request_head(text, *head).problem, *head);
}

TEST(CheckRequest, GivesTheSameHeadInBothVersions) {
  EXPECT_EQ(
      check(request({{"content-type", "text/plain"}, {"content-length", "3"}, {"accept", "a/b"}})),
      "POST|/a/b?c=d|/a/b|c=d|h:1|text/plain||a/b||3||content-type=text/plain;content-length=3;accept=a/b;host=h:1;");
  const auto same = [](std::string_view fields, const std::vector<HttpHeader>& more) {
    EXPECT_EQ(parse("POST /a/b?c=d HTTP/1.1\r\n" + std::string(fields) + "host: h:1\r\n\r\n"), check(request(more)));
  };
  same("", {});
  same("content-length: 0\r\n", {{"content-length", "0"}});
  same("content-length: 18446744073709551616\r\n", {{"content-length", "18446744073709551616"}});
  same("content-length: 3\r\nexpect: 100-Continue\r\n", {{"content-length", "3"}, {"expect", "100-Continue"}});
  same("content-encoding: gzip\r\ncookie: a\r\n", {{"content-encoding", "gzip"}, {"cookie", "a"}});
  same("expect: wonders\r\n", {{"expect", "wonders"}});
  same("content-length: 1\r\ncontent-length: 1\r\n", {{"content-length", "1"}, {"content-length", "1"}});
  same("content-length: -1\r\n", {{"content-length", "-1"}});
}

TEST(CheckRequest, GivesTheSameAnswerToABadTargetInBothVersions) {
  for (const std::string_view target : {"/", "/?", "*", "/a#b", "/<", "http://h/x?y", "ftp://h/", "a", "http://"}) {
    EXPECT_EQ(parse("GET " + std::string(target) + " HTTP/1.1\r\nhost: h\r\n\r\n"),
              check({{":method", "GET"}, {":scheme", "http"}, {":path", target}, {"host", "h"}}, false))
        << target;
  }
}

TEST(CheckRequest, ListsTheAuthorityAsHostOnce) {
  EXPECT_EQ(check(request({{"host", "h:1"}})), check(request()));
  EXPECT_EQ(check(request({{"host", "h:1"}, {"host", "h:1"}})), "400 Host is given twice");
  EXPECT_EQ(check({{":method", "GET"}, {":scheme", "http"}, {":path", "/"}}), "400 the request has no Host");
  EXPECT_EQ(check({{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a b"}}),
            "400 Host has a forbidden character");
}

TEST(CheckRequest, AcceptsTheSchemesOfTheWebOnly) {
  const auto scheme = [](std::string_view name) {
    return check({{":method", "GET"}, {":scheme", name}, {":path", "/"}, {":authority", "h"}}, false);
  };
  EXPECT_EQ(scheme("http"), scheme("HTTPS"));
  EXPECT_EQ(scheme("ftp"), "400 the request's scheme is not http or https");
}

TEST(CheckRequest, CountsTheHostAmongTheHundredHeaders) {
  const std::vector<HttpHeader> most(bounds::http_headers_max - 1, {"a", "b"});
  EXPECT_TRUE(check(request(most)).starts_with("POST|"));
  const std::vector<HttpHeader> more(bounds::http_headers_max, {"a", "b"});
  EXPECT_EQ(check(request(more)), "431 there are more than 100 headers");
}

TEST(CheckRequest, ExpectsNothingWithoutABody) {
  EXPECT_NE(check(request({{"expect", "100-continue"}}), true).find("|expects|"), std::string::npos);
  EXPECT_EQ(check(request({{"expect", "100-continue"}}), false).find("|expects|"), std::string::npos);
}

TEST(CheckRequest, BoundsThePathLikeARequestLine) {
  const auto path = [](std::size_t bytes) {
    const std::string text(bytes, '/');
    return check({{":method", "GET"}, {":scheme", "http"}, {":path", text}, {":authority", "h"}}, false);
  };
  EXPECT_TRUE(path(bounds::http_request_line_bytes_max).starts_with("GET|"));
  EXPECT_EQ(path(bounds::http_request_line_bytes_max + 1), "431 the request line is longer than 63 KiB");
}

TEST(CheckRequest, TellsWhichProtocolsAnUpgradeIsFor) {
  const auto upgrade = [](std::string_view fields, std::string_view version = "1.1") {
    const auto head = std::make_unique<RequestHead>();
    const std::string text = "GET / HTTP/" + std::string(version) + "\r\nHost: h\r\n" + std::string(fields) + "\r\n";
    EXPECT_FALSE(parse_request_head(text, *head).problem);
    return std::string(head->upgrade);
  };
  EXPECT_EQ(upgrade("Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"), "websocket");
  EXPECT_EQ(upgrade("Upgrade: websocket\r\n"), "");
  EXPECT_EQ(upgrade("Connection: upgrade\r\n"), "");
  EXPECT_EQ(upgrade("Upgrade: websocket\r\nConnection: Upgrade\r\n", "1.0"), "");
}

}  // namespace
}  // namespace weir::http_test
