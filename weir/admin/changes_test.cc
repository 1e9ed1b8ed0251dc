// Changes at run time: adjustments, access lists, the configuration.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "weir/admin/admin_client_test.h"
#include "weir/admin/calls.h"
#include "weir/identify/handle.h"

namespace weir::admin::changes_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

TEST(Adjust, RefusesALimitThatHasOnlyAQuota) {
  AdminClient api;
  const HttpReply reply = api.call("PUT", "/ratelimit/adjust/monthly/1", R"({"rate":"1/h","burst":500})");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.error(), "bad_value");
  EXPECT_EQ(
      reply.json()["message"],
      "limit \"monthly\" has only a quota, and an adjustment changes a rate and a burst; use an override to change "
      "a quota");
  EXPECT_TRUE(api.get("/ratelimit/adjust").json()["adjustments"].empty());
}

TEST(Adjust, AppliesToTheNextRequestAndOutlivesItsBucket) {
  AdminClient api;
  EXPECT_TRUE(api.allowed("orders", "1", 5));
  EXPECT_FALSE(api.allowed("orders", "1"));
  const HttpReply reply = api.call("PUT", "/ratelimit/adjust/orders/1", R"({"rate":"200/s","burst":50,"for":"2h"})");
  EXPECT_EQ(reply.status, 200) << reply.content;
  const json adjusted = reply.json();
  EXPECT_EQ(adjusted["limit"], "orders");
  EXPECT_EQ(adjusted["id"], "1");
  EXPECT_EQ(adjusted["burst"], 50);
  EXPECT_EQ(adjusted["count"], 200);
  EXPECT_EQ(adjusted["period"], "1s");
  EXPECT_EQ(adjusted["expires"], "2023-11-15T00:13:20Z");
  EXPECT_FALSE(api.allowed("orders", "1")) << "spent tokens refill at the new rate";
  api.fixture.clock().advance(std::chrono::milliseconds{5});
  EXPECT_TRUE(api.allowed("orders", "1"));
  api.fixture.clock().advance(std::chrono::minutes{61});  // the bucket is full and no longer stored
  EXPECT_TRUE(api.allowed("orders", "1", 50));
  const json client = api.get("/ratelimit/clients/orders/1").json();
  EXPECT_EQ(client["source"], "adjustment");
  EXPECT_EQ(client["adjustment"]["expires"], "2023-11-15T00:13:20Z");
  EXPECT_EQ(client["adjustment"]["added_by"], api.get("/ratelimit/adjust").json()["adjustments"][0]["added_by"]);
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/orders:1").status, 200);
  EXPECT_TRUE(api.allowed("orders", "1", 50)) << "a reset keeps the adjustment";
  EXPECT_EQ(api.get("/ratelimit/adjust").json()["adjustments"].size(), 1u);
  api.fixture.clock().advance(std::chrono::minutes{60});
  EXPECT_FALSE(api.allowed("orders", "1", 50)) << "it expires";
  EXPECT_EQ(api.get("/ratelimit/adjust").json()["adjustments"].size(), 0u);
  EXPECT_EQ(api.get("/ratelimit/clients/orders/1").json()["adjustment"], nullptr);
}

TEST(Adjust, ExpiresToTheMillisecond) {
  AdminClient api;
  api.fixture.clock().advance(370ms + 1us);
  const json adjusted = api.call("PUT", "/ratelimit/adjust/orders/1", R"({"burst":50,"for":"100ms"})").json();
  EXPECT_EQ(adjusted["expires"], "2023-11-14T22:13:20.471Z") << "never early";
  api.fixture.clock().advance(100ms - 1us);
  EXPECT_TRUE(api.allowed("orders", "1", 50));
  api.fixture.clock().advance(1ms);
  EXPECT_EQ(api.get("/ratelimit/adjust").json()["adjustments"].size(), 0u);
}

TEST(Adjust, ChangesOnlyTheGivenValues) {
  AdminClient api;
  const json adjusted = api.call("PUT", "/ratelimit/adjust/per-ip/ip:10.0.0.1", R"({"burst":3})").json();
  EXPECT_EQ(adjusted["id"], "10.0.0.1");
  EXPECT_EQ(adjusted["burst"], 3);
  EXPECT_EQ(adjusted["count"], 10);
  EXPECT_EQ(adjusted["period"], "1h");
  EXPECT_EQ(adjusted["expires"], "2023-11-14T23:13:20Z") << "the default is an hour";
  EXPECT_FALSE(api.allowed("per-ip", "10.0.0.1", 4));
  EXPECT_TRUE(api.allowed("per-ip", "10.0.0.2", 4));
}

