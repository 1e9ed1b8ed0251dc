// Authorization, and the replies to invalid calls.
#include "weir/admin/admin_session.h"

#include <gtest/gtest.h>

#include "weir/admin/admin_client_test.h"

namespace weir::admin::admin_session_test {
namespace {

constexpr std::string_view kTokens = "admin: {read_token: reader, write_token: writer}\n";
constexpr std::string_view kJson = "Content-Type: application/json\r\n";

std::string bearer(std::string_view token) {
  return "Authorization: Bearer " + std::string(token) + "\r\n" + std::string(kJson);
}

TEST(AdminSession, AnswersProbesWithoutAToken) {
  AdminClient api(kTokens);
  EXPECT_EQ(api.get("/healthz").content, R"({"status":"alive"})");
  EXPECT_EQ(api.get("/readyz").content, R"({"status":"ready"})");
  EXPECT_EQ(api.get("/readyz?deep=true").status, 200);
  EXPECT_EQ(api.get("/startz").content, R"({"status":"started"})");
}

TEST(AdminSession, RequiresATokenIfTokensAreConfigured) {
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

TEST(AdminSession, WriteWithoutTheWriteTokenChangesNothing) {
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

TEST(AdminSession, WithoutTokensRefusesWritesThatAWebPageCouldSend) {
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

TEST(AdminSession, WithoutTokensReadsEventsAndWritesNeedALoopbackHost) {
  AdminClient api;
  const auto status_of = [&](std::string_view line, std::string_view host) {
    AdminSession session(api.fixture.shared(), "127.0.0.1");
    std::string out;
    api.talk(session,
             std::string(line) + " HTTP/1.1\r\nHost: " + std::string(host) +
                 "\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n",
             out);
    return out.substr(9, 3);
  };
  for (const std::string_view line : {"GET /ratelimit/stats", "GET /ratelimit/clients", "GET /ratelimit/events",
                                      "GET /metrics", "GET /ratelimit/config", "POST /ratelimit/reload"}) {
    EXPECT_EQ(status_of(line, "evil.example:9090"), "403") << line;
    EXPECT_EQ(status_of(line, "localhost:9090"), "200") << line;
  }
  EXPECT_EQ(status_of("GET /healthz", "evil.example"), "200");
}

TEST(AdminSession, RefusesRemoteCallsWhenTokensAreRemoved) {
  AdminClient api;
  api.fixture.shared().loopback = false;  // as after a reload that removed the tokens
  EXPECT_EQ(api.get("/ratelimit/stats").status, 401);
  EXPECT_EQ(api.call("POST", "/ratelimit/reload").status, 401);
  EXPECT_EQ(api.get("/healthz").status, 200);
}

TEST(AdminSession, ReportsTheMethodsOfAPath) {
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

TEST(AdminSession, AnswersHeadWithoutContent) {
  AdminClient api;
  const HttpReply reply = api.call("HEAD", "/ratelimit/stats", {}, {});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.content, "");
}

TEST(AdminSession, RefusesUnknownParameters) {
  AdminClient api;
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/1?limti=orders").error(), "unknown_field");
  EXPECT_EQ(api.get("/ratelimit/clients?limit=orders&limit=orders").error(), "bad_value");
  EXPECT_EQ(api.get("/ratelimit/clients?prefix=%zz").error(), "bad_value");
  EXPECT_EQ(api.get("/ratelimit/clients/orders/%2").error(), "bad_value");
}

TEST(AdminSession, AnswersARequestThatTakesTooLongWith408) {
  AdminClient api;
  AdminSession session(api.fixture.shared(), "127.0.0.1");
  Queries queries;
  std::string out;
  EXPECT_EQ(session.deadline(), Time::max());
  session.at({Time{std::chrono::seconds{1}}, Wall{}});
  ASSERT_TRUE(session.receive("GET /rate", queries, out));
  EXPECT_EQ(session.deadline(), Time{std::chrono::seconds{1}} + bounds::http_head_time_max);
  session.expire(Time{std::chrono::seconds{60}}, out);
  EXPECT_TRUE(out.starts_with("HTTP/1.1 408 "));
  EXPECT_TRUE(session.finished());
}

TEST(AdminSession, StreamsDecisionsAndReportsDroppedOnes) {
  AdminClient api;
  AdminSession session(api.fixture.shared(), "127.0.0.1");
  std::string out;
  api.talk(session, AdminClient::request("GET", "/ratelimit/events?limit=orders&allowed=false"), out);
  EXPECT_TRUE(out.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")) << out;
  EXPECT_FALSE(session.finished());
  ASSERT_NE(session.wake_at(), Time::max());
  Queries queries;
  out.clear();
  EXPECT_TRUE(api.allowed("orders", "1", 5));
  EXPECT_TRUE(api.allowed("per-ip", "10.0.0.1"));
  for (int i = 0; i < 5000; ++i) EXPECT_FALSE(api.allowed("orders", "1"));
  while (out.find("\"dropped\"") == out.npos && out.size() < (1u << 20)) {
    const std::size_t before = out.size();
    std::string more;
    session.wake(session.wake_at(), queries, more);
    out += more;
    ASSERT_GT(out.size(), before);
  }
  EXPECT_NE(out.find("event: decision\ndata: {"), out.npos);
  EXPECT_NE(out.find("\"allowed\":false"), out.npos);
  EXPECT_EQ(out.find("\"allowed\":true"), out.npos);
  EXPECT_EQ(out.find("per-ip"), out.npos);
  EXPECT_NE(out.find("event: dropped\ndata: {\"dropped\":"), out.npos);
  std::string full(1u << 17, 'x');
  session.wake(session.wake_at(), queries, full);
  EXPECT_EQ(full.size(), 1u << 17) << "a peer that does not read gets no more";
  session.drain(out);
  EXPECT_TRUE(session.finished());
  EXPECT_EQ(api.get("/ratelimit/events?limit=nope").error(), "unknown_limit");
  EXPECT_EQ(api.get("/ratelimit/events?allowed=maybe").error(), "bad_value");
  EXPECT_EQ(api.get("/ratelimit/events?sample=0").error(), "bad_value");
}

}  // namespace
}  // namespace weir::admin::admin_session_test
