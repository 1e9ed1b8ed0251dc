#include "weir/http/exchange.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/exchange_table.h"
#include "weir/http/handler.h"
#include "weir/http/http_shared.h"
#include "weir/http/testing/fake_exchange.h"
#include "weir/http/whole.h"

namespace weir::http::exchange_test {
namespace {

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

struct Notes {
  std::uint64_t seen;
};

// Writes down what happens to it, and does what a test says.
class Scribe : public Handler {
 public:
  void begin(Exchange& exchange, const RequestHead&, BodyPart) override {
    log += "begin ";
    if (on_begin) on_begin(exchange);
  }
  void body(Exchange&, BodyPart part) override { log.append("body ").append(part.bytes).append(" "); }
  void answered(Exchange&, std::uint32_t question, const Result<Answer>&) override {
    log += "answer " + std::to_string(question) + " ";
  }
  void can_ask(Exchange& exchange) override {
    log += "can_ask ";
    if (on_can_ask) on_can_ask(exchange);
  }
  void expired(Exchange&) override { log += "expired "; }
  void ended(Exchange&, Ending) override { log += "ended "; }

  std::string log;
  std::function<void(Exchange&)> on_begin;
  std::function<void(Exchange&)> on_can_ask;
};

class Attached final : public Receiver {
 public:
  explicit Attached(std::string& log, std::string name) : log_(log), name_(std::move(name)) {}
  ~Attached() override { log_ += "~" + name_ + " "; }
  void body(Exchange& exchange, BodyPart) override {
    exchange.attach(std::make_unique<Attached>(log_, name_ + "'"));
    exchange.attach(std::make_unique<Attached>(log_, name_ + "''"));
    log_ += name_ + " ";  // still alive
  }
  void ended(Exchange&, Ending ending) override {
    log_ += name_ + (ending == Ending::complete ? " complete " : " lost ");
  }