TEST(Adjust, IsRemovedAndAudited) {
  AdminClient api;
  EXPECT_EQ(api.call("PUT", "/ratelimit/adjust/orders/1", R"({"burst":50})").status, 200);
  EXPECT_EQ(api.call("PUT", "/ratelimit/adjust/orders/1", R"({"burst":60})").status, 200);
  EXPECT_EQ(api.call("DELETE", "/ratelimit/adjust/orders/1").status, 200);
  EXPECT_EQ(api.call("DELETE", "/ratelimit/adjust/orders/1").error(), "not_found");
  EXPECT_FALSE(api.allowed("orders", "1", 6));
  ASSERT_EQ(api.fixture.log.size(), 3u);
  EXPECT_NE(api.fixture.log[0].find(R"("action":"adjust","target":"orders:1","before":null,"after":{)"),
            std::string::npos)
      << api.fixture.log[0];
  EXPECT_NE(api.fixture.log[1].find(R"("before":{"limit":"orders","id":"1","burst":50)"), std::string::npos);
  EXPECT_NE(api.fixture.log[2].find(R"("after":null)"), std::string::npos);
}

TEST(Adjust, RefusesInvalidInput) {
  AdminClient api;
  const auto refused = [&](std::string_view content) {
    return api.call("PUT", "/ratelimit/adjust/orders/1", content).error();
  };
  EXPECT_EQ(refused("{"), "bad_json");
  EXPECT_EQ(refused("[]"), "bad_value");
  EXPECT_EQ(refused("{}"), "bad_value");
  EXPECT_EQ(refused(R"({"brust":5})"), "unknown_field");
  EXPECT_EQ(refused(R"({"burst":0})"), "bad_value");
  EXPECT_EQ(refused(R"({"burst":1.5})"), "bad_value");
  EXPECT_EQ(refused(R"({"rate":"fast"})"), "bad_value");
  EXPECT_EQ(refused(R"({"rate":0})"), "bad_value");
  EXPECT_EQ(refused(R"({"rate":5,"count":5})"), "bad_value");
  EXPECT_EQ(refused(R"({"burst":5,"for":"0s"})"), "bad_value");
  EXPECT_EQ(refused(R"({"burst":5,"for":"-1h"})"), "bad_value");
  EXPECT_EQ(refused(R"({"burst":5,"for":5})"), "bad_value");
  EXPECT_EQ(refused(R"({"burst":9000000000000000000})"), "bad_value");
  EXPECT_EQ(api.call("PUT", "/ratelimit/adjust/nope/1", R"({"burst":5})").error(), "unknown_limit");
  EXPECT_EQ(api.call("PUT", "/ratelimit/adjust/per-ip/x", R"({"burst":5})").error(), "bad_id");
  EXPECT_EQ(api.call("PUT", "/ratelimit/adjust/orders/1", "burst: 5", "Content-Type: application/yaml\r\n").error(),
            "unsupported_media_type");
  EXPECT_TRUE(api.fixture.log.empty());
}

TEST(Adjust, RefusesAWindowThatIsTooLongForRedis) {
  AdminClient api("store: redis\n");
  // A token every 12 minutes.
  EXPECT_EQ(api.call("PUT", "/ratelimit/adjust/orders/1", R"({"burst":12480})").error(), "");
  const HttpReply reply = api.call("PUT", "/ratelimit/adjust/orders/1", R"({"burst":12481})");
  EXPECT_EQ(reply.error(), "bad_value");
  EXPECT_NE(reply.content.find("on Redis at most 104d is possible"), std::string::npos) << reply.content;
}

TEST(Adjust, IdMayStartWithTheLimitsName) {
  AdminClient api;
  EXPECT_EQ(api.call("PUT", "/ratelimit/adjust/orders/orders:x", R"({"burst":50})").json()["id"], "orders:x");
  EXPECT_FALSE(api.allowed("orders", "x", 50)) << "another client";
  EXPECT_TRUE(api.allowed("orders", "orders:x", 50));
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/orders:orders:x").json()["reset"], 1) << "its identifier in lists";
}

