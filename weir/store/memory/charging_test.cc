// What only the memory store promises; the rest is in the conformance kit (store/testing).
#include "weir/store/memory/charging.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "weir/store/memory/memory_store.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Limit kTwo = Limit::per_hour(2);
constexpr Limit kFive = Limit::per_hour(5);

Charge of(std::string_view key, const Limit& limit, Count cost = 1) {
  Charge charge;
  charge.key = {key};
  charge.limit_name = key;
  charge.limit = limit;
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
  // A thread whose reading is ten seconds old is denied, and must not bring the TAT down by ten seconds.
  const std::array<Charge, 1> charges = {of("a", kFive)};
  EXPECT_FALSE(charge(*table_, charges, Mode::spend, Order::together, {fresh.time - 10s, fresh.wall}, clock_).allowed);
  EXPECT_EQ(ask({of("a", kFive)}, Order::together, Mode::peek).all[0].reset_after, 1h);
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
}  // namespace weir
