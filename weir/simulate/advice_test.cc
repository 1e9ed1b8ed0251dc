#include "weir/simulate/advice.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

#include "weir/algorithm/gcra.h"

namespace weir::simulate::advice_test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kAll = 1'000'000;

std::uint64_t denied(Spool& spool, const Limit& limit, std::size_t clients) {
  const Result<std::uint64_t> count = count_denied(limit, spool, clients, kAll);
  EXPECT_TRUE(count);
  return *count;
}

// Returns the burst that denies no request, computed as in LogReplay.
Count demand(const std::vector<SpooledRequest>& requests, const Limit& limit, std::size_t clients) {
  std::vector<std::int64_t> tats(clients);
  Count most = 1;
  for (const SpooledRequest& request : requests) {
    std::int64_t& tat = tats[request.client];
    tat = std::max(tat, request.time_ns) + limit.interval().count() * request.cost;
    const std::int64_t ahead = tat - request.time_ns;
    most = std::max(most, (ahead + limit.interval().count() - 1) / limit.interval().count());
  }
  return most;
}

TEST(Advice, CountsWhatGcraDenies) {
  rc::check([] {
    constexpr std::size_t kClients = 3;
    const Limit limit = *Limit::make(*rc::gen::inRange(1, 20), 1s, *rc::gen::inRange(1, 8));
    Spool spool(64);  // so that nearly everything goes through the file
    std::vector<Time> tats(kClients);
    std::int64_t now = 1'000'000'000;
    std::uint64_t expected = 0;
    for (int i = 0; i < 60; ++i) {
      now += *rc::gen::inRange(0, 200) * 1'000'000;
      const auto client = *rc::gen::inRange<std::uint32_t>(0, kClients);
      const auto cost = *rc::gen::inRange<std::uint32_t>(1, 4);
      RC_ASSERT(spool.add({now, client, cost}).has_value());
      const Step step = gcra::spend(limit, tats[client], cost, Time{Duration{now}});
      tats[client] = step.tat;
      expected += step.decision.allowed ? 0 : 1;
    }
    RC_ASSERT(*count_denied(limit, spool, kClients, kAll) == expected);
  });
}

TEST(Advice, AdvisedNumbersDenyAtMostWhatIsToleratedAndTheNextSmallerDenyMore) {
  rc::check([] {
    constexpr std::size_t kClients = 5;
    const Limit limit = *Limit::make(*rc::gen::inRange(1, 30), 1s, *rc::gen::inRange(1, 10));
    Spool spool(1024);
    std::vector<SpooledRequest> requests;
    std::int64_t now = 1'000'000'000;
    for (int i = 0; i < 300; ++i) {
      now += *rc::gen::inRange(1, 60) * 1'000'000;
      requests.push_back({now, *rc::gen::inRange<std::uint32_t>(0, kClients), 1});
      RC_ASSERT(spool.add(requests.back()).has_value());
    }
    const auto tolerated = *rc::gen::element<std::uint64_t>(0, 3, 30);
    const Advice advice = advise(limit, spool, kClients, tolerated, demand(requests, limit, kClients));
    RC_ASSERT(advice.none.empty());
    RC_ASSERT(advice.burst.has_value());
    RC_ASSERT(denied(spool, advice.burst->limit, kClients) <= tolerated);
    RC_ASSERT(denied(spool, advice.burst->limit, kClients) == advice.burst->denied);
    const Limit& burst = advice.burst->limit;
    if (burst.burst() > 1) {
      RC_ASSERT(denied(spool, *Limit::make(burst.count(), burst.period(), burst.burst() - 1), kClients) > tolerated);
    }
    if (!advice.rate) return;
    const Limit& rate = advice.rate->limit;
    RC_ASSERT(denied(spool, rate, kClients) <= tolerated);
    const Result<Limit> slower = rate.count() > 1 ? Limit::make(rate.count() - 1, rate.period(), rate.burst())
                                                  : Limit::make(1, rate.period() + limit.period(), rate.burst());
    if (slower && rate.period() < limit.period() * (1 << 20)) RC_ASSERT(denied(spool, *slower, kClients) > tolerated);
  });
}

TEST(Advice, SaysThatNoRateIsEnoughForWhatComesAtOnce) {
  Spool spool;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(spool.add({1'000'000'000, 0, 1}));
  const Advice advice = advise(Limit::per_second(1), spool, 1, 0, 5);
  ASSERT_TRUE(advice.burst);
  EXPECT_EQ(advice.burst->limit.burst(), 5);
  EXPECT_FALSE(advice.rate);
}

TEST(Advice, StartsAgainWhereAPlaceGoesToAnotherClient) {
  Spool spool;
  ASSERT_TRUE(spool.add({1'000'000'000, 0, 1}));
  ASSERT_TRUE(spool.add({1'000'000'001, 0, 0}));
  ASSERT_TRUE(spool.add({1'000'000'002, 0, 1}));
  EXPECT_EQ(denied(spool, Limit::per_second(1), 1), 0u);
}

TEST(Spool, KeepsTheOrderAcrossMemoryAndFile) {
  for (const std::uint32_t many : {3u, 4u, 5u, 100'000u}) {
    Spool spool(4 * sizeof(SpooledRequest));
    for (std::uint32_t i = 0; i < many; ++i) ASSERT_TRUE(spool.add({0, i, 1}));
    EXPECT_EQ(spool.size(), many);
    std::uint32_t next = 0;
    ASSERT_TRUE(spool.each([&](std::span<const SpooledRequest> requests) {
      for (const SpooledRequest& request : requests) EXPECT_EQ(request.client, next++);
      return true;
    }));
    EXPECT_EQ(next, many);
  }
}

}  // namespace
}  // namespace weir::simulate::advice_test