TEST(Reset, OfOneClientKeepsTheGlobalBucket) {
  AdminClient api;
  const std::string_view yaml =
      "limits:\n  orders: {burst: 3, count: 1, period: 1h}\n  everybody: {key: global, burst: 3, count: 1, period: "
      "1h}\n";
  EXPECT_EQ(api.call("PUT", "/ratelimit/config", yaml, "Content-Type: application/yaml\r\n").status, 200);
  EXPECT_TRUE(api.allowed("everybody", "x", 3));
  EXPECT_TRUE(api.allowed("orders", "alice", 3));
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/alice").json()["reset"], 1);
  EXPECT_TRUE(api.allowed("orders", "alice", 3));
  EXPECT_FALSE(api.allowed("everybody", "x"));
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/global").json()["reset"], 1);
  EXPECT_TRUE(api.allowed("everybody", "x"));
}

TEST(Adjust, OfARemovedLimitShowsNoKey) {
  AdminClient api;
  EXPECT_EQ(api.call("PUT", "/ratelimit/adjust/per-apikey/mysecretkey", R"({"burst":50})").status, 200);
  EXPECT_EQ(api.call("POST", "/ratelimit/access/deny", R"({"limit":"per-apikey","id":"mysecretkey"})").status, 200);
  const std::string_view yaml = "limits:\n  orders: {burst: 2, count: 2, period: 1h, number: 6}\n";
  EXPECT_EQ(api.call("PUT", "/ratelimit/config", yaml, "Content-Type: application/yaml\r\n").status, 200);
  for (const char* call : {"/ratelimit/adjust", "/ratelimit/access/deny"}) {
    const std::string shown = api.get(call).content;
    EXPECT_NE(shown.find(handle_of("key", "mysecretkey")), std::string::npos) << shown;
    EXPECT_EQ(shown.find("mysecretkey"), std::string::npos) << shown;
  }
}

TEST(Changes, OfARemovedLimitCanBeTakenBack) {
  AdminClient api;
  for (const char* const id : {"7", "8"}) {
    const std::string client = R"({"limit":"orders","id":")" + std::string(id) + "\"";
    EXPECT_EQ(api.call("PUT", "/ratelimit/adjust", client + R"(,"burst":50})").status, 200);
    EXPECT_EQ(api.call("POST", "/ratelimit/access/deny", client + "}").status, 200);
  }
  const std::string_view yaml = "limits: {other: {rate: 5/h}}";
  EXPECT_EQ(api.call("PUT", "/ratelimit/config", yaml, "Content-Type: application/yaml\r\n").status, 200);
  EXPECT_EQ(api.call("DELETE", "/ratelimit/adjust/orders/9").error(), "unknown_limit");
  EXPECT_EQ(api.call("DELETE", "/ratelimit/access/deny?limit=orders&id=9").error(), "unknown_limit");
  // By the id, and by what the list shows.
  const std::string shown = handle_of("key", "8");
  for (const std::string& id : {std::string("7"), shown}) {
    const std::string client = R"({"limit":"orders","id":")" + id + "\"}";
    EXPECT_EQ(api.call("DELETE", "/ratelimit/adjust", client).content, R"({"removed":1})");
    EXPECT_EQ(api.call("DELETE", "/ratelimit/access/deny", client).content, R"({"removed":1})");
  }
  EXPECT_TRUE(api.get("/ratelimit/adjust").json()["adjustments"].empty());
  EXPECT_TRUE(api.get("/ratelimit/access/deny").json()["entries"].empty());
}

TEST(Access, DeniesAtOnceUntilTheEntryIsRemoved) {
  AdminClient api;
  const HttpReply reply =
      api.call("POST", "/ratelimit/access/deny", R"({"ip":"10.0.0.0/24","reason":"abuse","for":"1h"})");
  EXPECT_EQ(reply.status, 200) << reply.content;
  EXPECT_FALSE(api.allowed("per-ip", "10.0.0.7"));
  const json entries = api.get("/ratelimit/access/deny").json()["entries"];
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0], json::parse(R"({"list":"deny","ip":"10.0.0.0/24","reason":"abuse",
                                        "expires":"2023-11-14T23:13:20Z","added_by":"127.0.0.1"})"));
  EXPECT_EQ(api.get("/ratelimit/access/allow").json()["entries"].size(), 0u);
  EXPECT_EQ(api.call("DELETE", "/ratelimit/access/deny?ip=10.0.0.0/24").status, 200);
  EXPECT_EQ(api.call("DELETE", "/ratelimit/access/deny?ip=10.0.0.0/24").error(), "not_found");
  EXPECT_TRUE(api.allowed("per-ip", "10.0.0.7"));
}

