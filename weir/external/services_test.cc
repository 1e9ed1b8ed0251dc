#include "weir/external/services.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "weir/base/bounds.h"
#include "weir/external/fake_services_test.h"

namespace weir::external::services_test {
namespace {

using namespace std::chrono_literals;

NamedLimit limit_with(std::size_t concurrent = 50, std::size_t waiting = 10'000) {
  auto service = std::make_shared<LimitsService>();
  service->timeout = 5s;
  service->cache_ttl = 60s;
  service->concurrent_max = concurrent;
  service->waiting_max = waiting;
  service->digest = "here";
  NamedLimit limit;
  limit.name = "tenant";
  limit.service = std::move(service);
  return limit;
}

struct OneLoop {
  OneLoop(Services& services, FakeCalls& calls)
      : asks(services, std::make_unique<FakeCaller>(calls), loop.post(), metrics) {
    asks.on_answer([this](std::uint64_t wait, std::shared_ptr<const ServiceAnswer> answer) {
      answered[wait] = std::move(answer);
    });
  }

  FakeLoop loop;
  ServiceMetrics metrics;
  LoopServices asks;
  std::map<std::uint64_t, std::shared_ptr<const ServiceAnswer>> answered;
};

class ServicesTest : public testing::Test {
 protected:
  void use(std::shared_ptr<FakeShared> shared) {
    shared_ = shared;
    services_ = std::make_unique<Services>(clock_, HashKey{1, 2}, shared, log(), 100'000);
    here_ = std::make_unique<OneLoop>(*services_, calls_);
    there_ = std::make_unique<OneLoop>(*services_, calls_);
  }
  void SetUp() override { use(nullptr); }
  Services::Log log() {
    return [this](LogLevel, std::string_view line) { log_ += std::string(line) + "\n"; };
  }
  bool waits(OneLoop& loop, std::string_view key) { return ask(loop, key).waits; }
  LoopServices::Asked ask(OneLoop& loop, std::string_view key) { return loop.asks.ask(limit_, key, {}, ++wait_); }
  void run() {
    while (here_->loop.run() || there_->loop.run()) {
    }
  }
  std::uint64_t found(ServiceMetrics::Cache where) {
    const auto i = static_cast<std::size_t>(where);
    return here_->metrics.cache[i].value() + there_->metrics.cache[i].value();
  }

  ManualClock clock_{Time{1000s}, Wall{1000s}};
  FakeCalls calls_;
  std::shared_ptr<FakeShared> shared_;
  std::string log_;
  NamedLimit limit_ = limit_with();
  std::unique_ptr<Services> services_;
  std::unique_ptr<OneLoop> here_;
  std::unique_ptr<OneLoop> there_;
  std::uint64_t wait_ = 0;
};

TEST_F(ServicesTest, AThousandRequestsForOneColdKeyOnTwoLoopsMakeOneCall) {
  for (int i = 0; i < 500; ++i) {
    EXPECT_TRUE(waits(*here_, "acme"));
    EXPECT_TRUE(waits(*there_, "acme"));
  }
  EXPECT_EQ(calls_.made, 1u);
  EXPECT_EQ(services_->gauges().waiting, 1000u);
  calls_.answer(reply_of(5, 10));
  run();
  EXPECT_EQ(here_->answered.size(), 500u);
  EXPECT_EQ(there_->answered.size(), 500u);
  EXPECT_EQ(there_->answered.begin()->second->numbers->burst(), 10);
  EXPECT_EQ(services_->gauges().waiting, 0u);
  EXPECT_FALSE(waits(*there_, "acme"));
  EXPECT_EQ(calls_.made, 1u);
}

TEST_F(ServicesTest, TwoThreadsMakeOneCallTogether) {
  std::atomic<int> ready{0};
  std::atomic<int> asked{0};
  const auto work = [&](OneLoop& loop) {
    ++ready;
    while (ready < 2) std::this_thread::yield();
    for (std::uint64_t i = 1; i <= 500; ++i) {
      // The one that makes the call has no lock on the list of calls: it is the only one.
      if (!loop.asks.ask(limit_, "acme", {}, i).waits) loop.answered[i] = nullptr;
    }
    ++asked;
  };
  std::thread other(work, std::ref(*there_));
  work(*here_);
  other.join();
  EXPECT_EQ(asked, 2);
  ASSERT_EQ(calls_.made, 1u);
  calls_.answer(reply_of(5, 10));
  run();
  EXPECT_EQ(here_->answered.size() + there_->answered.size(), 1000u);
}

TEST_F(ServicesTest, AThousandColdKeysNeverExceedTheConcurrentCalls) {
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(waits(i % 2 == 0 ? *here_ : *there_, "key" + std::to_string(i)));
  EXPECT_EQ(calls_.open.size(), 50u);
  while (!calls_.open.empty()) {
    calls_.answer(reply_of(5, 10));
    run();
  }
  EXPECT_EQ(calls_.made, 1000u);
  EXPECT_EQ(calls_.most, 50u);
  EXPECT_EQ(here_->answered.size() + there_->answered.size(), 1000u);
  EXPECT_EQ(services_->gauges().in_flight, 0u);
}

TEST_F(ServicesTest, BeyondTheBoundRequestsUseTheFallbackAtOnce) {
  limit_ = limit_with(50, 10);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(waits(*here_, "acme"));
  EXPECT_FALSE(waits(*here_, "acme"));
  EXPECT_FALSE(waits(*there_, "other")) << "its call is made, but nobody waits for it";
  EXPECT_EQ(calls_.made, 2u);
  calls_.answer(reply_of(5, 10));
  calls_.answer(reply_of(6, 10));
  EXPECT_EQ(ask(*here_, "other").answer->numbers->count(), 6);
}

TEST_F(ServicesTest, WhoLeavesCancelsNobody) {
  limit_ = limit_with(1);
  EXPECT_TRUE(waits(*here_, "acme"));
  EXPECT_TRUE(waits(*there_, "acme"));
  EXPECT_TRUE(waits(*here_, "queued"));
  EXPECT_TRUE(waits(*here_, "queued too"));
  here_->asks.leave(1);
  here_->asks.leave(3);
  EXPECT_EQ(services_->gauges().waiting, 2u);
  calls_.answer(reply_of(5, 10));
  run();
  EXPECT_TRUE(here_->answered.empty());
  EXPECT_EQ(there_->answered.count(2), 1u);
  ASSERT_EQ(calls_.open.size(), 1u) << "nobody waits for the first in the queue any more";
  EXPECT_EQ(calls_.open.front().key, "queued too");
  here_->asks.leave(4);
  calls_.answer(reply_of(7, 10));
  run();
  EXPECT_TRUE(here_->answered.empty());
  EXPECT_EQ(ask(*here_, "queued too").answer->numbers->count(), 7) << "a call on its way is for the cache too";
}

TEST_F(ServicesTest, AFailureGivesTheStaleAnswerAndThenNone) {
  EXPECT_TRUE(waits(*here_, "acme"));
  calls_.answer(reply_of(5, 10));
  run();
  clock_.advance(61s);
  EXPECT_TRUE(waits(*here_, "acme"));
  calls_.fail();
  run();
  ASSERT_NE(here_->answered.at(2), nullptr);
  EXPECT_EQ(here_->answered.at(2)->numbers->count(), 5);
  EXPECT_EQ(found(ServiceMetrics::Cache::stale), 1u);
  clock_.advance(5min);
  EXPECT_TRUE(waits(*here_, "acme"));
  calls_.fail("timeout");
  run();
  EXPECT_EQ(here_->answered.at(3), nullptr);
  EXPECT_NE(log_.find("reason=unavailable"), std::string::npos) << log_;
  EXPECT_NE(log_.find("reason=timeout"), std::string::npos) << log_;
}

TEST_F(ServicesTest, AnAnswerThatMayNotBeKeptIsForThoseWhoWait) {
  EXPECT_TRUE(waits(*here_, "acme"));
  EXPECT_TRUE(waits(*there_, "acme"));
  calls_.answer(reply_of(5, 10), 0s, false);
  run();
  EXPECT_EQ(there_->answered.at(2)->numbers->count(), 5);
  EXPECT_TRUE(waits(*here_, "acme"));
  EXPECT_EQ(calls_.made, 2u);
}

TEST_F(ServicesTest, FiveFailuresOpenTheBreakerOfThatKeyOnly) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(waits(*here_, "acme"));
    calls_.fail();
    run();
  }
  EXPECT_EQ(services_->gauges().breakers_open, 1u);
  EXPECT_FALSE(waits(*there_, "acme"));
  EXPECT_TRUE(waits(*there_, "other"));
  calls_.answer(reply_of(1, 1));
  clock_.advance(30s);
  EXPECT_TRUE(waits(*here_, "acme"));
  EXPECT_EQ(calls_.made, 7u);
  calls_.answer(reply_of(1, 1));
  EXPECT_EQ(services_->gauges().breakers_open, 0u);
}

TEST_F(ServicesTest, NobodyWaitsForAServiceWhoseBreakerIsOpen) {
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(waits(*here_, "key" + std::to_string(i)));
  while (!calls_.open.empty()) calls_.fail("timeout");
  run();
  EXPECT_TRUE(services_->gauges().services.front().second);
  const std::size_t before = calls_.made;
  clock_.advance(1s);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(waits(*here_, "more" + std::to_string(i)));
  EXPECT_EQ(calls_.made, before + 1) << "one probe, beside the requests";
  calls_.answer(reply_of(5, 10));
  EXPECT_FALSE(services_->gauges().services.front().second);
  EXPECT_TRUE(waits(*here_, "after"));
}

TEST_F(ServicesTest, WhoWaitsForASlotWhenTheBreakerOpensWaitsNoLonger) {
  EXPECT_TRUE(waits(*here_, "known"));
  calls_.answer(reply_of(5, 10));
  run();
  clock_.advance(61s);
  for (int i = 0; i < 99; ++i) EXPECT_TRUE(waits(i % 2 == 0 ? *here_ : *there_, "key" + std::to_string(i)));
  EXPECT_TRUE(waits(*there_, "known"));
  EXPECT_EQ(calls_.made, 51u) << "the others wait for a slot";
  for (int i = 0; i < 20; ++i) calls_.fail("timeout");
  run();
  EXPECT_EQ(calls_.made, 70u) << "19 more before it opened";
  EXPECT_EQ(services_->gauges().waiting, 49u) << "those whose calls are on their way";
  EXPECT_EQ(here_->answered.size() + there_->answered.size(), 1u + 51u);
  EXPECT_EQ(there_->answered.at(wait_)->numbers->count(), 5) << "the last answer is used, if there is one";
  EXPECT_FALSE(waits(*there_, "key60")) << "nobody joins a call";
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(waits(*here_, "more" + std::to_string(i)));
  EXPECT_EQ(calls_.made, 70u) << "the first probe is made after a second";
  clock_.advance(1s);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(waits(*here_, "more" + std::to_string(i)));
  EXPECT_EQ(calls_.made, 71u);
}

TEST_F(ServicesTest, WhoKnowsAStaleAnswerDoesNotWaitForASlowService) {
  for (const char* key : {"acme", "other"}) EXPECT_TRUE(waits(*here_, key));
  for (const Count average : {5, 6}) calls_.answer(reply_of(average, 10));
  run();
  clock_.advance(61s);
  EXPECT_TRUE(waits(*here_, "acme"));
  clock_.advance(bounds::service_slow_time - 1ns);
  EXPECT_TRUE(waits(*there_, "acme")) << "not slow yet";
  clock_.advance(1ns);
  EXPECT_FALSE(waits(*there_, "acme"));
  const LoopServices::Asked stale = ask(*here_, "other");
  EXPECT_FALSE(stale.waits);
  ASSERT_NE(stale.answer, nullptr);
  EXPECT_EQ(stale.answer->numbers->count(), 6);
  EXPECT_EQ(calls_.made, 4u) << "asked beside the request";
  EXPECT_TRUE(waits(*here_, "cold")) << "nothing is known";
  calls_.answer(reply_of(7, 10));
  run();
  EXPECT_EQ(here_->answered.at(3)->numbers->count(), 7);
  clock_.advance(61s);
  calls_.answer(reply_of(8, 10));
  EXPECT_EQ(ask(*here_, "other").answer->numbers->count(), 8);
  EXPECT_TRUE(waits(*here_, "acme")) << "a call has just succeeded";
  while (!calls_.open.empty()) calls_.fail();
  run();
  clock_.advance(bounds::service_slow_time);
  EXPECT_FALSE(waits(*here_, "acme")) << "no call is on its way, but the last one failed";
  calls_.answer(reply_of(9, 10));
  run();
  EXPECT_EQ(ask(*there_, "acme").answer->numbers->count(), 9);
  clock_.advance(1min);
  EXPECT_TRUE(waits(*here_, "acme")) << "the last call succeeded";
}

TEST_F(ServicesTest, WhileAServiceHangsOnlyTheFirstRequestsWaitForItNotSomeAfterEachTimeout) {
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(waits(*here_, "key" + std::to_string(i)));
  while (!calls_.open.empty()) calls_.answer(reply_of(5, 10));
  run();
  clock_.advance(61s);
  EXPECT_TRUE(waits(*here_, "key0"));
  clock_.advance(bounds::service_slow_time);
  for (int i = 1; i < 10; ++i) EXPECT_FALSE(waits(*here_, "key" + std::to_string(i)));
  while (!calls_.open.empty()) calls_.fail("timeout");
  run();
  EXPECT_EQ(services_->gauges().services.at(0).second, false) << "ten failures do not open the breaker";
  for (int i = 10; i < 40; ++i) EXPECT_FALSE(waits(*there_, "key" + std::to_string(i)));
}

TEST_F(ServicesTest, AnotherServersAnswerIsUsedWithoutACall) {
  const auto shared = std::make_shared<FakeShared>();
  use(shared);
  EXPECT_TRUE(waits(*here_, "acme"));
  run();
  EXPECT_EQ(calls_.made, 1u);
  calls_.answer(reply_of(5, 10));
  run();
  EXPECT_EQ(shared->kept.size(), 1u);
  use(shared);  // another server
  EXPECT_TRUE(waits(*there_, "acme"));
  run();
  EXPECT_EQ(calls_.made, 1u);
  EXPECT_EQ(there_->answered.at(wait_)->numbers->count(), 5);
  EXPECT_EQ(found(ServiceMetrics::Cache::shared), 1u);
}

TEST_F(ServicesTest, WhileTheServiceIsOpenSharedCopiesAreStillRead) {
  const auto shared = std::make_shared<FakeShared>();
  use(shared);
  KeptAnswer old;
  old.numbers = reply_of(3, 3).answer.numbers;
  old.service = "here";
  old.fresh_until = clock_.time() - 1s;
  old.stale_until = clock_.time() + 1min;
  shared->kept["tenant:known"] = old;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(waits(*here_, "key" + std::to_string(i)));
  run();
  while (!calls_.open.empty()) calls_.fail("timeout");
  run();
  (void)ask(*here_, "probe");
  EXPECT_TRUE(waits(*here_, "known"));
  run();
  EXPECT_EQ(here_->answered.at(wait_)->numbers->count(), 3);
  const int reads = shared->reads;
  EXPECT_TRUE(waits(*here_, "unknown"));
  run();
  EXPECT_EQ(here_->answered.at(wait_), nullptr);
  EXPECT_FALSE(waits(*here_, "unknown")) << "it was just looked for";
  EXPECT_EQ(shared->reads, reads + 1);
}

TEST_F(ServicesTest, WhatWasForgottenIsAskedAgainOnAllServers) {
  const auto shared = std::make_shared<FakeShared>();
  use(shared);
  EXPECT_TRUE(waits(*here_, "acme"));
  run();
  calls_.answer(reply_of(5, 10));
  run();
  Services other(clock_, HashKey{1, 2}, shared, log(), 1000);
  other.forget("tenant", "acme", [](bool) {});
  EXPECT_EQ(services_->find(limit_, "acme", clock_.time()).answer, nullptr);
  EXPECT_TRUE(waits(*here_, "acme"));
  run();
  ASSERT_EQ(calls_.open.size(), 1u);
  other.forget("tenant", "acme", [](bool) {});
  calls_.answer(reply_of(6, 10));
  run();
  EXPECT_EQ(here_->answered.at(wait_)->numbers->count(), 6);
  EXPECT_EQ(services_->find(limit_, "acme", clock_.time()).answer, nullptr)
      << "the call began before the purge: its answer may be the old one";
  EXPECT_TRUE(shared->kept.empty());
}

TEST_F(ServicesTest, AnAnswerOfAnotherServiceIsNotUsed) {
  EXPECT_TRUE(waits(*here_, "acme"));
  calls_.answer(reply_of(5, 10));
  run();
  LimitsService moved = *limit_.service;
  moved.digest = "elsewhere";
  limit_.service = std::make_shared<const LimitsService>(moved);
  EXPECT_TRUE(waits(*here_, "acme"));
  EXPECT_EQ(calls_.made, 2u);
}

TEST_F(ServicesTest, ATenantsNameFindsItsLastAnswer) {
  EXPECT_TRUE(waits(*here_, "user-1"));
  ServiceReply reply = reply_of(5, 10);
  reply.answer.tenant_key = "acme";
  calls_.answer(reply);
  run();
  EXPECT_EQ(services_->find(limit_, "t:acme", clock_.time()).answer->numbers->count(), 5);
  services_->forget("tenant", "user-1", [](bool) {});
  EXPECT_EQ(services_->find(limit_, "t:acme", clock_.time()).answer, nullptr);
}

TEST_F(ServicesTest, InvalidFieldsAreCountedAndLoggedOncePerMinute) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(waits(*here_, "key" + std::to_string(i)));
    ServiceReply reply = reply_of(5, 10);
    reply.ignored.push_back({"tenant_key", "\"a b\" must be …"});
    calls_.answer(reply);
  }
  EXPECT_EQ(here_->metrics.ignored[0].value(), 3u);
  EXPECT_EQ(std::count(log_.begin(), log_.end(), '\n'), 1);
}

TEST_F(ServicesTest, ALoopThatIsGoneIsNotCalled) {
  EXPECT_TRUE(waits(*here_, "acme"));
  EXPECT_TRUE(waits(*there_, "acme"));
  there_.reset();
  calls_.answer(reply_of(5, 10));
  here_->loop.run();
  EXPECT_EQ(here_->answered.size(), 1u);
}

}  // namespace
}  // namespace weir::external::services_test
