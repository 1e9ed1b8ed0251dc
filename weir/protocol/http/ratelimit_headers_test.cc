#include "weir/protocol/http/ratelimit_headers.h"

#include <gtest/gtest.h>

#include <string>

#include "weir/core/identifier.h"
#include "weir/protocol/http/answer_json.h"

namespace weir::ratelimit_headers_test {
namespace {

using namespace std::chrono_literals;

Answer one(const Decision& decision, Duration window, Duration interval) {
  Answer answer;
  answer.verdict.all.push_back(decision);
  answer.verdict.allowed = decision.allowed;
  answer.labels[0].limit = "per-ip";
  answer.labels[0].rate.window = window;
  answer.labels[0].rate.interval = interval;
  answer.now.wall = Wall{1'700'000'000s + 1ns};
  return answer;
}

std::string written(const Answer& answer, const HeaderFamilies& families = {}) {
  std::string out;
  write_rate_headers(answer, families, out);
  return out;
}

TEST(RateLimitHeaders, AreThoseChosen) {
  const Answer answer = one({true, 20, 19, 0ns, 50ms}, 1s, 50ms);
  EXPECT_EQ(written(answer, {true, false, true}),
            "X-RateLimit-Limit: 20\r\nX-RateLimit-Remaining: 19\r\nX-RateLimit-Reset: 1700000001\r\n");
  EXPECT_EQ(written(answer, {true, false, false}),
            "X-RateLimit-Limit: 20\r\nX-RateLimit-Remaining: 19\r\nX-RateLimit-Reset: 1\r\n");
  EXPECT_EQ(written(answer, {false, true, true}),
            "RateLimit-Policy: \"per-ip\";q=20;w=1\r\nRateLimit: \"per-ip\";r=19;t=1\r\n");
  EXPECT_EQ(written(answer, {false, false, true}), "");
}

TEST(RateLimitHeaders, ListTheRateAndTheQuotaOfALimit) {
  Answer answer = one({true, 20, 19, 0ns, 50ms}, 1s, 50ms);
  answer.verdict.all[0] = {Decision{true, 20, 19, 0ns, 50ms}, Decision{true, 100, 3, 0ns, 1h}};
  answer.labels[0].quota.window = 24h;
  EXPECT_EQ(written(answer),
            "X-RateLimit-Limit: 100\r\nX-RateLimit-Remaining: 3\r\nX-RateLimit-Reset: 1700003601\r\n"
            "RateLimit-Policy: \"per-ip\";q=20;w=1, \"per-ip.quota\";q=100;w=86400\r\n"
            "RateLimit: \"per-ip\";r=19;t=1, \"per-ip.quota\";r=3;t=3600\r\n");
  // Of several ids the strictest speaks, for the rate and for the quota.
  answer.labels[1] = answer.labels[0];
  answer.verdict.all.push_back({Decision{true, 20, 5, 0ns, 750ms}, Decision{true, 100, 90, 0ns, 1h}});
  EXPECT_EQ(written(answer, {false, true, true}),
            "RateLimit-Policy: \"per-ip.quota\";q=100;w=86400, \"per-ip\";q=20;w=1\r\n"
            "RateLimit: \"per-ip.quota\";r=3;t=3600, \"per-ip\";r=5;t=1\r\n");
}

TEST(RateLimitHeaders, NameAQuotaAloneByItsLimit) {
  Answer answer = one({true, 100, 3, 0ns, 1h}, 1s, 50ms);
  answer.verdict.all[0] = {Decision{true, 100, 3, 0ns, 1h}, Kind::quota};
  answer.labels[0].quota.window = 24h;
  EXPECT_EQ(written(answer, {false, true, true}),
            "RateLimit-Policy: \"per-ip\";q=100;w=86400\r\nRateLimit: \"per-ip\";r=3;t=3600\r\n");
}

TEST(RateLimitHeaders, RoundTowardsTheClient) {
  const auto retry = [](Duration wait) {
    return written(one({false, 5, 0, wait, 1h}, 1h, 12min), {false, false, true});
  };
  EXPECT_EQ(retry(1ns), "Retry-After: 1\r\n");
  EXPECT_EQ(retry(1s), "Retry-After: 1\r\n");
  EXPECT_EQ(retry(1s + 1ns), "Retry-After: 2\r\n");
  EXPECT_EQ(retry(0ns), "Retry-After: 1\r\n");
  EXPECT_EQ(retry(kNever), "");
  EXPECT_EQ(written(one({true, 5, 5, 0ns, 0ns}, 1s + 1ns, 200ms), {false, true, true}),
            "RateLimit-Policy: \"per-ip\";q=5;w=2\r\nRateLimit: \"per-ip\";r=5;t=0\r\n");
}

TEST(RateLimitHeaders, TellTheTimeToTheNextTokenNotToTheWantedCost) {
  // Burst 5, a token every 10 s; 12 s of backlog: one token gone and a second 2 s from back.
  const Answer answer = one({false, 5, 3, 42s, 12s}, 50s, 10s);
  EXPECT_EQ(next_token_after(answer.verdict.speaker(), answer.labels[0].rate), 2s);
  // A quota gives everything back at once.
  const Answer quota = one({true, 100, 40, 0ns, 3h}, 24h, 0ns);
  EXPECT_EQ(next_token_after(quota.verdict.speaker(), quota.labels[0].rate), 3h);
  // Numbers that do not belong together never make a negative or an overflowing wait.
  EXPECT_EQ(next_token_after({true, INT64_MAX, 0, 0ns, 1s}, answer.labels[0].rate), 1s);
}

TEST(RateLimitHeaders, ListEveryLimitThatEnforces) {
  Answer answer = one({true, 20, 19, 0ns, 50ms}, 1s, 50ms);
  for (const char* name : {"dark", "q\"\\\n"}) {
    answer.labels[answer.verdict.all.size()] = answer.labels[0];
    answer.labels[answer.verdict.all.size()].limit = name;
    answer.labels[answer.verdict.all.size()].shadow = name[0] == 'd';
    answer.verdict.all.push_back(Decision{true, 7, 6, 0ns, 50ms});
  }
  EXPECT_EQ(written(answer, {false, true, true}),
            "RateLimit-Policy: \"per-ip\";q=20;w=1, \"q\\\"\\\\?\";q=7;w=1\r\n"
            "RateLimit: \"per-ip\";r=19;t=1, \"q\\\"\\\\?\";r=6;t=1\r\n");
}

TEST(RateLimitHeaders, NameALimitOnceThoughItWasChargedForSeveralIds) {
  Answer answer = one({true, 20, 19, 0ns, 50ms}, 1s, 50ms);
  for (const Count remaining : {3, 12, 3}) {
    answer.labels[answer.verdict.all.size()] = answer.labels[0];
    answer.labels[answer.verdict.all.size()].id = remaining == 3 ? "203.0.113.3" : "203.0.113.12";
    answer.verdict.all.push_back(Decision{true, 20, remaining, 0ns, 50ms * (20 - remaining)});
  }
  EXPECT_EQ(written(answer, {false, true, true}),
            "RateLimit-Policy: \"per-ip\";q=20;w=1\r\nRateLimit: \"per-ip\";r=3;t=1\r\n");
}

TEST(RateLimitHeaders, OfABlockedClientWouldBringItBackAtOnce) {
  EXPECT_EQ(written(one({false, 0, 0, kNever, 0ns}, 0ns, 0ns)), "");
}

TEST(RateLimitHeaders, OfAShadowLimitAloneWouldSlowClientsDownForNothing) {
  Answer answer = one({false, 1, 0, 1h, 1h}, 1h, 1h);
  answer.verdict.allowed = true;
  answer.labels[0].shadow = true;
  EXPECT_EQ(written(answer), "");
}

TEST(Identifier, NamesWhoIsMeant) {
  const auto named = [](std::string_view limit, std::string_view id, std::string_view key) {
    Label label;
    label.limit = limit;
    label.id = id;
    label.key = key;
    return identifier_of(label);
  };
  EXPECT_EQ(named("per-ip", "192.168.1.1", "ip"), "ip:192.168.1.1");
  EXPECT_EQ(named("per-apikey", "k", "apikey"), "apikey:k");
  EXPECT_EQ(named("everyone", "", "global"), "global");
  EXPECT_EQ(named("per-tenant", "acme", "header:x-tenant-id"), "per-tenant:acme");
  EXPECT_EQ(named("orders", "12", ""), "orders:12");
  EXPECT_EQ(named("", "user:42", ""), "user:42");
}

}  // namespace
}  // namespace weir::ratelimit_headers_test