TEST(Access, AllowsWithoutTakingATokenAndShowsHandles) {
  AdminClient api;
  EXPECT_EQ(api.call("POST", "/ratelimit/access/allow", R"({"limit":"orders","id":"1"})").status, 200);
  EXPECT_EQ(api.call("POST", "/ratelimit/access/allow", R"({"apikey":"key-abc-123"})").status, 200);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(api.allowed("orders", "1", 5));
  const std::string content = api.get("/ratelimit/access/allow").content;
  EXPECT_EQ(content.find("key-abc"), content.npos);
  EXPECT_NE(content.find(handle_of("key", "key-abc-123")), content.npos) << content;
  EXPECT_EQ(api.call("DELETE", "/ratelimit/access/allow?limit=orders&id=1").status, 200);
  EXPECT_EQ(api.call("DELETE", "/ratelimit/access/allow?apikey=key-abc-123").status, 200);
  for (const std::string& line : api.fixture.log) EXPECT_EQ(line.find("key-abc"), line.npos) << line;
}

TEST(Access, ExpiresToTheMillisecond) {
  AdminClient api;
  api.fixture.clock().advance(370ms);
  const HttpReply reply = api.call("POST", "/ratelimit/access/deny", R"({"limit":"orders","id":"1","for":"1s"})");
  EXPECT_EQ(reply.json()["entries"][0]["expires"], "2023-11-14T22:13:21.370Z");
  api.fixture.clock().advance(999ms);
  EXPECT_FALSE(api.allowed("orders", "1"));
  api.fixture.clock().advance(1ms);
  EXPECT_TRUE(api.allowed("orders", "1"));
  const std::string_view end = R"({"limit":"orders","id":"1","expires":"2023-11-14T22:13:21.371Z"})";
  EXPECT_EQ(api.call("POST", "/ratelimit/access/deny", end).status, 200) << "the shown value is valid input";
  EXPECT_FALSE(api.allowed("orders", "1"));
}

TEST(Access, RefusesADenyEntryForTheCallersAddress) {
  AdminClient api;
  for (const std::string_view ip : {"127.0.0.1", "127.0.0.0/8", "0.0.0.0/0"}) {
    const HttpReply reply = api.call("POST", "/ratelimit/access/deny", R"({"ip":")" + std::string(ip) + "\"}");
    EXPECT_EQ(reply.status, 409) << reply.content;
    EXPECT_EQ(reply.error(), "conflict");
  }
  EXPECT_EQ(api.call("POST", "/ratelimit/access/deny", R"({"limit":"per-ip","id":"127.0.0.1"})").status, 409);
  EXPECT_EQ(api.call("POST", "/ratelimit/access/allow", R"({"ip":"127.0.0.1"})").status, 200);
  EXPECT_EQ(api.get("/ratelimit/access/deny").json()["entries"].size(), 0u);
}

TEST(Access, RefusesInvalidInput) {
  AdminClient api;
  const auto refused = [&](std::string_view content) {
    return api.call("POST", "/ratelimit/access/deny", content).error();
  };
  EXPECT_EQ(refused("{}"), "bad_value");
  EXPECT_EQ(refused(R"({"ip":"10.0.0.1","apikey":"k"})"), "bad_value");
  EXPECT_EQ(refused(R"({"ip":"10.0.0.1/8"})"), "bad_value");
  EXPECT_EQ(refused(R"({"limit":"orders"})"), "bad_value");
  EXPECT_EQ(refused(R"({"limit":"nope","id":"1"})"), "unknown_limit");
  EXPECT_EQ(refused(R"({"limit":"per-ip","id":"x"})"), "bad_id");
  EXPECT_EQ(refused(R"({"ip":"10.0.0.1","expires":"2001-01-01T00:00:00Z"})"), "bad_value");
  EXPECT_EQ(refused(R"({"ip":"10.0.0.1","expires":"tomorrow"})"), "bad_value");
  EXPECT_EQ(refused(R"({"ip":"10.0.0.1","for":"1h","expires":"2030-01-01T00:00:00Z"})"), "bad_value");
  EXPECT_EQ(refused(R"({"ip":"10.0.0.1","why":"x"})"), "unknown_field");
  EXPECT_EQ(api.get("/ratelimit/access/grey").error(), "not_found");
  EXPECT_EQ(api.call("POST", "/ratelimit/access/grey", "{}").error(), "not_found");
  EXPECT_EQ(api.call("DELETE", "/ratelimit/access/deny").error(), "bad_value");
  EXPECT_TRUE(api.fixture.log.empty());
}

