// The same history on memory and on Redis gives the same answers, bit for bit, when memory's clock is read in whole
// microseconds as Redis's is.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "weir/store/memory/memory_store.h"
#include "weir/store/redis/redis_subject_test.h"

namespace weir::redis {
namespace {

using namespace std::chrono_literals;

constexpr int kOperations = 100'000;
constexpr int kBatch = 200;

// Keys change their numbers now and then, as a reload would.
constexpr std::array kLimits = {
    Limit::per_second(10),
    Limit::per_second(300'000).with_burst(1'000),
    Limit::per_minute(7).with_burst(3),
    Limit::per_day(1000),
    Limit::per(3, 104 * 24h).with_burst(3),
    Limit::per(1, 1us).with_burst(1),
    Limit::per(999'999'937, 1s).with_burst(5),
};

struct Operation {
  Wall at;
  Mode mode;
  Order order;
  std::vector<Charge> charges;
};

class History {
 public:
  std::vector<Operation> next(int count) {
    std::vector<Operation> operations;
    for (int i = 0; i < count; ++i) operations.push_back(one());
    return operations;
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }

  Operation one() {
    constexpr std::array<Duration, 8> kSteps = {0us, 0us, 1us, 37us, 4ms, 170ms, 20s, 40min};
    wall_ += kSteps[below(kSteps.size())] * static_cast<std::int64_t>(below(3));
    constexpr std::array kModes = {Mode::spend, Mode::spend, Mode::spend,  Mode::spend,
                                   Mode::spend, Mode::peek,  Mode::refund, Mode::reset};
    Operation operation{wall_, kModes[below(kModes.size())], below(2) == 0 ? Order::together : Order::in_order, {}};
    const std::uint64_t charges = 1 + below(3);
    for (std::uint64_t i = 0; i < charges; ++i) operation.charges.push_back(charge());
    return operation;
  }

  Charge charge() {
    static constexpr std::array<std::string_view, 6> kKeys = {"a:1", "a:2", "b:1", "c:1", "d:1", "*:own"};
    Charge charge;
    const std::string_view key = kKeys[below(kKeys.size())];
    charge.limit_name = key;
    const Limit& limit = kLimits[below(20) == 0 ? below(kLimits.size()) : key.size() + key[0] % 2];
    charge.rate = RateCharge{key, limit};
    charge.shadow = below(6) == 0;
    charge.cost = below(5) == 0 ? static_cast<Count>(below(static_cast<std::uint64_t>(limit.burst()) + 2)) : 1;
    const std::uint64_t halves = key[0] == '*' ? 0 : below(6);
    if (halves == 1 || halves == 2) {
      const Wall start = std::chrono::floor<std::chrono::hours>(wall_);
      charge.quota = QuotaCharge{key, {static_cast<Count>(20 + below(2)), {start, start + 1h}, start + 2h}};
    }
    if (halves == 2) charge.rate.reset();
    return charge;
  }

  std::mt19937_64 random_{20'240'611};
  Wall wall_{std::chrono::seconds{600'000'000}};
};

std::string print(const Result<Verdict>& answer) {
  if (!answer) return answer.error().detail;
  std::string out = std::to_string(answer->allowed) + " strictest " + std::to_string(answer->strictest) +
                    " forgotten " + std::to_string(answer->forgotten);
  for (const LimitDecision& limit : answer->all) {
    out += " | ";
    for (const Kind kind : {Kind::bucket, Kind::quota}) {
      if (limit.half(kind) == nullptr) continue;
      const Decision& d = *limit.half(kind);
      out += std::string(kind == Kind::bucket ? " rate " : " quota ") + std::to_string(d.allowed) + " " +
             std::to_string(d.burst) + " " + std::to_string(d.remaining) + " " + std::to_string(d.retry_after.count()) +
             " " + std::to_string(d.reset_after.count());
    }
  }
  return out;
}

struct Printed final : Answers {
  std::vector<std::string> lines;
  void answer(Ticket, const Result<Verdict>& verdict) override { lines.push_back(print(verdict)); }
};

TEST(Differential, MemoryAndRedisAnswerTheSameHistoryBitForBit) {
  RedisServer server;
  RedisSubject redis(server);
  const auto table = std::move(*Table::create({.buckets_max = 1000, .huge_pages = false}, HashKey{3, 4}));
  ManualClock clock;
  MemoryStore memory(*table, clock);
  History history;
  int denied = 0;
  for (int done = 0; done < kOperations; done += kBatch) {
    const std::vector<Operation> operations = history.next(kBatch);
    Printed expected;
    std::vector<Question> batch;
    std::deque<Wall> times;
    for (const Operation& operation : operations) {
      clock.set(Time{operation.at.time_since_epoch()}, operation.at);
      const Question question{0, operation.charges, operation.mode, operation.order};
      memory.charge(std::span(&question, 1), clock.now(), expected);
      batch.push_back(question);
      times.push_back(operation.at);
    }
    redis.schedule(times);
    const auto answers = redis.ask(batch);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      ASSERT_EQ(print(answers[i]), expected.lines[i]) << "operation " << done + static_cast<int>(i);
      denied += answers[i]->allowed ? 0 : 1;
    }
  }
  EXPECT_GT(denied, kOperations / 10);
  EXPECT_LT(denied, kOperations * 9 / 10);
}

}  // namespace
}  // namespace weir::redis