 private:
  std::string& log_;
  std::string name_;
};

TEST(Exchange, AsksWithTokensThatNameTheQuestion) {
  Scribe handler;
  handler.on_begin = [](Exchange& exchange) {
    ASSERT_NE(exchange.ask(), nullptr);
    ASSERT_NE(exchange.ask(), nullptr);
    exchange.notes<Notes>().seen = 7;
  };
  FakeExchange exchange(handler, std::string(kGet));
  exchange.begin();
  ASSERT_EQ(exchange.asked().size(), 2u);
  EXPECT_EQ(ExchangeToken::question(exchange.asked()[0].token), 0u);
  EXPECT_EQ(ExchangeToken::question(exchange.asked()[1].token), 1u);
  EXPECT_EQ(exchange.find(exchange.asked()[1].token), &*exchange);
  EXPECT_EQ(exchange->notes<Notes>().seen, 7u);
}

TEST(Exchange, IsToldWhenThereIsRoomToAsk) {
  Scribe handler;
  handler.on_begin = handler.on_can_ask = [](Exchange& exchange) { (void)exchange.ask(); };
  FakeExchange exchange(handler, std::string(kGet));
  exchange.leave_no_room();
  exchange.begin();
  EXPECT_TRUE(exchange.waits_to_ask());
  exchange.leave_no_room();
  exchange.let_ask();
  EXPECT_EQ(handler.log, "begin ");
  exchange.let_ask();
  EXPECT_EQ(handler.log, "begin can_ask ");
  EXPECT_FALSE(exchange.waits_to_ask());
  EXPECT_EQ(exchange.asked().size(), 1u);
}

TEST(Exchange, KeepsAReplacedReceiverUntilItsCallbackReturns) {
  Scribe handler;
  std::string log;
  handler.on_begin = [&](Exchange& exchange) { exchange.attach(std::make_unique<Attached>(log, "a")); };
  {
    FakeExchange exchange(handler, std::string(kGet));
    exchange.begin({}, false);
    exchange.body("x");
    EXPECT_EQ(log, "~a' a ~a ");
    exchange.end(Ending::complete);
  }
  EXPECT_EQ(log, "~a' a ~a a'' complete ~a'' ");
  EXPECT_EQ(handler.log, "begin ");
}

TEST(Exchange, TellsAHandlerOnlyOfEndingsThatAreNotComplete) {
  Scribe handler;
  FakeExchange complete(handler, std::string(kGet));
  complete.begin();
  complete.end(Ending::complete);
  EXPECT_EQ(handler.log, "begin ");
  FakeExchange lost(handler, std::string(kGet));
  lost.begin();
  lost.end(Ending::lost);
  EXPECT_EQ(handler.log, "begin begin ended ");
}

TEST(Exchange, ExpiresOnceAtTheGivenTime) {
  Scribe handler;
  handler.on_begin = [](Exchange& exchange) { exchange.expire_at(Time{} + std::chrono::seconds{5}); };
  FakeExchange exchange(handler, std::string(kGet));
  exchange.begin();
  exchange.expire(Time{} + std::chrono::seconds{4});
  EXPECT_EQ(handler.log, "begin ");
  exchange.expire(Time{} + std::chrono::seconds{5});
  exchange.expire(Time{} + std::chrono::seconds{6});
  EXPECT_EQ(handler.log, "begin expired ");
}

TEST(ExchangeRef, RunsLaterAndOnlyWhileTheExchangeIsOpen) {
  Scribe handler;
  ExchangeRef ref;
  handler.on_begin = [&](Exchange& exchange) { ref = exchange.ref(); };
  FakeExchange exchange(handler, std::string(kGet));
  exchange.begin();
  int runs = 0;
  ref.run([&](Exchange& same) {
    EXPECT_EQ(&same, &*exchange);
    ++runs;
  });
  EXPECT_EQ(runs, 0);
  exchange.run_posted();
  EXPECT_EQ(runs, 1);
  ref.run([&](Exchange&) { ++runs; });
  exchange.end(Ending::canceled);
  exchange.run_posted();
  ExchangeRef().run([&](Exchange&) { ++runs; });
  EXPECT_EQ(runs, 1);
}

TEST(ExchangeRef, OutlivesItsLoop) {
  Scribe handler;
  ExchangeRef ref;
  handler.on_begin = [&](Exchange& exchange) { ref = exchange.ref(); };
  {
    FakeExchange exchange(handler, std::string(kGet));
    exchange.begin();
  }
  ref.run([](Exchange&) { FAIL() << "the exchange has ended"; });
}

class TableTest : public testing::Test {
 protected:
  using Fake = FakeExchange::Record;
  Scribe handler_;
  FakeOutput output_;
  HttpShared shared_;
  ExchangeHost host_{shared_, handler_, output_, "192.0.2.1", false};
};

TEST_F(TableTest, ReusesTheLastReleasedExchangeWithANewGeneration) {
  ExchangeTable table({});
  Fake* const first = table.take<Fake>(host_);
  Fake* const second = table.take<Fake>(host_);
  first->notes<Notes>().seen = 1;
  Queries queries;
  {
    const ExchangeHost::Asking asking(host_, queries, {});
    (void)first->ask();
  }
  const std::uint64_t token = queries.all()[0].token;
  EXPECT_EQ(table.find(token, host_), first);
  table.release(*second);
  table.release(*first);
  EXPECT_EQ(table.find(token, host_), nullptr);
  EXPECT_EQ(table.take<Fake>(host_), first);
  EXPECT_EQ(first->notes<Notes>().seen, 0u);
  EXPECT_EQ(table.find(token, host_), nullptr) << "the generation is another";
  EXPECT_EQ(table.open_count(), 1u);
  table.release(*first);
}

TEST_F(TableTest, HasABoundAndKeepsABoundedNumberForReuse) {
  const std::size_t most = bounds::http_spare_exchanges_max + 2;
  ExchangeTable table({}, most);
  std::vector<Fake*> open;
  for (std::size_t i = 0; i < most; ++i) open.push_back(table.take<Fake>(host_));
  ASSERT_NE(open.back(), nullptr);
  EXPECT_EQ(table.take<Fake>(host_), nullptr);
  for (Fake* exchange : open) table.release(*exchange);
  EXPECT_EQ(table.open_count(), 0u);
  for (std::size_t i = 0; i < most; ++i) ASSERT_NE(table.take<Fake>(host_), nullptr);
  EXPECT_EQ(table.take<Fake>(host_), nullptr);
}

TEST_F(TableTest, KeepsABoundedNumberOfSlotsForRefusals) {
  ExchangeTable table({}, 1);
  ASSERT_NE(table.take<Fake>(host_), nullptr);
  for (std::size_t i = 0; i < bounds::http_refusals_max; ++i) {
    ASSERT_NE(table.take<Fake>(host_, ExchangeTable::Use::refusal), nullptr);
  }
  EXPECT_EQ(table.take<Fake>(host_, ExchangeTable::Use::refusal), nullptr);
  EXPECT_EQ(table.take<Fake>(host_), nullptr);
}

TEST_F(TableTest, FindsNothingForTokensItNeverGave) {
  ExchangeTable table({});
  EXPECT_EQ(table.find(0, host_), nullptr);
  EXPECT_EQ(table.find(~std::uint64_t{0}, host_), nullptr);
}

TEST_F(TableTest, DatesResponsesOnceAClockIsSet) {
  EXPECT_EQ(shared_.date(Wall{}), "");
  EXPECT_EQ(shared_.date(Wall{std::chrono::seconds{784111777}}), "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
}

}  // namespace
}  // namespace weir::http::exchange_test