TEST(Access, ATextThatIsTooLongHasTheStatusOfItsCode) {
  AdminClient api;
  const std::string reason(257, 'x');
  const HttpReply reply = api.call("POST", "/ratelimit/access/deny", R"({"ip":"10.0.0.1","reason":")" + reason + "\"}");
  EXPECT_EQ(reply.status, 413);
  EXPECT_EQ(reply.error(), "too_large");
}

TEST(Access, TheClientToRemoveIsNamedOnce) {
  AdminClient api;
  for (const char* const ip : {"10.0.0.1", "10.0.0.2"}) {
    api.call("POST", "/ratelimit/access/deny", R"({"ip":")" + std::string(ip) + "\"}");
  }
  EXPECT_EQ(api.call("DELETE", "/ratelimit/access/deny?ip=10.0.0.1", R"({"ip":"10.0.0.2"})").error(), "bad_value");
  EXPECT_EQ(api.get("/ratelimit/access/deny").json()["entries"].size(), 2u);
  EXPECT_EQ(api.call("DELETE", "/ratelimit/access/deny?ip=10.0.0.1", "{}").status, 200) << "the content names none";
}

TEST(Config, AppliesMergedNumbersAtOnceAndShowsTheirOrigin) {
  AdminClient api;
  EXPECT_TRUE(api.allowed("orders", "1", 5));
  EXPECT_FALSE(api.allowed("orders", "1"));
  const HttpReply reply = api.call("PUT", "/ratelimit/config", R"({"limits":{"orders":{"burst":7}}})");
  EXPECT_EQ(reply.status, 200) << reply.content;
  EXPECT_EQ(reply.json()["policy_version"], 2);
  EXPECT_TRUE(api.allowed("orders", "1", 2)) << "live buckets have the new numbers";
  EXPECT_FALSE(api.allowed("orders", "1"));
  bool found = false;
  const json shown = api.get("/ratelimit/config").json();
  for (const json& setting : shown["settings"]) {
    if (setting["path"] == "limits.orders.burst") {
      found = true;
      EXPECT_EQ(setting["value"], "7");
      EXPECT_EQ(setting["source"], "api");
    }
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(shown["overrides"], 3);
  EXPECT_TRUE(std::any_of(shown["settings"].begin(), shown["settings"].end(),
                          [](const json& setting) { return setting["path"] == "overrides.orders:vip"; }));
  EXPECT_EQ(api.call("POST", "/ratelimit/reload").status, 200);
  EXPECT_FALSE(api.allowed("orders", "2", 6)) << "until the next reload";
  ASSERT_EQ(api.fixture.log.size(), 2u);
  EXPECT_NE(api.fixture.log[0].find(R"("action":"config")"), std::string::npos);
  EXPECT_NE(api.fixture.log[0].find("changed limit orders"), std::string::npos) << api.fixture.log[0];
}

TEST(Config, ReplacesThePolicyWithYaml) {
  AdminClient api;
  const std::string_view yaml = "limits:\n  orders: {burst: 2, count: 2, period: 1h, number: 6}\n";
  const HttpReply reply = api.call("PUT", "/ratelimit/config", yaml, "Content-Type: application/yaml\r\n");
  EXPECT_EQ(reply.status, 200) << reply.content;
  EXPECT_FALSE(api.allowed("orders", "1", 3));
  EXPECT_EQ(api.get("/ratelimit/clients?limit=per-ip").error(), "unknown_limit");
}

TEST(Config, NewPolicyKeepsSettingsThatItDoesNotMention) {
  AdminClient api("failure_policy: failClosed\nheaders: {reset: delta}\n");
  const std::string_view yaml = "limits:\n  orders: {burst: 2, count: 2, period: 1h, number: 6}\n";
  EXPECT_EQ(api.call("PUT", "/ratelimit/config", yaml, "Content-Type: application/yaml\r\n").status, 200);
  std::map<std::string, std::string> values;
  const json shown = api.get("/ratelimit/config").json();
  for (const json& setting : shown["settings"]) values[setting["path"]] = setting["value"];
  EXPECT_EQ(values["failure_policy"], "failClosed") << "it must not fail open unasked";
  EXPECT_EQ(values["headers.reset"], "delta");
}

TEST(Config, InvalidConfigurationChangesNothing) {
  AdminClient api;
  EXPECT_EQ(api.call("PUT", "/ratelimit/config", "{").error(), "bad_json");
  EXPECT_EQ(api.call("PUT", "/ratelimit/config", R"({"limits":{"orders":{"burst":0}}})").error(), "bad_value");
  EXPECT_EQ(api.call("PUT", "/ratelimit/config", R"({"limits":{"orders":{"brust":1}}})").error(), "bad_value");
  EXPECT_EQ(api.call("PUT", "/ratelimit/config", R"({"limits":{"nope":{"burst":1}}})").error(), "bad_value");
  EXPECT_EQ(api.call("PUT", "/ratelimit/config", "limits: [", "Content-Type: application/yaml\r\n").error(),
            "bad_value");
  EXPECT_EQ(api.call("PUT", "/ratelimit/config", "x", "Content-Type: text/plain\r\n").error(),
            "unsupported_media_type");
  EXPECT_EQ(api.get("/ratelimit/stats").json()["policy_version"], 1);
  EXPECT_TRUE(api.allowed("orders", "1", 5));
  EXPECT_TRUE(api.fixture.log.empty());
}

TEST(Config, HidesSecrets) {
  AdminClient api("admin: {read_token: reader-secret, write_token: writer-secret}\n");
  const HttpReply reply = api.call("GET", "/ratelimit/config", {}, "Authorization: Bearer reader-secret\r\n");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.content.find("-secret"), std::string::npos);
  EXPECT_NE(reply.content.find("(hidden)"), std::string::npos);
}

