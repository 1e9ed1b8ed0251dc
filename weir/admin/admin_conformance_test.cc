#include <memory>
#include <string>
#include <string_view>

#include "weir/admin/admin_handler.h"
#include "weir/admin/admin_shared_test.h"
#include "weir/http/http1_session.h"
#include "weir/http/http_shared.h"
#include "weir/protocol/testing/http_texts.h"
#include "weir/protocol/testing/session_conformance.h"
#include "weir/store/memory/memory_bucket_scan.h"

namespace weir::admin_conformance_test {
namespace {

// One fixture for all sessions: the kit opens thousands, and none of them changes anything.
admin::AdminFixture& fixture() {
  static const std::unique_ptr<Table> table =
      std::move(*Table::create({.buckets_max = 1000, .names = true, .huge_pages = false}, HashKey{1, 2}));
  static MemoryBucketScan bucket_scan{*table};
  static admin::AdminFixture fixture{bucket_scan};
  fixture.log.clear();
  return fixture;
}

// A session with a handler of its own, on the fixture's time.
class Alone final : public Session {
 public:
  explicit Alone(Output& output) : session_(shared_, handler_, {output, "127.0.0.1", {}, {}, false}) {}
  Result<std::size_t> receive(std::string_view bytes, Queries& queries, Now) override {
    return session_.receive(bytes, queries, fixture().clock().now());
  }
  bool has_more() const noexcept override { return session_.has_more(); }
  void resume(Queries& queries, Now) override { session_.resume(queries, fixture().clock().now()); }
  void reply(std::uint64_t token, const Result<Answer>& answer) override { session_.reply(token, answer); }
  bool reading() const noexcept override { return session_.reading(); }
  void fill(std::size_t unsent) override { session_.fill(unsent); }
  bool finished() const noexcept override { return session_.finished(); }
  void drain(Time now) override { session_.drain(now); }

 private:
  http::HttpShared shared_;
  admin::AdminHandler handler_{fixture().shared()};
  http::Http1Session session_;
};

std::string get(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

std::string reset(std::string_view path, std::string_view fields = {}) {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
         std::string(fields) + "Content-Length: 2\r\n\r\n{}";
}

// The time of the fixture's clock, which does not advance.
constexpr std::string_view kDate = "Date: Tue, 14 Nov 2023 22:13:20 GMT\r\n";
constexpr std::string_view kDateAndEnd = "Date: Tue, 14 Nov 2023 22:13:20 GMT\r\nConnection: close\r\n";

Conversation admin_conversation() {
  Conversation talk;
  talk.name = "Admin";
  talk.open = [](Output& output) { return std::make_unique<Alone>(output); };
  talk.input = get("/healthz") + reset("/ratelimit/reset/per-ip:203.0.113.9") + get("/ratelimit/top") +
               get("/ratelimit/clients") + reset("/ratelimit/reset/12345678?limit=orders", "Expect: 100-continue\r\n");
  const std::string before = response("200 OK", kDate, R"({"status":"alive"})") +
                             response("200 OK", kDate, R"({"reset":1})") +
                             response("200 OK", kDate, R"({"by":"requests","clients":[]})") +
                             response("200 OK", kDate, R"({"clients":[],"cursor":""})") + std::string(kHttpContinue);
  // A limit with overrides may have a quota in addition to its bucket.
  talk.output = before + response("200 OK", kDate, R"({"reset":2})");
  talk.drained_output =
      response("200 OK", kDate, R"({"status":"alive"})") + response("200 OK", kDateAndEnd, R"({"reset":1})");
  talk.mistakes = {
      {"no such path", get("/ratelimit"),
       error("404 Not Found", "not_found", R"(there is nothing at \"/ratelimit\")", kDate)},
      {"method", "PUT /ratelimit/stats HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}",
       error("405 Method Not Allowed", "method_not_allowed",
             R"(\"/ratelimit/stats\" takes GET, HEAD, OPTIONS, not \"PUT\")",
             "Allow: GET, HEAD, OPTIONS\r\n" + std::string(kDate))},
      {"parameter", get("/ratelimit/top?bye=denied"),
       error("400 Bad Request", "unknown_field", R"(unknown parameter \"bye\"; known are \"by\", \"n\")", kDate)},
  };
  talk.breaks = {
      {"TLS", "\x16\x03\x01\x02", error("400 Bad Request", "bad_request", "this is not an HTTP request", kDateAndEnd)},
      {"long line", "GET /" + std::string(bounds::http_request_line_bytes_max, 'a'),
       error("431 Request Header Fields Too Large", "header_too_large", "the request line is longer than 63 KiB",
             kDateAndEnd)},
      {"large content", "PUT /ratelimit/config HTTP/1.1\r\nHost: h\r\nContent-Length: 1048577\r\n\r\n",
       error("413 Content Too Large", "too_large", "the content is larger than the server accepts", kDateAndEnd)},
  };
  return talk;
}

INSTANTIATE_TEST_SUITE_P(Admin, SessionConformance, ::testing::Values(admin_conversation()));

}  // namespace
}  // namespace weir::admin_conformance_test
