// Authorization, and the replies to invalid calls.
#include "weir/admin/admin_handler.h"

#include <gtest/gtest.h>

#include "weir/admin/admin_client_test.h"

namespace weir::admin::admin_handler_test {
namespace {

constexpr std::string_view kTokens = "admin: {read_token: reader, write_token: writer}\n";
constexpr std::string_view kJson = "Content-Type: application/json\r\n";

std::string bearer(std::string_view token) {
  return "Authorization: Bearer " + std::string(token) + "\r\n" + std::string(kJson);
}

TEST(AdminHandler, AnswersProbesWithoutAToken) {
  AdminClient api(kTokens);
  EXPECT_EQ(api.get("/healthz").content, R"({"status":"alive"})");
  EXPECT_EQ(api.get("/readyz").content, R"({"status":"ready"})");
  EXPECT_EQ(api.get("/readyz?deep=true").status, 200);
  EXPECT_EQ(api.get("/startz").content, R"({"status":"started"})");
}

TEST(AdminHandler, RequiresATokenIfTokensAreConfigured) {
  AdminClient api(kTokens);
  for (const std::string_view path : {"/metrics", "/ratelimit/stats", "/ratelimit/clients", "/ratelimit/events"}) {
    EXPECT_EQ(api.get(path).status, 401) << path;
    EXPECT_EQ(api.get(path).error(), "unauthorized");
    EXPECT_EQ(api.call("GET", path, {}, bearer("nobody")).status, 401) << path;
    EXPECT_EQ(api.call("GET", path, {}, bearer("")).status, 401) << path;
  }
  for (const std::string_view token : {"reader", "writer"}) {
    EXPECT_EQ(api.call("GET", "/metrics", {}, bearer(token)).status, 200);
    EXPECT_EQ(api.call("GET", "/ratelimit/stats", {}, bearer(token)).status, 200);
  }
}

TEST(AdminHandler, WriteWithoutTheWriteTokenChangesNothing) {
  AdminClient api(kTokens);
  EXPECT_TRUE(api.allowed("orders", "1", 5));
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/all?confirm=all", "{}", kJson).status, 401);
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/all?confirm=all", "{}", bearer("reader")).status, 403);
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/all?confirm=all", "{}", bearer("reader")).error(), "forbidden");
  EXPECT_EQ(api.call("PUT", "/ratelimit/adjust/orders/1", R"({"burst":50})", bearer("reader")).status, 403);
  EXPECT_EQ(api.call("POST", "/ratelimit/access/deny", R"({"ip":"10.0.0.1"})", kJson).status, 401);
  EXPECT_EQ(api.call("PUT", "/ratelimit/config", R"({"limits":{"orders":{"burst":50}}})", kJson).status, 401);
  EXPECT_FALSE(api.allowed("orders", "1"));
  EXPECT_TRUE(api.fixture.log.empty());
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/all?confirm=all", "{}", bearer("writer")).status, 200);
  EXPECT_TRUE(api.allowed("orders", "1"));
}

TEST(AdminHandler, WithoutTokensRefusesWritesThatAWebPageCouldSend) {
  AdminClient api;
  const HttpReply plain = api.call("POST", "/ratelimit/reset/ip:10.0.0.1", {}, {});
  EXPECT_EQ(plain.status, 415);
  EXPECT_EQ(plain.error(), "unsupported_media_type");
  EXPECT_EQ(
      api.call("POST", "/ratelimit/reset/ip:10.0.0.1", "a=b", "Content-Type: application/x-www-form-urlencoded\r\n")
          .status,
      415);
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/ip:10.0.0.1").status, 200);
  EXPECT_TRUE(is_loopback_host("localhost"));
  EXPECT_TRUE(is_loopback_host("LOCALHOST:9090"));
  EXPECT_TRUE(is_loopback_host("127.0.0.1:9090"));
  EXPECT_TRUE(is_loopback_host("[::1]:9090"));
  for (const std::string_view host :
       {"evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[::2]", "", "localhost.x"}) {
    EXPECT_FALSE(is_loopback_host(host)) << host;
  }
}

TEST(AdminHandler, WithoutTokensReadsEventsAndWritesNeedALoopbackHost) {
  AdminClient api;
  const auto status_of = [&](std::string_view line, std::string_view host) {
    http::Http1Peer caller(api.handler, "127.0.0.1");
    const std::string out = api.talk(caller, std::string(line) + " HTTP/1.1\r\nHost: " + std::string(host) +
                                                 "\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n");
    return out.substr(9, 3);
  };
  for (const std::string_view line : {"GET /ratelimit/stats", "GET /ratelimit/clients", "GET /ratelimit/events",
                                      "GET /metrics", "GET /ratelimit/config", "POST /ratelimit/reload"}) {
    EXPECT_EQ(status_of(line, "evil.example:9090"), "403") << line;
    EXPECT_EQ(status_of(line, "localhost:9090"), "200") << line;
  }
  EXPECT_EQ(status_of("GET /healthz", "evil.example"), "200");
}

TEST(AdminHandler, RefusesRemoteCallsWhenTokensAreRemoved) {
  AdminClient api;
  api.fixture.shared().loopback = false;  // as after a reload that removed the tokens
  EXPECT_EQ(api.get("/ratelimit/stats").status, 401);
  EXPECT_EQ(api.call("POST", "/ratelimit/reload").status, 401);
  EXPECT_EQ(api.get("/healthz").status, 200);
}

TEST(AdminHandler, ReportsTheMethodsOfAPath) {
  AdminClient api;
  const HttpReply wrong = api.call("DELETE", "/ratelimit/config");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.error(), "method_not_allowed");
  EXPECT_EQ(wrong.allow, "GET, HEAD, PUT, OPTIONS");
  const HttpReply options = api.call("OPTIONS", "/ratelimit/access/deny");
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.allow, "GET, HEAD, POST, DELETE, OPTIONS");
  EXPECT_EQ(api.call("OPTIONS", "*").status, 204);
  for (const std::string_view path : {"/", "/ratelimit", "/ratelimit/", "/ratelimit/stats/", "/ratelimit/clients/x",
                                      "/ratelimit/reset/", "/metrics/x", "/nothing"}) {
    EXPECT_EQ(api.get(path).status, 404) << path;
  }
}

