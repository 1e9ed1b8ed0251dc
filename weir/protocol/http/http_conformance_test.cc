#include <memory>
#include <string>
#include <string_view>

#include "weir/http/http1_session.h"
#include "weir/http/http_shared.h"
#include "weir/protocol/http/check_handler.h"
#include "weir/protocol/testing/http_texts.h"
#include "weir/protocol/testing/session_conformance.h"

namespace weir::http_conformance_test {
namespace {

// A session with a handler of its own.
class Alone final : public Session {
 public:
  explicit Alone(Output& output) : session_(shared_, handler_, {output, {}, {}, {}, false}) { health_.ready = true; }
  Result<std::size_t> receive(std::string_view bytes, Queries& queries, Now now) override {
    return session_.receive(bytes, queries, now);
  }
  bool has_more() const noexcept override { return session_.has_more(); }
  void resume(Queries& queries, Now now) override { session_.resume(queries, now); }
  void reply(std::uint64_t token, const Result<Answer>& answer) override { session_.reply(token, answer); }
  bool reading() const noexcept override { return session_.reading(); }
  bool finished() const noexcept override { return session_.finished(); }
  void drain(Time now) override { session_.drain(now); }

 private:
  Health health_;
  CheckHandler handler_{health_};
  http::HttpShared shared_;
  http::Http1Session session_;
};

std::string post(std::string_view path, std::string_view content, std::string_view fields = {}) {
  std::string text = "POST ";
  text.append(path).append(" HTTP/1.1\r\nHost: h\r\nContent-Length: ").append(std::to_string(content.size()));
  if (fields.find("Content-Type") == fields.npos) text.append("\r\nContent-Type: application/json");
  return text.append("\r\n").append(fields).append("\r\n").append(content);
}

// What the kit's canned answer reads like.
std::string allowed(int cost, std::string_view seconds, std::string_view more_fields = {}) {
  const std::string numbers = R"("burst":100,"remaining":)" + std::to_string(100 - cost) +
                              R"(,"retry_after":0,"reset_after":)" + std::string(seconds);
  const std::string content = R"({"allowed":true,"limit":"per-tenant","id":"acme",)" + numbers +
                              R"(,"decisions":[{"limit":"per-tenant","id":"acme","allowed":true,)" + numbers +
                              R"(,"shadow":false}]})";
  const std::string remaining = std::to_string(100 - cost);
  return response("200 OK",
                  "X-RateLimit-Limit: 100\r\nX-RateLimit-Remaining: " + remaining +
                      "\r\nX-RateLimit-Reset: 1700000001\r\nRateLimit-Policy: \"per-tenant\";q=100;w=1\r\n"
                      "RateLimit: \"per-tenant\";r=" +
                      remaining + ";t=1\r\n" + std::string(more_fields),
                  content);
}

std::string chunked(std::string_view path) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
         "8;x=y\r\n{\"limit\"\r\n1a\r\n:\"per-tenant\",\"id\":\"acme\"}\r\n0\r\nX: y\r\n\r\n";
}

constexpr std::string_view kAlive =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 19\r\n\r\n{\"status\":\"alive\"}\n";

void add_mistakes(Conversation& talk) {
  talk.mistakes = {
      {"no such path", "GET /v2 HTTP/1.1\r\nHost: h\r\n\r\n",
       error("404 Not Found", "not_found", R"(there is nothing at \"/v2\")")},
      {"method", "DELETE /v1/check HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}",
       error("405 Method Not Allowed", "method_not_allowed", R"(/v1/check takes POST, not \"DELETE\")",
             "Allow: POST, OPTIONS\r\n")},
      {"broken JSON", post("/v1/check", "{\"limit\":"),
       error("400 Bad Request", "bad_json", "byte 10: a value was expected")},
      {"unknown field", post("/v1/check", R"({"limti":"a"})"),
       error("400 Bad Request", "unknown_field",
             R"(unknown field \"limti\"; known are limit, id, cost, tier, charges, charge and request)")},
      {"media type", post("/v1/check", "a=b", "Content-Type: text/plain\r\n"),
       error("415 Unsupported Media Type", "unsupported_media_type",
             R"(the content must be application/json, not \"text/plain\")")},
      {"encoding", post("/v1/check", "{}", "Content-Encoding: gzip\r\n"),
       error("415 Unsupported Media Type", "unsupported_media_type",
             R"(the content must not be encoded, as \"gzip\")")},
  };
}

void add_breaks(Conversation& talk) {
  const std::string big(bounds::http_body_bytes_max, ' ');
  talk.breaks = {
      {"TLS", "\x16\x03\x01\x02", last_words("400 Bad Request", "bad_request", "this is not an HTTP request")},
      {"bare LF", "GET / HTTP/1.1\nHost: h\n\n",
       last_words("400 Bad Request", "bad_request", "a line ends with LF alone; lines end with CRLF")},
      {"length and encoding",
       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       last_words("400 Bad Request", "bad_request", "Content-Length and Transfer-Encoding must not be combined")},
      {"long line", "GET /" + std::string(bounds::http_request_line_bytes_max, 'a'),
       last_words("431 Request Header Fields Too Large", "header_too_large", "the request line is longer than 63 KiB")},
      {"long head", "GET / HTTP/1.1\r\nA: " + std::string(bounds::http_head_bytes_max, 'a'),
       last_words("431 Request Header Fields Too Large", "header_too_large", "the head is longer than 64 KiB")},
      {"CONNECT", "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n",
       error("405 Method Not Allowed", "method_not_allowed", "CONNECT is not supported",
             "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\nConnection: close\r\n")},
      {"large content", "POST /v1/check HTTP/1.1\r\nHost: h\r\nContent-Length: 1048577\r\n\r\n",
       last_words("413 Content Too Large", "too_large", "the content is larger than the server accepts")},
      {"large chunks",
       "POST /v1/check HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n" + big + "\r\n1\r\n",
       last_words("413 Content Too Large", "too_large", "the content is larger than the server accepts")},
      {"bad chunk", "POST /v1/check HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
       last_words("400 Bad Request", "bad_request", "a chunk's size is not a hexadecimal number")},
  };
}

Conversation http_conversation() {
  Conversation talk;
  talk.name = "Http";
  talk.open = [](Output& output) { return std::make_unique<Alone>(output); };
  talk.input = post("/v1/check", R"({"limit":"per-tenant","id":"acme","cost":2})") +
               "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n" + chunked("/v1/peek") +
               post("/v1/refund", R"({"limit":"per-tenant","id":"acme","cost":3})", "Expect: 100-continue\r\n") +
               "\r\n" + post("/v1/reset", R"({"limit":"per-tenant","id":"acme"})") +
               post("/v1/throttle", R"({"key":"k","count":100,"period":"1s","cost":20})");
  const std::string before = allowed(2, "0.1") + std::string(kAlive) + allowed(1, "0.05") + std::string(kHttpContinue) +
                             allowed(3, "0.15") + "HTTP/1.1 204 No Content\r\n\r\n";
  talk.output = before + allowed(20, "1");
  talk.drained_output = before + allowed(20, "1", "Connection: close\r\n");
  add_mistakes(talk);
  add_breaks(talk);
  return talk;
}

INSTANTIATE_TEST_SUITE_P(Http, SessionConformance, ::testing::Values(http_conversation()));

}  // namespace
}  // namespace weir::http_conformance_test
