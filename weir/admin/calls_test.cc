// Every call, with valid and invalid input.
#include "weir/admin/calls.h"

#include <gtest/gtest.h>

#include "weir/admin/admin_client_test.h"
#include "weir/identify/handle.h"

namespace weir::admin::calls_test {
namespace {

using nlohmann::json;

TEST(Stats, CountsRequestsAndActiveBuckets) {
  AdminClient api;
  EXPECT_TRUE(api.allowed("orders", "1", 5));
  EXPECT_FALSE(api.allowed("orders", "1"));
  EXPECT_TRUE(api.allowed("orders", "2"));
  EXPECT_TRUE(api.allowed("per-ip", "10.0.0.1"));
  const json stats = api.get("/ratelimit/stats").json();
  EXPECT_EQ(stats["uptime_seconds"], 10);
  EXPECT_EQ(stats["policy_version"], 1);
  EXPECT_EQ(stats["store"], json::parse(R"({"kind":"memory","up":true})"));
  EXPECT_EQ(stats["totals"], json::parse(R"({"requests":4,"allowed":3,"denied":1,"shadow_denied":0,
                                             "allow_listed":0,"deny_listed":0})"));
  ASSERT_EQ(stats["limits"].size(), 4u) << "limits without requests are included";
  EXPECT_EQ(stats["limits"][1], json::parse(R"({"limit":"orders","allowed":2,"denied":1,"shadow_denied":0,
                                                "active":2})"));
  EXPECT_TRUE(stats["latency_seconds"].contains("p999"));
}

// A list cannot know the override of a hashed id, so it does not show the numbers in force.
TEST(Clients, ListOfAHashedLimitWithAnOverrideChangesNothing) {
  AdminClient api;
  const std::string_view yaml =
      "limits: {login: {rate: 3/s, hashed: true}}\n"
      "overrides: {'login:slow': {burst: 3, count: 3, period: 1h}}\n";
  ASSERT_EQ(api.call("PUT", "/ratelimit/config", yaml, "Content-Type: application/yaml\r\n").status, 200);
  EXPECT_TRUE(api.allowed("login", "slow", 3));
  const json listed = api.get("/ratelimit/clients").json();
  ASSERT_EQ(listed["clients"].size(), 1u) << listed;
  EXPECT_EQ(listed["clients"][0]["remaining"], 0);
  const std::string id = listed["clients"][0]["id"];
  EXPECT_EQ(api.get("/ratelimit/clients/login/" + id).json()["remaining"], 0);
  api.fixture.clock().advance(std::chrono::minutes{10});
  EXPECT_EQ(api.get("/ratelimit/clients/login/" + id).status, 200) << "full with the limit's numbers, but still stored";
  const auto answer = api.check("login", "slow");
  EXPECT_FALSE(answer->verdict.allowed);
  EXPECT_EQ(answer->verdict.all[0].strictest().retry_after, std::chrono::minutes{10});
}

TEST(Metrics, ReportTheNumberOfActiveClients) {
  AdminClient api;
  for (const std::string_view id : {"1", "2", "3"}) api.ask("orders", id);
  const std::string text = api.get("/metrics").content;
  EXPECT_NE(text.find("weir_rate_limit_active_clients{limit=\"orders\",limiter_type=\"\"} 3\n"), text.npos) << text;
  EXPECT_NE(text.find("weir_rate_limit_active_clients{limit=\"per-ip\",limiter_type=\"ip\"} 0\n"), text.npos);
}

TEST(Metrics, HaveEveryConfiguredLimitAtZeroFromTheStart) {
  AdminClient api;
  const std::string text = api.get("/metrics").content;
  for (const std::string_view series :
       {R"(weir_rate_limit_requests_total{limit="per-ip",limiter_type="ip",status="allowed"} 0)",
        R"(weir_rate_limit_requests_total{limit="per-ip",limiter_type="ip",status="denied"} 0)",
        R"(weir_rate_limit_requests_total{limit="orders",limiter_type="",status="shadow_denied"} 0)",
        R"(weir_rate_limit_exceeded_total{limit="monthly",limiter_type=""} 0)",
        R"(weir_blocks_total{limit="per-ip"} 0)"}) {
    EXPECT_NE(text.find(series), text.npos) << series << "\n" << text;
  }
}

// A store that never answers, like a stopped Redis.
class SilentBucketScan final : public BucketScan {
 public:
  void visit(std::string_view, Look, Now, const Visit&, const Done&) override {}
  void forget(std::string_view, Now, const Done&) override {}
};

TEST(Stats, DoNotWaitForAStoreThatHangs) {
  SilentBucketScan bucket_scan;
  AdminFixture fixture(bucket_scan);
  for (const auto call : {stats, metrics}) {
    const Outcome outcome = call(fixture.shared(), Request{});
    Work& work = *std::get<std::unique_ptr<Work>>(outcome);
    EXPECT_FALSE(work.advance(fixture.clock().now(), [] {}));
    fixture.clock().advance(std::chrono::milliseconds{499});
    EXPECT_FALSE(work.advance(fixture.clock().now(), [] {}));
    fixture.clock().advance(std::chrono::milliseconds{1});
    const std::optional<Outcome> done = work.advance(fixture.clock().now(), [] {});
    ASSERT_TRUE(done);
    const Reply* const reply = &std::get<Reply>(*done);
    EXPECT_EQ(reply->status, 200);
    EXPECT_EQ(reply->content.find("active_clients{"), std::string::npos);
    if (call == metrics) continue;
    EXPECT_TRUE(json::parse(reply->content)["limits"][0]["active"].is_null()) << reply->content;
  }
}

TEST(Client, HasNoNumbersIfBlockedOrUnlimited) {
  AdminClient api;
  const json blocked = api.get("/ratelimit/clients/orders/bad").json();
  EXPECT_EQ(blocked["source"], "override");
  EXPECT_EQ(blocked["remaining"], 0);
  EXPECT_TRUE(blocked["burst"].is_null()) << "the limit's own numbers would suggest that it may pass";
  const json unlimited = api.get("/ratelimit/clients/orders/friend").json();
  EXPECT_EQ(unlimited["remaining"], -1);
  EXPECT_TRUE(unlimited["burst"].is_null());
}

TEST(Clients, ShowsCurrentBucketsWithTheirNumbersAndSource) {
  AdminClient api;
  api.ask("orders", "vip");
  EXPECT_TRUE(api.allowed("orders", "1", 5));
  EXPECT_FALSE(api.allowed("orders", "1"));
  api.fixture.clock().advance(std::chrono::minutes{12});
  const json all = api.get("/ratelimit/clients?sort=remaining").json();
  ASSERT_EQ(all["clients"].size(), 2u);
  EXPECT_EQ(all["clients"][0], json::parse(R"({"limit":"orders","id":"1","identifier":"orders:1","bucket":"6:1",
      "burst":5,"count":5,"period":"1h","source":"limit","remaining":1,"reset_after":2880,"allowed":1,"denied":1,
      "shadow_denied":0,"first_seen":"2023-11-14T22:13:20Z","last_seen":"2023-11-14T22:13:20Z"})"));
  EXPECT_EQ(all["clients"][1]["source"], "override");
  EXPECT_EQ(all["clients"][1]["burst"], 50);
  EXPECT_EQ(all["cursor"], "");
}

TEST(Clients, PagesIncludeEveryClient) {
  AdminClient api;
  for (int i = 0; i < 50; ++i) {
    for (int j = 0; j <= i % 3; ++j) api.ask("per-ip", "10.0.0." + std::to_string(i));
  }
  for (const std::string sort : {"", "&sort=requests", "&sort=remaining", "&sort=denied"}) {
    std::map<std::string, int> seen;
    std::vector<int> requests;
    std::string cursor;
    do {
      const HttpReply reply = api.get("/ratelimit/clients?n=7" + sort + "&cursor=" + cursor);
      ASSERT_EQ(reply.status, 200) << reply.content;
      const json page = reply.json();
      EXPECT_LE(page["clients"].size(), 7u);
      for (const json& client : page["clients"]) {
        ++seen[client["id"]];
        requests.push_back(client["allowed"]);
      }
      cursor = page["cursor"];
    } while (!cursor.empty());
    EXPECT_EQ(seen.size(), 50u) << sort;
    for (const auto& [id, times] : seen) EXPECT_EQ(times, 1) << id << sort;
    if (sort == "&sort=requests" || sort == "&sort=remaining") {
      EXPECT_TRUE(std::is_sorted(requests.rbegin(), requests.rend())) << sort;
    }
  }
}

TEST(Clients, FiltersByLimitAndPrefix) {
  AdminClient api;
  api.ask("per-ip", "10.0.0.1");
  api.ask("per-ip", "192.0.2.1");
  api.ask("orders", "10");
  EXPECT_EQ(api.get("/ratelimit/clients?limit=orders").json()["clients"].size(), 1u);
  EXPECT_EQ(api.get("/ratelimit/clients?prefix=10").json()["clients"].size(), 2u);
  EXPECT_EQ(api.get("/ratelimit/clients?prefix=ip:10.").json()["clients"].size(), 1u);
  EXPECT_EQ(api.get("/ratelimit/clients?limit=nope").error(), "unknown_limit");
  EXPECT_EQ(api.get("/ratelimit/clients?sort=age").error(), "bad_value");
  EXPECT_EQ(api.get("/ratelimit/clients?n=0").error(), "bad_value");
  EXPECT_EQ(api.get("/ratelimit/clients?n=1001").error(), "bad_value");
  EXPECT_EQ(api.get("/ratelimit/clients?n=1000").status, 200);
  EXPECT_EQ(api.get("/ratelimit/clients?cursor=nonsense").error(), "bad_value");
  EXPECT_EQ(api.get("/ratelimit/clients?sort=denied&cursor=nonsense").error(), "bad_value");
}

TEST(Clients, NeverShowsAnApiKeyInFull) {
  AdminClient api;
  api.ask("per-apikey", "key-abc-123");
  for (const std::string_view path :
       {"/ratelimit/clients", "/ratelimit/top", "/ratelimit/clients/per-apikey/key-abc-123"}) {
    const std::string content = api.get(path).content;
    EXPECT_EQ(content.find("key-"), content.npos) << content;
    EXPECT_NE(content.find(handle_of("key", "key-abc-123")), content.npos) << content;
  }
  api.call("POST", "/ratelimit/reset/apikey:key-abc-123");
  ASSERT_EQ(api.fixture.log.size(), 1u);
  EXPECT_EQ(api.fixture.log[0].find("key-"), std::string::npos);
}

TEST(Client, ShowsOneBucketWithItsLastDenials) {
  AdminClient api;
  EXPECT_TRUE(api.allowed("orders", "1", 5));
  EXPECT_FALSE(api.allowed("orders", "1"));
  const json client = api.get("/ratelimit/clients/orders/1").json();
  EXPECT_EQ(client["remaining"], 0);
  EXPECT_EQ(client["reset_after"], 3600);
  EXPECT_EQ(client["denied"], 1);
  EXPECT_EQ(client["last_denials"], json::parse(R"(["2023-11-14T22:13:20Z"])"));
  EXPECT_EQ(api.get("/ratelimit/clients/orders/vip").json()["source"], "override");
  EXPECT_EQ(api.get("/ratelimit/clients/orders/unseen").error(), "not_found");
  EXPECT_EQ(api.get("/ratelimit/clients/nope/1").error(), "unknown_limit");
  EXPECT_EQ(api.get("/ratelimit/clients/per-ip/x").error(), "bad_id");
  EXPECT_TRUE(api.allowed("monthly", "acme", 40));
  EXPECT_EQ(api.get("/ratelimit/clients/monthly/acme").json()["remaining"], 60);
  EXPECT_TRUE(api.allowed("per-ip", "2001:db8::1"));
  EXPECT_EQ(api.get("/ratelimit/clients/per-ip/2001:db8::%2F64").json()["remaining"], 9);
  EXPECT_EQ(api.get("/ratelimit/clients/per-ip/2001:db8::/64").json()["remaining"], 9);
}

TEST(Client, ShowsALimitsRateAndQuotaTogether) {
  AdminClient api("  orders:both: {burst: 9, count: 9, period: 1h, quota: 20/day}\n");
  EXPECT_TRUE(api.allowed("orders", "both", 2));
  api.fixture.clock().advance(std::chrono::minutes{20});
  const json client = api.get("/ratelimit/clients/orders/both").json();
  EXPECT_EQ(client["rate"], json::parse(R"({"burst":9,"count":9,"period":"1h","remaining":9,"reset_after":0})"));
  EXPECT_EQ(client["quota"]["burst"], 20);
  EXPECT_EQ(client["quota"]["period"], "1d");
  EXPECT_EQ(client["quota"]["remaining"], 18);
  EXPECT_EQ(client["remaining"], 9) << "the stricter of the two";
  const json monthly = (api.ask("monthly", "acme"), api.get("/ratelimit/clients/monthly/acme").json());
  EXPECT_TRUE(monthly["rate"].is_null());
  EXPECT_EQ(monthly["quota"]["remaining"], 99);
}

TEST(Client, DescribesAFullBucketIfAsked) {
  AdminClient api;
  EXPECT_EQ(api.get("/ratelimit/clients/orders/nobody").error(), "not_found");
  EXPECT_EQ(api.get("/ratelimit/clients/orders/nobody?full=false").error(), "not_found");
  EXPECT_EQ(api.get("/ratelimit/clients/orders/nobody?full=yes").error(), "bad_value");
  const json client = api.get("/ratelimit/clients/orders/nobody?full=true").json();
  EXPECT_EQ(client["rate"], json::parse(R"({"burst":5,"count":5,"period":"1h","remaining":5,"reset_after":0})"));
  EXPECT_TRUE(client["allowed"].is_null());
}

TEST(Client, ShowsABlock) {
  AdminClient api;
  EXPECT_TRUE(api.get("/ratelimit/clients/orders/vip").json()["block"].is_null());
  AccessEntry entry;
  entry.ip = *IpPrefix::parse("10.0.0.9");
  entry.reason = "automatic block: 3 denials within 1m, the last by per-ip";
  entry.added_by = "weir";
  entry.expires = api.now().wall + std::chrono::minutes{10};
  api.fixture.keeper().block(entry);
  const HttpReply reply = api.get("/ratelimit/clients/per-ip/10.0.0.9");
  ASSERT_EQ(reply.status, 200) << "even if its bucket is full: " << reply.content;
  EXPECT_EQ(reply.json()["block"], json::parse(R"({"reason":"automatic block: 3 denials within 1m, the last by per-ip",
      "expires":"2023-11-14T22:23:20Z","added_by":"weir"})"));
  api.fixture.clock().advance(std::chrono::minutes{10});
  EXPECT_EQ(api.get("/ratelimit/clients/per-ip/10.0.0.9").error(), "not_found");
}

TEST(Top, CountsShadowDenialsSeparately) {
  AdminClient api;
  Answer answer;
  answer.verdict.all.push_back(Decision{false, 10, 0, {}, {}});
  answer.labels[0].limit = "orders";
  answer.labels[0].id = "quiet";
  answer.labels[0].rate.key = "6:quiet";
  answer.labels[0].shadow = true;
  api.fixture.metrics.record(answer);
  EXPECT_TRUE(api.get("/ratelimit/top?by=denied").json()["clients"].empty());
  EXPECT_EQ(api.get("/ratelimit/top?by=shadow_denied").json(),
            json::parse(R"({"by":"shadow_denied","clients":[{"limit":"orders","id":"quiet","count":1,"error":0}]})"));
  const json client = api.get("/ratelimit/clients/orders/quiet").json();
  EXPECT_EQ(client["denied"], 0);
  EXPECT_EQ(client["shadow_denied"], 1);
  EXPECT_TRUE(client["last_denials"].empty());
}

TEST(Top, ListsTheHeaviestClients) {
  AdminClient api;
  for (int i = 0; i < 7; ++i) api.ask("orders", "busy");
  api.ask("per-ip", "10.0.0.1");
  EXPECT_EQ(api.get("/ratelimit/top?n=1").json(),
            json::parse(R"({"by":"requests","clients":[{"limit":"orders","id":"busy","count":7,"error":0}]})"));
  EXPECT_EQ(api.get("/ratelimit/top?by=denied").json()["clients"][0]["count"], 2);
  EXPECT_EQ(api.get("/ratelimit/top?by=age").error(), "bad_value");
  EXPECT_EQ(api.get("/ratelimit/top?n=x").error(), "bad_value");
}

TEST(Reset, AppliesToTheNextRequest) {
  AdminClient api;
  for (const std::string_view id : {"10.0.0.1", "10.0.0.2"}) EXPECT_TRUE(api.allowed("per-ip", id, 10));
  EXPECT_TRUE(api.allowed("orders", "10.0.0.1", 5));
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/ip:10.0.0.1").content, R"({"reset":1})");
  EXPECT_TRUE(api.allowed("per-ip", "10.0.0.1"));
  EXPECT_FALSE(api.allowed("per-ip", "10.0.0.2"));
  EXPECT_FALSE(api.allowed("orders", "10.0.0.1"));
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/10.0.0.1").content, R"({"reset":2})") << "a bare id: every limit";
  EXPECT_TRUE(api.allowed("orders", "10.0.0.1"));
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/10.0.0.2?limit=per-ip").content, R"({"reset":1})");
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/per-ip:10.0.0.2").content, R"({"reset":0})");
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/nobody").content, R"({"reset":0})");
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/ip:x").error(), "bad_id");
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/1?limit=nope").error(), "unknown_limit");
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/global").error(), "unknown_limit");
}

TEST(Reset, AlsoResetsAQuota) {
  AdminClient api;
  EXPECT_TRUE(api.allowed("monthly", "acme", 100));
  EXPECT_FALSE(api.allowed("monthly", "acme"));
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/monthly:acme").content, R"({"reset":1})");
  EXPECT_TRUE(api.allowed("monthly", "acme", 100));
}

TEST(Reset, AFieldThatIsNullIsAbsent) {
  AdminClient api;
  EXPECT_TRUE(api.allowed("orders", "7", 5));
  EXPECT_EQ(api.call("POST", "/ratelimit/reset", R"({"id":"orders:7","limit":null,"block":null})").content,
            R"({"reset":1})");
}

TEST(Reset, OfAllNeedsConfirmation) {
  AdminClient api;
  for (int i = 0; i < 3000; ++i) api.ask("orders", std::to_string(i), 5);
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/all").error(), "bad_value");
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/all?confirm=yes").error(), "bad_value");
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/all?confirm=all&limit=orders").error(), "bad_value") << "of all limits";
  EXPECT_FALSE(api.allowed("orders", "7"));
  EXPECT_EQ(api.call("POST", "/ratelimit/reset/all?confirm=all").content, R"({"reset":3000})");
  EXPECT_TRUE(api.allowed("orders", "7"));
  ASSERT_EQ(api.fixture.log.size(), 1u);
  EXPECT_EQ(api.fixture.log[0],
            R"(audit {"time":"2023-11-14T22:13:20Z","who":"127.0.0.1","action":"reset","target":"all",)"
            R"("before":{"buckets":3000},"after":{"buckets":0}})");
}

}  // namespace
}  // namespace weir::admin::calls_test
