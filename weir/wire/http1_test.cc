#include "weir/wire/http1.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/wire/http1.h"
#include "weir/wire/http1_body.h"

namespace weir::http1_test {
namespace {

using namespace std::literals;

struct Parsed {
  HeadResult step;
  std::unique_ptr<RequestHead> head = std::make_unique<RequestHead>();
};

Parsed parse(std::string_view bytes) {
  Parsed parsed;
  parsed.step = parse_request_head(bytes, *parsed.head);
  return parsed;
}

TEST(HttpHead, ParsesARequest) {
  const std::string text =
      "POST /v1/check?explain=true HTTP/1.1\r\nHost: example.com:8080\r\ncontent-TYPE:\tapplication/json \r\n"
      "Content-Length: 12\r\nAccept: */*\r\nX-Empty:\r\n\r\n{\"rest\": 1}\n";
  const Parsed parsed = parse(text);
  EXPECT_EQ(parsed.step.size, text.size() - 12);
  EXPECT_EQ(parsed.head->method, "POST");
  EXPECT_EQ(parsed.head->target, "/v1/check?explain=true");
  EXPECT_EQ(parsed.head->path, "/v1/check");
  EXPECT_EQ(parsed.head->query, "explain=true");
  EXPECT_EQ(parsed.head->host, "example.com:8080");
  EXPECT_EQ(parsed.head->content_type, "application/json");
  EXPECT_EQ(parsed.head->accept, "*/*");
  EXPECT_TRUE(parsed.head->framing.http11);
  EXPECT_TRUE(parsed.head->framing.keep_alive);
  EXPECT_EQ(parsed.head->framing.content, HttpContent::length);
  EXPECT_EQ(parsed.head->framing.length, 12u);
  ASSERT_EQ(parsed.head->headers.all().size(), 5u);
  EXPECT_EQ(parsed.head->headers.find("x-empty")->value, "");
  EXPECT_EQ(parsed.head->headers.find("x-none"), nullptr);
}

TEST(HttpHead, ParsesEveryFormOfTarget) {
  const auto path = [](std::string_view line) {
    const std::string text = std::string(line) + " HTTP/1.1\r\nHost: h\r\n\r\n";
    const Parsed parsed = parse(text);
    return std::string(parsed.head->path) + "|" + std::string(parsed.head->query);
  };
  EXPECT_EQ(path("GET /a/b?c=d&e"), "/a/b|c=d&e");
  EXPECT_EQ(path("GET http://h:80/a?b"), "/a|b");
  EXPECT_EQ(path("GET HTTPS://h"), "/|");
  EXPECT_EQ(path("GET http://h?b"), "/|b");
  EXPECT_EQ(path("GET /?b=\\[]{}|^`'"), "/|b=\\[]{}|^`'") << "what browsers send unescaped";
  EXPECT_EQ(path("OPTIONS *"), "*|");
}

TEST(HttpHead, DecidesWhetherTheConnectionIsKeptAlive) {
  const auto stays = [](std::string_view version, std::string_view fields) {
    const std::string text = "GET / " + std::string(version) + "\r\nHost: h\r\n" + std::string(fields) + "\r\n";
    const Parsed parsed = parse(text);
    EXPECT_GT(parsed.step.size, 0u);
    return parsed.head->framing.keep_alive;
  };
  EXPECT_TRUE(stays("HTTP/1.1", ""));
  EXPECT_FALSE(stays("HTTP/1.1", "Connection: Close\r\n"));
  EXPECT_FALSE(stays("HTTP/1.1", "Connection: upgrade\r\nConnection: x , close\r\n"));
  EXPECT_TRUE(stays("HTTP/1.1", "Connection: closed\r\n"));
  EXPECT_FALSE(stays("HTTP/1.0", ""));
  EXPECT_TRUE(stays("HTTP/1.0", "Connection: keep-alive\r\n"));
  EXPECT_FALSE(stays("HTTP/1.0", "Connection: keep-alive, close\r\n"));
}

TEST(HttpHead, ExpectsContinueOnlyIfThereIsContent) {
  const auto expects = [](std::string_view version, std::string_view fields) {
    const std::string text =
        "POST / " + std::string(version) + "\r\nHost: h\r\nExpect: 100-Continue\r\n" + std::string(fields) + "\r\n";
    return parse(text).head->expects_continue;
  };
  EXPECT_TRUE(expects("HTTP/1.1", "Content-Length: 1\r\n"));
  EXPECT_TRUE(expects("HTTP/1.1", "Transfer-Encoding: chunked\r\n"));
  EXPECT_FALSE(expects("HTTP/1.1", "Content-Length: 0\r\n"));
  EXPECT_FALSE(expects("HTTP/1.1", ""));
  EXPECT_FALSE(expects("HTTP/1.0", "Content-Length: 1\r\n"));
}

struct Refusal {
  std::string_view text;
  int status;
  std::string_view sentence;
};

constexpr std::string_view kLineSentence =
    "the request line is not a method, a target and a version with one space between them";

TEST(HttpHead, RefusesAmbiguousRequests) {
  const std::vector<Refusal> refusals = {
      {"GET /\r\n", 400, kLineSentence},  // HTTP/0.9
      {"GET / HTTP/1.1\nHost: h\r\n\r\n", 400, "a line ends with LF alone; lines end with CRLF"},
      {"GET / HTTP/1.1\r\nHost: h\n\r\n", 400, "a line ends with LF alone; lines end with CRLF"},
      {"GET / HTTP/1.1\r\nHost: h\r\n\n", 400, "a line ends with LF alone; lines end with CRLF"},
      {"GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n", 400, "a header's value has a control character in it"},
      {"GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", 400, "a header is folded over two lines"},
      {"GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400, "a header is folded over two lines"},
      {"GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400, "a header's name is not a token"},
      {"GET / HTTP/1.1\r\nHost\r\n\r\n", 400, "a header has no colon"},
      {"GET / HTTP/1.1\r\n: h\r\n\r\n", 400, "a header's name is not a token"},
      {"GET / HTTP/1.1\r\nHost: h\r\nA: \0\r\n\r\n"sv, 400, "a header's value has a control character in it"},
      {"GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n"sv, 400, "the request target is empty or has a forbidden character"},
      {"GET / HTTP/1.1\r\n\r\n", 400, "the request has no Host"},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, "Host is given twice"},
      {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, "Host has a forbidden character"},
      {"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400,
       "Content-Length is given twice"},
      {"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\n", 400, "Content-Length is not a whole number"},
      {"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\n", 400, "Content-Length is not a whole number"},
      {"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400, "Content-Length is not a whole number"},
      {"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x1\r\n\r\n", 400, "Content-Length is not a whole number"},
      {"GET / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n", 400, "Content-Length is not a whole number"},
      {"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
       "Content-Length and Transfer-Encoding must not be combined"},
      {"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "HTTP/1.0 has no Transfer-Encoding"},
      {"GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501,
       "the only supported Transfer-Encoding is chunked"},
      {"GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n", 501,
       "the only supported Transfer-Encoding is chunked"},
      {"GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
       "Transfer-Encoding is given twice"},
      {"GET / HTTP/1.1\r\nHost: h\r\nExpect: the-worst\r\n\r\n", 417, "the only supported expectation is 100-continue"},
      {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505, "only HTTP/1.1 and HTTP/1.0 are supported"},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "only HTTP/1.1 and HTTP/1.0 are supported"},
      {"GET / HTTP/1.2\r\nHost: h\r\n\r\n", 505, "only HTTP/1.1 and HTTP/1.0 are supported"},
      {"GET / http/1.1\r\nHost: h\r\n\r\n", 400, kLineSentence},
      {"GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400, kLineSentence},
      {"GET /  HTTP/1.1\r\nHost: h\r\n\r\n", 400, kLineSentence},
      {"GET / HTTP/1.1 \r\nHost: h\r\n\r\n", 400, kLineSentence},
      {"GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request's method is not a token"},
      {"G(T / HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request's method is not a token"},
      {"GET a HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target is neither a path nor an http URL"},
      {"CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n", 405, "CONNECT is not supported"},
      {"GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target is neither a path nor an http URL"},
      {"GET http:///a HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target is neither a path nor an http URL"},
      {"GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target * is for OPTIONS only"},
      {"GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target is empty or has a forbidden character"},
      {"GET /a\\b?c HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target is empty or has a forbidden character"},
      {"GET /\xC3\xA4 HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target is empty or has a forbidden character"},
      {"\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request's method is not a token"},
      {"\x16\x03\x01", 400, "this is not an HTTP request"},
      {"\n", 400, "this is not an HTTP request"},
      {" GET / HTTP/1.1\r\n", 400, "this is not an HTTP request"},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.text);
    const Parsed parsed = parse(refusal.text);
    EXPECT_EQ(parsed.step.size, 0u);
    EXPECT_EQ(parsed.step.problem.status, refusal.status);
    EXPECT_EQ(parsed.step.problem.sentence, refusal.sentence);
  }
}

TEST(HttpHead, SkipsOneEmptyLineBeforeARequest) {
  EXPECT_EQ(parse("\r\nGET / HTTP/1.0\r\n\r\n").step.size, 20u);
}

TEST(HttpHead, ClampsALengthThatDoesNotFit) {
  const Parsed parsed = parse("GET / HTTP/1.0\r\nContent-Length: 99999999999999999999999\r\n\r\n");
  EXPECT_GT(parsed.step.size, 0u);
  EXPECT_EQ(parsed.head->framing.length, UINT64_MAX);
}

TEST(HttpHead, LimitsTheRequestLine) {
  const auto line = [](std::size_t size) {
    std::string text = "GET /";
    return text.append(size - text.size() - 9, 'a') + " HTTP/1.0\r\n\r\n";
  };
  EXPECT_GT(parse(line(bounds::http_request_line_bytes_max)).step.size, 0u);
  EXPECT_EQ(parse(line(bounds::http_request_line_bytes_max + 1)).step.problem.status, 431);
  EXPECT_EQ(parse(std::string(bounds::http_request_line_bytes_max + 1, 'a')).step.problem.status, 0);
  EXPECT_EQ(parse(std::string(bounds::http_request_line_bytes_max + 2, 'a')).step.problem.status, 431);
}

TEST(HttpHead, LimitsTheHead) {
  const auto head = [](std::size_t size) {
    std::string text = "GET / HTTP/1.0\r\nA: ";
    return text.append(size - text.size() - 4, 'a') + "\r\n\r\n";
  };
  EXPECT_EQ(parse(head(bounds::http_head_bytes_max)).step.size, bounds::http_head_bytes_max);
  EXPECT_EQ(parse(head(bounds::http_head_bytes_max + 1)).step.problem.status, 431);
}

TEST(HttpHead, LimitsTheNumberOfHeaders) {
  std::string text = "GET / HTTP/1.0\r\n";
  for (std::size_t i = 0; i < bounds::http_headers_max; ++i) text += "A: b\r\n";
  EXPECT_GT(parse(text + "\r\n").step.size, 0u);
  EXPECT_EQ(parse(text + "A: b\r\n\r\n").step.problem.status, 431);
}

TEST(HttpResponseHead, DeterminesHowTheContentEnds) {
  const auto content = [](std::string_view text, bool to_head = false) {
    ResponseHead head;
    const HeadResult step = parse_response_head(text, to_head, head);
    EXPECT_EQ(step.size, text.size());
    return head.framing.content;
  };
  EXPECT_EQ(content("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"), HttpContent::length);
  EXPECT_EQ(content("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), HttpContent::chunked);
  EXPECT_EQ(content("HTTP/1.1 200\r\n\r\n"), HttpContent::until_close);
  EXPECT_EQ(content("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true), HttpContent::none);
  EXPECT_EQ(content("HTTP/1.1 204 No Content\r\n\r\n"), HttpContent::none);
  EXPECT_EQ(content("HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n"), HttpContent::none);
  for (const std::string_view bad : {"HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 099 OK\r\n\r\n", "HTTP/2 200 OK\r\n\r\n",
                                     "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 O\x01K\r\n\r\n", "SSH-2.0\r\n"}) {
    ResponseHead head;
    EXPECT_EQ(parse_response_head(bad, false, head).problem.status, 502) << bad;
  }
}

struct Decoded {
  std::string content;
  std::size_t used = 0;
  int status = 0;
  bool done = false;
};

Decoded decode(std::string_view bytes, HttpContent content, std::uint64_t length, std::uint64_t max,
               std::size_t piece) {
  HttpFraming framing;
  framing.content = content;
  framing.length = length;
  HttpBody body(framing, max);
  Decoded decoded;
  for (std::size_t end = std::min(piece, bytes.size());; end = std::min(end + piece, bytes.size())) {
    for (;;) {
      const HttpBody::BodyPiece step = body.next(bytes.substr(decoded.used, end - decoded.used));
      decoded.status = step.problem.status;
      if (step.problem) return decoded;
      if (step.consumed == 0) break;
      decoded.content += step.content;
      decoded.used += step.consumed;
    }
    decoded.done = body.done();
    if (decoded.done || end == bytes.size()) return decoded;
  }
}

TEST(HttpBody, JoinsChunksHoweverTheyAreSplit) {
  const std::string text = "4\r\nwiki\r\n00A;name=value\r\n0123456789\r\n0\r\nTrailer: yes\r\n\r\nnext";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    const Decoded decoded = decode(text, HttpContent::chunked, 0, 14, piece);
    EXPECT_TRUE(decoded.done);
    EXPECT_EQ(decoded.content, "wiki0123456789");
    EXPECT_EQ(decoded.used, text.size() - 4);
  }
  EXPECT_EQ(decode(text, HttpContent::chunked, 0, 13, text.size()).status, 413);
}

TEST(HttpBody, KeepsTheTrailers) {
  HttpFraming framing;
  framing.content = HttpContent::chunked;
  HttpBody body(framing, 100);
  EXPECT_TRUE(body.trailers().empty());
  const std::string text = "0\r\nsum:  1 \r\nEmpty:\r\n\r\n";
  for (std::size_t used = 0; !body.done();) used += body.next(std::string_view(text).substr(used)).consumed;
  const std::vector<HttpHeader> trailers = body.trailers();
  ASSERT_EQ(trailers.size(), 2u);
  EXPECT_EQ(trailers[0].name, "sum");
  EXPECT_EQ(trailers[0].value, "1");
  EXPECT_EQ(trailers[1].name, "Empty");
  EXPECT_EQ(trailers[1].value, "");
}

TEST(HttpWrite, WritesChunksAndTrailers) {
  std::string out;
  write_chunk("0123456789abcdef", out);
  write_chunk("", out);
  const HttpHeader trailer{"sum", "1"};
  write_last_chunk({&trailer, 1}, out);
  EXPECT_EQ(out, "10\r\n0123456789abcdef\r\n0\r\nsum: 1\r\n\r\n");
}

TEST(HttpWrite, LeavesOutFramingFields) {
  std::string out;
  const HttpHeader list[] = {{"Keep-Alive", "timeout=5"}, {"X-One", "1"}, {"content-LENGTH", "7"}};
  write_fields({"Connection: close\r\nX-Two: 2\r\nTransfer-Encoding: chunked\r\nUPGRADE: x\r\n"
                "Proxy-Connection: close\r\nx-last: 3",
                list},
               out);
  EXPECT_EQ(out, "X-Two: 2\r\nx-last: 3\r\nX-One: 1\r\n");
}

TEST(HttpBody, RefusesMalformedChunks) {
  for (const std::string_view bad : {"\r\n", "x\r\n", "4 \r\nwiki\r\n", "-1\r\n", "0x4\r\nwiki\r\n", "4\nwiki\r\n",
                                     "4\r\nwikiX", "4\r\nwiki\rX", "4\r\nwiki\n", "0\r\nno colon\r\n\r\n",
                                     "0\r\n: x\r\n\r\n", "0\r\na b: x\r\n\r\n", "0\r\n x: y\r\n\r\n", "1;a\x01\r\n"}) {
    EXPECT_EQ(decode(bad, HttpContent::chunked, 0, 100, bad.size()).status, 400) << bad;
    EXPECT_EQ(decode(bad, HttpContent::chunked, 0, 100, 1).status, 400) << bad;
  }
  EXPECT_EQ(decode("fffffffffffffffff\r\n", HttpContent::chunked, 0, 100, 100).status, 413);
  EXPECT_EQ(decode("ffffffffffffffff\r\n", HttpContent::chunked, 0, 100, 100).status, 413);
}

TEST(HttpBody, LimitsChunkLinesExtensionsAndTrailers) {
  const auto status = [](const std::string& text) {
    return decode(text, HttpContent::chunked, 0, 1 << 20, text.size()).status;
  };
  EXPECT_EQ(status("1;" + std::string(bounds::http_chunk_line_bytes_max - 2, 'a') + "\r\n"), 0);
  EXPECT_EQ(status("1;" + std::string(bounds::http_chunk_line_bytes_max - 1, 'a') + "\r\n"), 400);
  EXPECT_EQ(status("1;" + std::string(bounds::http_chunk_line_bytes_max, 'a')), 400);
  std::string extensions;
  for (std::size_t i = 0; i < bounds::http_chunk_spare_bytes_max / 1024; ++i) {
    extensions += "1;" + std::string(1022, 'a') + "\r\nx\r\n";
  }
  // 1,023 bytes of each kilobyte are extension.
  const std::string rest(bounds::http_chunk_spare_bytes_max / 1024 - 1, 'b');
  EXPECT_EQ(status(extensions + "1;" + rest + "\r\nx\r\n0\r\n\r\n"), 0);
  EXPECT_EQ(status(extensions + "1;" + rest + "b\r\nx\r\n0\r\n\r\n"), 400);
  std::string trailers;
  for (std::size_t i = 0; i < bounds::http_chunk_spare_bytes_max / 64; ++i)
    trailers += "a:" + std::string(62, 'b') + "\r\n";
  EXPECT_EQ(status("0\r\n" + trailers + "\r\n"), 0);
  EXPECT_EQ(status("0\r\n" + trailers + "a:b\r\n\r\n"), 400);
}

TEST(HttpBody, EnforcesTheContentLimit) {
  EXPECT_EQ(decode("abcdef", HttpContent::length, 4, 4, 3).content, "abcd");
  EXPECT_EQ(decode("abcdef", HttpContent::length, 5, 4, 3).status, 413);
  EXPECT_TRUE(decode("abcdef", HttpContent::length, 0, 4, 3).done);
  EXPECT_EQ(decode("abcd", HttpContent::until_close, 0, 4, 3).content, "abcd");
  EXPECT_EQ(decode("abcde", HttpContent::until_close, 0, 4, 3).status, 413);
}

TEST(HttpWrite, WritesLengthAndContentTypeAndOmitsFramingWithoutContent) {
  const auto written = [](const HttpResponseHead& head) {
    std::string text;
    write_response_head(head, text);
    return text;
  };
  HttpResponseHead head;
  head.status = 429;
  head.content_type = "text/plain";
  head.content = HttpContent::length;
  head.length = 9;
  EXPECT_EQ(written(head), "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\n");
  head = {};
  head.status = 204;
  head.http11 = false;
  EXPECT_EQ(written(head), "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n");
}

TEST(HttpWrite, WritesDatesInTheFormatOfRfc9110) {
  const auto date = [](std::int64_t seconds) {
    std::string text;
    write_date_field(std::chrono::sys_seconds{std::chrono::seconds{seconds}}, text);
    return text;
  };
  EXPECT_EQ(date(784'111'777), "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
  EXPECT_EQ(date(0), "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n");
  EXPECT_EQ(date(1'709'251'199), "Date: Thu, 29 Feb 2024 23:59:59 GMT\r\n");
  EXPECT_EQ(date(253'402'300'799), "Date: Fri, 31 Dec 9999 23:59:59 GMT\r\n");
}

TEST(HttpWords, FindsWordsMediaTypesAndQueryValues) {
  EXPECT_TRUE(accepts_exactly("text/html, Application/Problem+JSON;q=0.5", "application/problem+json"));
  EXPECT_FALSE(accepts_exactly("application/problem+json;q=0.0", "application/problem+json"));
  EXPECT_FALSE(accepts_exactly("*/*", "application/problem+json"));
  EXPECT_EQ(media_type_of("application/json ; charset=utf-8"), "application/json");
  EXPECT_EQ(query_value("a=1&deep=true&b", "deep"), "true");
  EXPECT_EQ(query_value("xdeep=true&deep", "deep"), "");
}

TEST(HttpLimits, LowerWhatAHeadMayHave) {
  HttpLimits limits;
  limits.line_bytes_max = 300;
  limits.head_bytes_max = 1024;
  limits.line_status = 414;
  RequestHead head;
  const auto status = [&](std::size_t line, std::size_t all) {
    std::string text = "GET /" + std::string(line - 14, 'a') + " HTTP/1.1\r\nHost: h\r\nX: ";
    text += std::string(all - text.size() - 4, 'b') + "\r\n\r\n";
    const HeadResult parsed = parse_request_head(text, head, limits);
    return parsed.problem ? parsed.problem.status : parsed.size == text.size() ? 200 : 0;
  };
  EXPECT_EQ(status(300, 1024), 200);
  EXPECT_EQ(status(301, 1024), 414);
  EXPECT_EQ(status(300, 1025), 431);
}

}  // namespace
}  // namespace weir::http1_test