// An archive whose save() blocks until the test releases it.
class SlowDisk final : public KnownArchive {
 public:
  Result<SavedKnown> load() override { return SavedKnown{}; }
  Result<void> save(const SavedKnown&) override {
    const std::lock_guard lock(gate);
    ++saved;
    return {};
  }
  std::mutex gate;
  std::atomic<int> saved{0};
};

TEST(Changes, DoNotBlockTheLoopOnTheDisk) {
  SlowDisk disk;
  AdminClient api({}, &disk);
  std::unique_lock held(disk.gate);
  http::Http1Peer adjusting(api.handler, "127.0.0.1");
  http::Http1Peer denying(api.handler, "127.0.0.1");
  http::Http1Peer listing(api.handler, "127.0.0.1");
  const std::string type = "Content-Type: application/json\r\n";
  api.begin(adjusting, AdminClient::request("PUT", "/ratelimit/adjust/orders/1", R"({"burst":50})", type));
  api.begin(denying, AdminClient::request("POST", "/ratelimit/access/deny", R"({"ip":"10.9.9.9"})", type));
  api.begin(listing, AdminClient::request("GET", "/ratelimit/access/deny"));
  EXPECT_TRUE(api.allowed("orders", "2")) << "requests continue";
  EXPECT_EQ(adjusting.turn() + denying.turn(), "") << "the reply waits for the disk";
  EXPECT_TRUE(adjusting.session->busy());
  held.unlock();
  const std::string adjusted = api.wait(adjusting);
  const std::string denied = api.wait(denying);
  const std::string listed = api.wait(listing);
  EXPECT_TRUE(adjusted.starts_with("HTTP/1.1 200 ")) << adjusted;
  EXPECT_TRUE(denied.starts_with("HTTP/1.1 200 ")) << denied;
  EXPECT_TRUE(listed.starts_with("HTTP/1.1 200 ")) << listed;
  EXPECT_EQ(disk.saved, 2);
}

TEST(BackgroundTasks, RunOneAfterAnotherAndAreBounded) {
  BackgroundTasks background_tasks;
  std::mutex gate;
  std::atomic<int> ran{0};
  std::unique_lock held(gate);
  const auto wait = [&] {
    const std::lock_guard lock(gate);
    ++ran;
  };
  std::size_t taken = 0;
  while (taken <= bounds::background_tasks_max && background_tasks.run(wait)) ++taken;
  EXPECT_GE(taken, bounds::background_tasks_max) << "one may already be running";
  while (background_tasks.run(wait)) ++taken;
  EXPECT_LE(taken, bounds::background_tasks_max + 1);
  held.unlock();
  while (ran < static_cast<int>(taken)) std::this_thread::yield();
}

}  // namespace
}  // namespace weir::admin::changes_test
