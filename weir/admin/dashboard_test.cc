#include <gtest/gtest.h>

#include <string>

#include "weir/admin/admin_client_test.h"
#include "weir/admin/assets.h"

namespace weir::dashboard_test {
namespace {

using admin::AdminClient;
using admin::Asset;
using admin::HttpReply;

// The whole response, head included.
std::string response(AdminClient& client, std::string_view target, std::string_view fields = {}) {
  http::Http1Peer caller(client.handler, "127.0.0.1");
  return client.talk(caller, AdminClient::request("GET", target, {}, fields));
}

TEST(Dashboard, ServesThePageAndEveryFileItNames) {
  AdminClient client;
  const HttpReply page = client.get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.content.find("<title>Weir</title>"), std::string::npos);
  for (const Asset& asset : admin::assets()) {
    const HttpReply file = client.get("/assets/" + std::string(asset.name));
    EXPECT_EQ(file.status, 200) << asset.name;
    // The reader of the test removes the newline at the end.
    EXPECT_TRUE(asset.plain.starts_with(file.content)) << asset.name;
    EXPECT_GE(file.content.size() + 1, asset.plain.size()) << asset.name;
  }
  EXPECT_EQ(client.get("/assets/nothing.js").status, 404);
}

TEST(Dashboard, CompressesFilesForBrowsersThatTakeIt) {
  AdminClient client;
  const std::string plain = response(client, "/assets/weir.css");
  EXPECT_EQ(plain.find("Content-Encoding"), std::string::npos);
  const std::string compressed = response(client, "/assets/weir.css", "Accept-Encoding: gzip, br\r\n");
  EXPECT_NE(compressed.find("Content-Encoding: gzip\r\n"), std::string::npos);
  EXPECT_NE(compressed.find("\r\n\r\n\x1f\x8b"), std::string::npos);
  EXPECT_EQ(response(client, "/assets/weir.css", "Accept-Encoding: gzip;q=0\r\n").find("Content-Encoding"),
            std::string::npos);
}

TEST(Dashboard, AnswersNotModifiedToTheSameTag) {
  AdminClient client;
  const std::string first = response(client, "/assets/weir.js");
  const std::size_t at = first.find("ETag: ") + 6;
  const std::string tag = first.substr(at, first.find('\r', at) - at);
  ASSERT_TRUE(tag.starts_with("W/\"")) << "one tag for the file and its compressed form: " << tag;
  for (const std::string& known : {tag, tag.substr(2), "\"other\", " + tag, std::string("*")}) {
    const std::string again = response(client, "/assets/weir.js", "If-None-Match: " + known + "\r\n");
    EXPECT_TRUE(again.starts_with("HTTP/1.1 304 ")) << again;
    EXPECT_TRUE(again.ends_with("\r\n\r\n"));
  }
  EXPECT_TRUE(response(client, "/assets/weir.js", "If-None-Match: \"other\"\r\n").starts_with("HTTP/1.1 200 "));
}

TEST(Dashboard, ForbidsInlineCodeAndFrames) {
  AdminClient client;
  const std::string page = response(client, "/");
  EXPECT_NE(page.find("Content-Security-Policy: default-src 'none'; script-src 'self'"), std::string::npos);
  EXPECT_NE(page.find("frame-ancestors 'none'"), std::string::npos);
  EXPECT_EQ(page.find("unsafe"), std::string::npos);
}

TEST(Dashboard, NeedsALoopbackHostWithoutTokensAndNoTokenWithThem) {
  AdminClient open;
  http::Http1Peer caller(open.handler, "127.0.0.1");
  EXPECT_TRUE(open.talk(caller, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").starts_with("HTTP/1.1 403 "));
  AdminClient closed("admin: {read_token: reading-is-fine, write_token: writing-is-fine}\n");
  EXPECT_EQ(closed.get("/").status, 200);
  EXPECT_EQ(closed.get("/assets/weir.js").status, 200);
  EXPECT_EQ(closed.get("/ratelimit/live").status, 401);
}

TEST(Dashboard, StreamsASampleAtOnceAndOneEverySecond) {
  AdminClient client;
  client.ask("orders", "alice", 5);
  client.ask("orders", "alice");
  http::Http1Peer caller(client.handler, "127.0.0.1");
  std::string text = client.talk(caller, AdminClient::request("GET", "/ratelimit/live"));
  while (text.find("event: numbers") == std::string::npos) text += client.wait(caller);
  EXPECT_NE(text.find("Content-Type: text/event-stream\r\n"), std::string::npos);
  const std::size_t at = text.find("data: ") + 6;
  const auto sample = nlohmann::json::parse(text.substr(at, text.find("\n\n", at) - at));
  EXPECT_EQ(sample["totals"]["denied"], 1);
  EXPECT_EQ(sample["top"]["denied"][0]["id"], "alice");
  EXPECT_EQ(sample["store"]["up"], true);
}

}  // namespace
}  // namespace weir::dashboard_test
