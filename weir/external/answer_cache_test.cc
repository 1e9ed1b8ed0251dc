#include "weir/external/answer_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/external/stored_answer.h"

namespace weir::external::answer_cache_test {
namespace {

using namespace std::chrono_literals;

constexpr HashKey kKey{1, 2};
constexpr Time kStart = Time{} + 1h;

KeptAnswer answer(Count average, Time now = kStart, Duration fresh = 60s, Duration stale = 300s) {
  KeptAnswer made;
  made.numbers = *Limit::make(average, 1s, 10);
  made.service = "s";
  made.answered = now;
  made.fresh_until = now + fresh;
  made.stale_until = made.fresh_until + stale;
  return made;
}

TEST(AnswerCache, KnowsFreshFromStale) {
  AnswerCache cache(kKey, 100);
  cache.put("limit", "key", answer(7), kStart);
  const auto fresh = cache.find("limit", "key", "s", kStart + 60s - 1ns);
  ASSERT_NE(fresh.answer, nullptr);
  EXPECT_TRUE(fresh.fresh);
  EXPECT_EQ(fresh.answer->numbers->count(), 7);
  const auto stale = cache.find("limit", "key", "s", kStart + 60s);
  EXPECT_EQ(stale.answer, fresh.answer);
  EXPECT_FALSE(stale.fresh);
  EXPECT_NE(cache.find("limit", "key", "s", kStart + 360s - 1ns).answer, nullptr);
  EXPECT_EQ(cache.find("limit", "key", "s", kStart + 360s).answer, nullptr);
}

TEST(AnswerCache, LimitAndKeySelectAnAnswer) {
  AnswerCache cache(kKey, 100);
  cache.put("ab", "c", answer(1), kStart);
  EXPECT_EQ(cache.find("a", "bc", "s", kStart).answer, nullptr);
  EXPECT_EQ(cache.find("ab", "d", "s", kStart).answer, nullptr);
  EXPECT_EQ(cache.find("ac", "c", "s", kStart).answer, nullptr);
  EXPECT_EQ(cache.size(), 1u);
}

TEST(AnswerCache, IgnoresAnswersOfAnotherService) {
  AnswerCache cache(kKey, 100);
  cache.put("limit", "key", answer(7), kStart);
  EXPECT_EQ(cache.find("limit", "key", "other", kStart).answer, nullptr);
  KeptAnswer other = answer(8);
  other.service = "other";
  cache.put("limit", "key", other, kStart);
  EXPECT_EQ(cache.find("limit", "key", "s", kStart).answer, nullptr);
  EXPECT_EQ(cache.find("limit", "key", "other", kStart).answer->numbers->count(), 8);
  EXPECT_EQ(cache.size(), 1u);
}

// What counts for a bucket is since when its numbers are what they are (gcra::settle).
TEST(AnswerCache, SinceChangesWithTheNumbersOnly) {
  AnswerCache cache(kKey, 100);
  EXPECT_EQ(cache.put("limit", "key", answer(7), kStart)->since, kStart);
  EXPECT_EQ(cache.put("limit", "key", answer(7, kStart + 1s), kStart + 1s)->since, kStart);
  KeptAnswer elsewhere = answer(7, kStart + 2s);
  elsewhere.backend_url = "http://b";
  EXPECT_EQ(cache.put("limit", "key", elsewhere, kStart + 2s)->since, kStart);
  EXPECT_EQ(cache.put("limit", "key", answer(8, kStart + 3s), kStart + 3s)->since, kStart + 3s);
  KeptAnswer unlimited = answer(8, kStart + 4s);
  unlimited.numbers.reset();
  EXPECT_EQ(cache.put("limit", "key", unlimited, kStart + 4s)->since, kStart + 4s);
  KeptAnswer other = answer(8, kStart + 5s);
  other.service = "other";
  EXPECT_EQ(cache.put("limit", "key", other, kStart + 5s)->since, kStart + 5s);
}

TEST(AnswerCache, AnAnswerForNobodyElseIsNotKept) {
  AnswerCache cache(kKey, 100);
  cache.put("limit", "key", answer(7), kStart);
  const auto used = cache.put("limit", "key", answer(8, kStart, 0s, 0s), kStart);
  EXPECT_EQ(used->numbers->count(), 8);
  EXPECT_EQ(cache.find("limit", "key", "s", kStart).answer->numbers->count(), 7) << "what was kept stays";
  EXPECT_EQ(cache.put("limit", "other", answer(8, kStart, 0s, 0s), kStart)->since, kStart);
  EXPECT_EQ(cache.size(), 1u);
  cache.put("limit", "stale", answer(8, kStart, 0s, 300s), kStart);
  const auto stale = cache.find("limit", "stale", "s", kStart);
  EXPECT_NE(stale.answer, nullptr);
  EXPECT_FALSE(stale.fresh);
}

TEST(AnswerCache, Forgets) {
  AnswerCache cache(kKey, 100);
  cache.put("limit", "a", answer(7), kStart);
  cache.put("limit", "b", answer(7), kStart);
  EXPECT_TRUE(cache.forget("limit", "a"));
  EXPECT_FALSE(cache.forget("limit", "a"));
  EXPECT_EQ(cache.find("limit", "a", "s", kStart).answer, nullptr);
  EXPECT_NE(cache.find("limit", "b", "s", kStart).answer, nullptr);
  cache.clear();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.find("limit", "b", "s", kStart).answer, nullptr);
}

TEST(AnswerCache, KeepsTheLatestUpToItsBound) {
  AnswerCache cache(kKey, 10);  // one stripe
  for (int i = 0; i < 10; ++i) cache.put("limit", std::to_string(i), answer(7), kStart);
  EXPECT_EQ(cache.size(), 10u);
  cache.put("limit", "0", answer(8), kStart);  // now the latest
  cache.put("limit", "one more", answer(7), kStart);
  EXPECT_EQ(cache.size(), 10u);
  EXPECT_EQ(cache.find("limit", "1", "s", kStart).answer, nullptr);
  for (const std::string_view key : {"0", "2", "9", "one more"}) {
    EXPECT_NE(cache.find("limit", key, "s", kStart).answer, nullptr) << key;
  }
}

TEST(AnswerCache, StripesStayWithinTheBoundTogether) {
  constexpr std::size_t kMost = 64 * 256;
  AnswerCache cache(kKey, kMost);
  for (std::size_t i = 0; i < 2 * kMost; ++i) cache.put("limit", std::to_string(i), answer(7), kStart);
  EXPECT_EQ(cache.size(), kMost) << "every stripe is full";
}

TEST(AnswerCache, ExpiredAnswersMakeRoom) {
  AnswerCache cache(kKey, 100);
  for (int i = 0; i < 10; ++i) cache.put("limit", std::to_string(i), answer(7), kStart);
  const Time later = kStart + 1h;
  for (int i = 0; i < 10; ++i) cache.put("limit", "new" + std::to_string(i), answer(7, later), later);
  EXPECT_EQ(cache.size(), 10u);
}

TEST(StoredAnswer, IsReadBackAsItWas) {
  const Now now{kStart, Wall{1'790'000'000s}};
  KeptAnswer made = answer(7);
  made.tenant_key = "acme";
  made.failure_policy = FailurePolicy::fail_closed;
  made.failure_code = 503;
  made.backend_url = "http://a/\"b\"";
  const std::string text = print_stored_answer("limit", made, now);
  EXPECT_EQ(text, R"({"service":"s","limit":"limit","answered":1790000000000,"keep_stale":true,"average":7,"burst":10,)"
                  R"("period":"1s","tenant_key":"acme","failure_policy":"failClosed","failure_code":503,)"
                  R"("backend_url":"http://a/\"b\""})");
  const Now later{kStart + 20s, now.wall + 20s};
  const auto read = parse_stored_answer({text, "limit", "s", 40s, false}, bounds::window_max, later);
  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_EQ(read->numbers, made.numbers);
  EXPECT_EQ(read->tenant_key, "acme");
  EXPECT_EQ(read->failure_policy, made.failure_policy);
  EXPECT_EQ(read->failure_code, made.failure_code);
  EXPECT_EQ(read->backend_url, made.backend_url);
  EXPECT_EQ(read->service, "s");
  EXPECT_EQ(read->answered, kStart);
  EXPECT_EQ(read->fresh_until, kStart + 60s);
  EXPECT_EQ(read->stale_until, kStart + 60s + bounds::stale_time);
  EXPECT_TRUE(read->shared);
  const auto stale = parse_stored_answer({text, "limit", "s", 40s, true}, bounds::window_max, later);
  ASSERT_TRUE(stale);
  EXPECT_EQ(stale->fresh_until, later.time) << "not fresh";
  EXPECT_EQ(stale->stale_until, later.time + 40s);
}

TEST(StoredAnswer, OfNoStaleCopyAndNoLimit) {
  const Now now{kStart, Wall{1'790'000'000s}};
  KeptAnswer made = answer(7, kStart, 60s, 0s);
  made.numbers.reset();
  const std::string text = print_stored_answer("limit", made, now);
  const auto read = parse_stored_answer({text, "limit", "s", 60s, false}, bounds::window_max, now);
  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_FALSE(read->numbers);
  EXPECT_EQ(read->stale_until, read->fresh_until);
}

// Clocks of servers differ: an answer from the future was given now, and one from before our timeline at its start.
TEST(StoredAnswer, ItsAgeIsWithinOurTimeline) {
  const std::string text = print_stored_answer("limit", answer(7), {kStart, Wall{1'790'000'000s}});
  const auto ahead = parse_stored_answer({text, "limit", "s", 60s, false}, bounds::window_max, {kStart, Wall{1s}});
  EXPECT_EQ(ahead->answered, kStart);
  const auto behind =
      parse_stored_answer({text, "limit", "s", 60s, false}, bounds::window_max, {Time{} + 5s, Wall{1'800'000'000s}});
  EXPECT_EQ(behind->answered, Time{});
}

TEST(StoredAnswer, RefusesWhatIsDamagedOrForeign) {
  const Now now{kStart, Wall{1'790'000'000s}};
  const std::string good = print_stored_answer("limit", answer(7), now);
  EXPECT_FALSE(parse_stored_answer({good, "limit", "other", 60s, false}, bounds::window_max, now));
  EXPECT_FALSE(parse_stored_answer({good, "other", "s", 60s, false}, bounds::window_max, now));
  EXPECT_FALSE(parse_stored_answer({good, "limit", "s", 60s, false}, 1s, now)) << "the store cannot hold it";
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(parse_stored_answer({good.substr(0, size), "limit", "s", 60s, false}, bounds::window_max, now));
  }
  const std::string numbers = R"("average":7,"burst":10,"period":"1s")";
  for (const std::string more :
       {"", R"("answered":-1,"keep_stale":true,)", R"("answered":"x","keep_stale":true,)",
        R"("answered":9223372036854775807,"keep_stale":true,)", R"("answered":1,"keep_stale":1,)",
        R"("answered":1,"keep_stale":true,"tenant_key":"a b",)"}) {
    const std::string text = R"({"service":"s","limit":"limit",)" + more + numbers + "}";
    EXPECT_FALSE(parse_stored_answer({text, "limit", "s", 60s, false}, bounds::window_max, now)) << text;
  }
}

}  // namespace
}  // namespace weir::external::answer_cache_test