TEST(AdminHandler, AnswersHeadWithoutContent) {
  AdminClient api;
  const HttpReply reply = api.call("HEAD", "/ratelimit/stats", {}, {});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.content, "");
}

TEST(AdminHandler, RefusesUnknownParameters) {
  AdminClient api;
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/1?limti=orders").error(), "unknown_field");
  EXPECT_EQ(api.get("/ratelimit/clients?limit=orders&limit=orders").error(), "bad_value");
  EXPECT_EQ(api.get("/ratelimit/clients?prefix=%zz").error(), "bad_value");
  EXPECT_EQ(api.get("/ratelimit/clients/orders/%2").error(), "bad_value");
}

std::string events_request(std::string_view query) {
  return AdminClient::request("GET", "/ratelimit/events" + std::string(query));
}

TEST(AdminHandler, StreamsDecisionsInChunksAndReportsDroppedOnes) {
  AdminClient api;
  http::Http1Peer caller(api.handler, "127.0.0.1");
  const std::string head = api.talk(caller, events_request("?limit=orders&allowed=false"));
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"))
      << head;
  EXPECT_TRUE(head.ends_with("\r\n1c\r\n: decisions as they happen\n\n\r\n")) << head;
  EXPECT_FALSE(caller.session->finished());
  EXPECT_TRUE(api.allowed("orders", "1", 5));
  EXPECT_TRUE(api.allowed("per-ip", "10.0.0.1"));
  for (int i = 0; i < 5000; ++i) EXPECT_FALSE(api.allowed("orders", "1"));
  caller.run_posted();
  std::string out = caller.turn();
  for (int i = 0; i < 20 && out.find("\"dropped\"") == out.npos; ++i) {
    ASSERT_LE(caller.session->deadline(), caller.now.time + std::chrono::milliseconds{20});
    caller.now.time = caller.session->deadline();
    caller.session->expire(caller.now.time);
    out += caller.turn();
  }
  EXPECT_NE(out.find("event: decision\ndata: {"), out.npos);
  EXPECT_NE(out.find("\"allowed\":false"), out.npos);
  EXPECT_EQ(out.find("\"allowed\":true"), out.npos);
  EXPECT_EQ(out.find("per-ip"), out.npos);
  EXPECT_NE(out.find("event: dropped\ndata: {\"dropped\":"), out.npos);
  EXPECT_EQ(api.get("/ratelimit/events?limit=nope").error(), "unknown_limit");
  EXPECT_EQ(api.get("/ratelimit/events?allowed=maybe").error(), "bad_value");
  EXPECT_EQ(api.get("/ratelimit/events?sample=0").error(), "bad_value");
}

