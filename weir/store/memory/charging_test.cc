// Guarantees of the memory store alone. Those of all stores are in the conformance kit (store/testing).
#include "weir/store/memory/charging.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "weir/store/memory/memory_store.h"

namespace weir::charging_test {
namespace {

using namespace std::chrono_literals;

constexpr Limit kTwo = Limit::per_hour(2);
constexpr Limit kFive = Limit::per_hour(5);

Charge of(std::string_view key, const Limit& limit, Count cost = 1) {
  Charge charge;
  charge.limit_name = key;
  charge.rate = RateCharge{key, limit};
  charge.cost = cost;
  return charge;
}

class Charging : public testing::Test {
 protected:
  Verdict ask(std::vector<Charge> charges, Order order = Order::together, Mode mode = Mode::spend) {
    return charge(*table_, charges, mode, order, clock_.now(), clock_);
  }

  std::unique_ptr<Table> table_ = std::move(*Table::create({.buckets_max = 1000, .huge_pages = false}, HashKey{3, 4}));
  ManualClock clock_{Time{10s}};
};

TEST_F(Charging, AnOldReadingIsNotTakenForAShrunkLimit) {
  clock_.advance(10s);
  const Now fresh = clock_.now();
  ask({of("a", kFive, 5)});
  // A thread whose reading is ten seconds old is denied, and must not lower the TAT by ten seconds.
  const std::array<Charge, 1> charges = {of("a", kFive)};
  EXPECT_FALSE(charge(*table_, charges, Mode::spend, Order::together, {fresh.time - 10s, fresh.wall}, clock_).allowed);
  EXPECT_EQ(ask({of("a", kFive)}, Order::together, Mode::peek).all[0].strictest().reset_after, 1h);
}

// The bucket counts as empty when its limit changed, not when it was next used.
TEST_F(Charging, TimePassesSinceTheNumbersChanged) {
  const auto since = [](Charge charge, Time at) {
    charge.rate->since = at;
    return charge;
  };
  constexpr Limit kFast = Limit::per_second(5);
  for (const std::string_view key : {"a", "b", "c", "d"}) ask({of(key, kFive, 5)});
  clock_.advance(10s);
  const Time changed = clock_.now().time - 200ms;
  EXPECT_EQ(ask({since(of("a", kFast), changed)}).all[0], (Decision{true, 5, 0, 0ns, 1s}));
  EXPECT_EQ(ask({since(of("b", kFast), changed)}, Order::together, Mode::peek).all[0],
            (Decision{true, 5, 1, 0ns, 800ms}));
  EXPECT_EQ(ask({since(of("b", kFast), Time{})}, Order::together, Mode::peek).all[0].strictest().remaining, 1)
      << "it was settled";
  EXPECT_EQ(ask({since(of("c", kFast, 2), changed)}, Order::together, Mode::refund).all[0].strictest().remaining, 3);
  EXPECT_EQ(ask({since(of("d", kFast), changed)}, Order::together, Mode::look).all[0].strictest().remaining, 1);
  EXPECT_EQ(ask({of("d", kFive)}, Order::together, Mode::look).all[0].strictest().reset_after, 1h - 10s)
      << "a look writes nothing";
  EXPECT_EQ(ask({since(of("d", kFast), Time{5s}), of("e", kTwo)}).all[0], (Decision{true, 5, 4, 0ns, 200ms}))
      << "more than a window ago: full";
}

TEST_F(Charging, AnOldReadingIsNotTakenForAChangeLongAgo) {
  clock_.advance(10s);
  const Now fresh = clock_.now();
  Charge five = of("a", kFive, 5);
  five.rate->since = Time{};
  EXPECT_TRUE(ask({five}).allowed);
  const std::array<Charge, 1> charges = {five};
  for (const Mode mode : {Mode::spend, Mode::peek, Mode::look, Mode::refund}) {
    const Decision decision =
        charge(*table_, charges, mode, Order::together, {fresh.time - 1us, fresh.wall}, clock_).all[0].strictest();
    EXPECT_EQ(decision.remaining, mode == Mode::refund ? 4 : 0) << "by that reading a microsecond less than five";
  }
}

TEST_F(Charging, TakesAsManyChargesAsItsBound) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < bounds::charges_max; ++i) keys.push_back("k" + std::to_string(i));
  std::vector<Charge> charges;
  for (const std::string& key : keys) charges.push_back(of(key, kTwo));
  EXPECT_EQ(ask(charges).all.size(), bounds::charges_max);
  charges.push_back(of("one past", kTwo));
  EXPECT_DEATH(ask(charges), "charges_max");
}

TEST_F(Charging, TheStoreAnswersEveryTicketBeforeItReturns) {
  struct Collect : Answers {
    std::vector<std::pair<Ticket, bool>> seen;
    void answer(Ticket ticket, const Result<Verdict>& verdict) override { seen.emplace_back(ticket, verdict->allowed); }
  } answers;
  const std::array<Charge, 1> charges = {of("a", kTwo)};
  const std::array<Question, 3> batch = {Question{7, charges}, Question{8, charges}, Question{9, charges}};
  MemoryStore(*table_, clock_).charge(batch, clock_.now(), answers);
  EXPECT_EQ(answers.seen, (std::vector<std::pair<Ticket, bool>>{{7, true}, {8, true}, {9, false}}));
}

}  // namespace
}  // namespace weir::charging_test
