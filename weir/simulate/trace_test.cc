#include "weir/simulate/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/base/bounds.h"

namespace weir::simulate::trace_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::string refusal(std::string_view line) {
  TraceReader reader;
  TraceLine read;
  const auto result = reader.read(line, read);
  return result ? "accepted" : result.error().detail;
}

std::string with_time(const std::string& t) {
  return R"({"t":)" + t + R"(,"limit":"x","id":"y"})";
}

TEST(TraceReader, ReadsOneChargeWithItsDefaults) {
  TraceReader reader;
  TraceLine line;
  ASSERT_TRUE(reader.read(R"({"t": 0.005, "limit": "x", "id": "y"})", line));
  EXPECT_EQ(line.t, 5ms);
  ASSERT_EQ(line.charges.size(), 1u);
  EXPECT_EQ(line.charges[0].limit, "x");
  EXPECT_EQ(line.charges[0].id, "y");
  EXPECT_EQ(line.charges[0].cost, 1);
  EXPECT_EQ(line.mode, Mode::spend);
  EXPECT_EQ(line.order, Order::together);
  EXPECT_EQ(line.now().wall, Wall{5ms});
}

TEST(TraceReader, ReadsEveryOperation) {
  const auto mode = [](std::string_view op) {
    TraceReader reader;
    TraceLine line;
    EXPECT_TRUE(reader.read(R"({"t":0,"limit":"x","id":"y","op":")" + std::string(op) + "\"}", line));
    return line.mode;
  };
  EXPECT_EQ(mode("spend"), Mode::spend);
  EXPECT_EQ(mode("peek"), Mode::peek);
  EXPECT_EQ(mode("refund"), Mode::refund);
  EXPECT_EQ(mode("reset"), Mode::reset);
}

TEST(TraceReader, ReadsSeveralChargesInTheOrderWritten) {
  TraceReader reader;
  TraceLine line;
  ASSERT_TRUE(reader.read(
      R"({"charges":[{"limit":"a","id":"1","cost":0},{"id":"2","limit":"b"}],"charge":"in-order","t":1,"op":"peek"})",
      line));
  ASSERT_EQ(line.charges.size(), 2u);
  EXPECT_EQ(line.charges[0].limit, "a");
  EXPECT_EQ(line.charges[0].cost, 0);
  EXPECT_EQ(line.charges[1].id, "2");
  EXPECT_EQ(line.order, Order::in_order);
  EXPECT_EQ(line.mode, Mode::peek);
}

TEST(TraceReader, ForgetsTheLineBefore) {
  TraceReader reader;
  TraceLine line;
  ASSERT_TRUE(reader.read(R"({"t":1,"charges":[{"limit":"a","id":"1"}],"charge":"in-order","op":"reset"})", line));
  ASSERT_TRUE(reader.read(with_time("2"), line));
  EXPECT_EQ(line.charges.size(), 1u);
  EXPECT_EQ(line.mode, Mode::spend);
  EXPECT_EQ(line.order, Order::together);
  EXPECT_FALSE(reader.read("no", line));
  EXPECT_EQ(line.t, std::nullopt);
}

TEST(TraceReader, ReadsTimesToTheNanosecondAndNoFiner) {
  TraceReader reader;
  TraceLine line;
  ASSERT_TRUE(reader.read(with_time("1700000000.123456789"), line));
  EXPECT_EQ(line.t, Duration{1'700'000'000'123'456'789});
  EXPECT_THAT(refusal(with_time("0.0000000001")), HasSubstr("0.0000000001"));
  EXPECT_EQ(refusal(with_time("1.0000000001")), "t \"1.0000000001\" is finer than a nanosecond");
  EXPECT_EQ(refusal(with_time("-0.5")), "t \"-0.5\" must not be negative");
  EXPECT_EQ(refusal(with_time("\"1\"")), "t must be a number of seconds, not a string");
  EXPECT_EQ(refusal(R"({"limit":"x","id":"y"})"), "t is missing: the time of this line in seconds");
}