TEST(AdminHandler, AStreamWakesAtMostFiftyTimesASecondAndBreaksLongSilences) {
  using namespace std::chrono_literals;
  AdminClient api;
  http::Http1Peer caller(api.handler, "127.0.0.1");
  (void)api.talk(caller, events_request(""));
  const Time start = caller.now.time;
  EXPECT_EQ(caller.session->deadline(), start + 15s);
  api.ask("orders", "1");
  api.ask("orders", "1");
  caller.run_posted();
  const std::string two = caller.turn();
  EXPECT_NE(two.find("event: decision"), two.npos) << two;
  EXPECT_NE(two.find("event: decision"), two.rfind("event: decision")) << "both at once";
  api.ask("orders", "1");
  caller.run_posted();
  EXPECT_EQ(caller.turn(), "") << "only after 20 ms";
  EXPECT_EQ(caller.session->deadline(), start + 20ms);
  caller.now.time = start + 20ms;
  caller.session->expire(caller.now.time);
  EXPECT_NE(caller.turn().find("event: decision"), std::string::npos);
  caller.now.time = start + 40ms;
  caller.session->expire(caller.now.time);
  EXPECT_EQ(caller.turn(), "");
  EXPECT_EQ(caller.session->deadline(), start + 20ms + 15s);
  caller.now.time = start + 20ms + 15s;
  caller.session->expire(caller.now.time);
  EXPECT_EQ(caller.turn(), "3\r\n:\n\n\r\n");
}

TEST(AdminHandler, LeavesTheEventsOfASlowClientInTheQueueAndEndsTheStreamWhenDrained) {
  AdminClient api;
  http::Http1Peer caller(api.handler, "127.0.0.1");
  caller.stalled = true;
  (void)api.talk(caller, events_request(""));
  for (int i = 0; i < 2000; ++i) api.ask("orders", "1");
  std::size_t written = 0;
  for (int i = 0; i < 20; ++i) {
    caller.run_posted();
    caller.now.time += std::chrono::milliseconds{20};
    caller.session->expire(caller.now.time);
    written += caller.take().size();
  }
  EXPECT_GT(written, 0u);
  EXPECT_LE(written, bounds::http_window_bytes);
  caller.stalled = false;
  caller.session->fill(0);
  caller.now.time += std::chrono::milliseconds{20};
  caller.session->expire(caller.now.time);
  EXPECT_FALSE(caller.take().empty()) << "drained: it goes on";
  caller.session->drain(caller.now.time);
  EXPECT_TRUE(caller.take().ends_with("0\r\n\r\n"));
  EXPECT_TRUE(caller.session->finished());
}

TEST(AdminHandler, DropsWorkWhoseClientHasLeft) {
  AdminClient api;
  for (const std::string_view path :
       {"/ratelimit/config", "/ratelimit/events", "/ratelimit/stats", "/ratelimit/clients", "/ratelimit/access/deny",
        "/metrics", "/readyz?deep=true"}) {
    http::Http1Peer caller(api.handler, "127.0.0.1");
    api.begin(caller, AdminClient::request("GET", path));
    caller.session->lost();
    EXPECT_EQ(caller.shared.exchanges->open_count(), 0u) << path;
    api.ask("orders", "1");
    caller.run_posted();
  }
  EXPECT_EQ(api.get("/ratelimit/config").status, 200) << "the background thread has run what was queued";
}

}  // namespace
}  // namespace weir::admin::admin_handler_test