// As Python and JavaScript write small and large numbers.
TEST(TraceReader, ReadsTimesWithAnExponentExactly) {
  const auto read = [](const std::string& t) {
    TraceReader reader;
    TraceLine line;
    const auto done = reader.read(with_time(t), line);
    EXPECT_TRUE(done) << t << ": " << (done ? "" : done.error().detail);
    return line.t.value_or(Duration{-1});
  };
  EXPECT_EQ(read("5e-05"), 50us);
  EXPECT_EQ(read("1E-9"), 1ns);
  EXPECT_EQ(read("1.25e+1"), 12500ms);
  EXPECT_EQ(read("1.7e9"), 1'700'000'000s);
  EXPECT_EQ(read("0.000000000000000000001e12"), Duration{1});
  EXPECT_EQ(read("123456789.5e-3"), Duration{123'456'789'500'000});
  EXPECT_EQ(read("1000000000000000000000e-21"), 1s);
  EXPECT_EQ(read("0e999999999999999999999"), 0s);
  EXPECT_EQ(read("-0.0"), 0s);
  EXPECT_EQ(read("1.50000000000"), 1500ms);
  EXPECT_EQ(refusal(with_time("1e-10")), "t \"1e-10\" is finer than a nanosecond");
  EXPECT_EQ(refusal(with_time("1e-99999999999999999999")), "t \"1e-99999999999999999999\" is finer than a nanosecond");
  EXPECT_EQ(refusal(with_time("1e99999999999999999999")),
            "t \"1e99999999999999999999\" is more than 4000000000 seconds");
  EXPECT_EQ(refusal(with_time("4e9")), "accepted");
  EXPECT_EQ(refusal(with_time("4.000000001e9")), "t \"4.000000001e9\" is more than 4000000000 seconds");
  EXPECT_EQ(refusal(with_time("-1e-9")), "t \"-1e-9\" must not be negative");
}

TEST(TraceReader, StopsAtTheLatestTimeThatFits) {
  EXPECT_EQ(refusal(with_time("4000000000")), "accepted");
  EXPECT_EQ(refusal(with_time("4000000000.000000001")), "t \"4000000000.000000001\" is more than 4000000000 seconds");
  EXPECT_THAT(refusal(with_time("99999999999999999999999")), HasSubstr("99999999999999999999999"));
}

TEST(TraceReader, KeepsTheTimeOfALineItRefuses) {
  TraceReader reader;
  TraceLine line;
  EXPECT_FALSE(reader.read(R"({"limit":"x","cost":-1,"t":3.5})", line));
  EXPECT_EQ(line.t, 3500ms);
}

TEST(TraceReader, NamesTheFieldTheValueAndTheRule) {
  const auto line = [](const std::string& more) { return R"({"t":0,"limit":"x","id":"y",)" + more + "}"; };
  EXPECT_EQ(refusal(line(R"("cost":-1)")), "cost \"-1\" must be a whole number from 0 to 9223372036854775807");
  EXPECT_EQ(refusal(line(R"("cost":1.5)")), "cost \"1.5\" must be a whole number from 0 to 9223372036854775807");
  EXPECT_EQ(refusal(line(R"("cost":"1")")), "cost must be a whole number, not a string");
  EXPECT_EQ(refusal(line(R"("op":"take")")), "op \"take\" must be one of spend, peek, refund, reset");
  EXPECT_EQ(refusal(line(R"("op":1)")), "op must be a string, not a number");
  EXPECT_EQ(refusal(line(R"("who":1)")),
            "unknown key \"who\"; the keys are t, limit, id, cost, op, charges and charge");
  EXPECT_EQ(refusal(line(R"("charge":"together")")), "charge says how charges are taken, and there is no charges");
  EXPECT_EQ(refusal(line(R"("charges":[])")), "limit, id and cost stand inside charges when there is charges");
  EXPECT_EQ(refusal(line(R"("id":"z")")), "byte 29: the key \"id\" is written twice in one object");
  EXPECT_EQ(refusal(R"({"t":0,"limit":"x"})"), "id is missing: whose bucket of the limit to charge");
  EXPECT_EQ(refusal(R"({"t":0,"id":"x"})"), "limit is missing: the name of the limit to charge");
  EXPECT_EQ(refusal("[1]"), "a line must be an object, not an array");
}

TEST(TraceReader, SaysWhichOfSeveralChargesIsWrong) {
  const auto line = [](const std::string& charges) { return R"({"t":0,"charges":)" + charges + "}"; };
  EXPECT_EQ(refusal(line("{}")), "charges must be an array, not an object");
  EXPECT_EQ(refusal(line("[]")), "charges is empty: there is nothing to charge");
  EXPECT_EQ(refusal(line("[1]")), "charges[0] must be an object, not a number");
  EXPECT_EQ(refusal(line(R"([{"limit":"a","id":"b"},{"limit":"a"}])")),
            "charges[1]: id is missing: whose bucket of the limit to charge");
  EXPECT_EQ(refusal(line(R"([{"limit":"a","id":"b","op":"peek"}])")),
            "charges[0]: unknown key \"op\"; the keys are limit, id and cost");
}

TEST(TraceReader, StopsAtTheMostChargesOneRequestMayHave) {
  const auto line = [](std::size_t n) {
    std::string text = R"({"t":0,"charges":[)";
    for (std::size_t i = 0; i < n; ++i) text += R"({"limit":"a","id":"b"},)";
    text.back() = ']';
    return text + "}";
  };
  EXPECT_EQ(refusal(line(bounds::charges_max)), "accepted");
  EXPECT_EQ(refusal(line(bounds::charges_max + 1)), "charges has more than 16 entries");
}

TEST(WriteAnswer, PrintsExactSecondsInTheFixedOrder) {
  std::string out;
  write_answer(5ms, {"x", "y", {true, 20, 18, 0s, 95ms}, true}, out);
  EXPECT_EQ(out, R"({"t":0.005,"limit":"x","id":"y","allowed":true,"remaining":18,"retry_after":0,)"
                 R"("reset_after":0.095,"tat":0.1})"
                 "\n");
}

TEST(WriteAnswer, PrintsMinusOneForNeverAndForNoBound) {
  std::string never;
  write_answer(1s, {"x", "y", {false, 0, 0, kNever, kNever}, true}, never);
  EXPECT_THAT(never, HasSubstr(R"("allowed":false,"remaining":0,"retry_after":-1,"reset_after":-1,"tat":-1})"));
  std::string unbounded;
  write_answer(1s, {"x", "y", {}, false}, unbounded);
  EXPECT_THAT(unbounded, HasSubstr(R"("allowed":true,"remaining":-1,"retry_after":0,"reset_after":0,"tat":1})"));
}

TEST(WriteError, PrintsTheTimeWhereItIsKnown) {
  std::string out;
  write_error(1500ms, "a \"b\"", out);
  write_error(std::nullopt, "c", out);
  EXPECT_EQ(out, "{\"t\":1.5,\"error\":\"a \\\"b\\\"\"}\n{\"t\":null,\"error\":\"c\"}\n");
}

}  // namespace
}  // namespace weir::simulate::trace_test
