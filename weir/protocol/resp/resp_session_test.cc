#include "weir/protocol/resp/resp_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "weir/algorithm/gcra.h"
#include "weir/protocol/testing/session_conformance.h"

namespace weir::resp_session_test {
namespace {

using ::testing::StartsWith;

const RespOptions kOpen{};

Conversation resp_conversation() {
  Conversation c;
  c.name = "Resp";
  c.open = [](Output& output) { return std::make_unique<RespSession>(output, kOpen); };
  c.input =
      "*6\r\n$11\r\nCL.THROTTLE\r\n$4\r\nuser\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n$1\r\n3\r\n"
      "PING\r\n"
      "throttle user 15 30 60 \"7\"\r\n"
      "*4\r\n$10\r\nWEIR.CHECK\r\n$10\r\nper-tenant\r\n$4\r\nacme\r\n$1\r\n2\r\n"
      "*3\r\n$9\r\nWEIR.PEEK\r\n$10\r\nper-tenant\r\n$4\r\nacme\r\n"
      "\r\n"
      "*4\r\n$3\r\nDEL\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n"
      "*2\r\n$4\r\nECHO\r\n$4\r\na\r\nb\r\n"
      "MULTI\r\n"
      "*6\r\n$11\r\nCL.THROTTLE\r\n$4\r\nuser\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n$1\r\n3\r\n"
      "PING\r\n"
      "DEL \"a\" b\r\n"
      "EXEC\r\n"
      "WEIR.RESET per-tenant acme\n";
  c.output =
      "*5\r\n:0\r\n:100\r\n:97\r\n:-1\r\n:1\r\n"
      "+PONG\r\n"
      "*5\r\n:1\r\n:100\r\n:93\r\n:1\r\n:0\r\n"
      "*5\r\n:1\r\n:100\r\n:98\r\n:0\r\n:100\r\n"
      "*5\r\n:1\r\n:100\r\n:99\r\n:0\r\n:50\r\n"
      ":3\r\n"
      "$4\r\na\r\nb\r\n"
      "+OK\r\n"
      "+QUEUED\r\n"
      "+QUEUED\r\n"
      "+QUEUED\r\n"
      "*3\r\n"
      "*5\r\n:0\r\n:100\r\n:97\r\n:-1\r\n:1\r\n"
      "+PONG\r\n"
      ":2\r\n"
      ":1\r\n";
  c.drained_output = c.output;
  c.mistakes = {
      {"unknown command", "foo a 'b c'\r\n", "-ERR unknown command 'foo', with args beginning with: 'a' 'b c' \r\n"},
      {"wrong count", "CL.THROTTLE a 1\r\n", "-ERR wrong number of arguments for 'cl.throttle' command\r\n"},
      {"not an integer", "CL.THROTTLE a 1 x 60\r\n", "-ERR value is not an integer or out of range\r\n"},
      {"binary name", "*1\r\n$2\r\n\r\n\r\n", "-ERR unknown command '  ', with args beginning with: \r\n"},
  };
  const std::string longest(bounds::resp_argument_bytes_max + 2, 'x');
  c.breaks = {
      {"negative array", "*-1\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
      {"overflowing array", "*99999999999999999999\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
      {"too many arguments", "*33\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
      {"negative string", "*1\r\n$-5\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
      {"too long a string", "*1\r\n$65537\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
      {"no string", "*1\r\nPING\r\n", "-ERR Protocol error: expected '$', got 'P'\r\n"},
      {"no end", "*1\r\n$4\r\nPINGPONG", "-ERR Protocol error: expected CRLF after a bulk string\r\n"},
      {"quotes", "ECHO \"a\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"},
      {"endless line", longest, "-ERR Protocol error: too big inline request\r\n"},
      {"a form", "POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nDEL a b c\r\n",
       "-ERR Protocol error: this looks like HTTP, but this port speaks RESP\r\n"},
  };
  return c;
}

INSTANTIATE_TEST_SUITE_P(Resp, SessionConformance, ::testing::Values(resp_conversation()),
                         [](const auto& test) { return test.param.name; });

// A session on a store of buckets with the caller's own numbers.
class RespSessionTest : public ::testing::Test {
 protected:
  // Sends inline text or RESP; returns the session's output.
  std::string feed(std::string_view bytes) {
    pending_ += bytes;
    std::string& out = output_.bytes;
    out.clear();
    Queries queries;
    while (true) {
      queries.clear();
      const Result<std::size_t> taken = session_.receive(pending_, queries, Now{});
      for (const Asked& asked : queries.all()) session_.reply(asked.token, decide(asked.query));
      if (!taken) return out;
      pending_.erase(0, *taken);
      if (*taken == 0 || pending_.empty()) return out;
    }
  }

  Result<Answer> decide(const Query& query) {
    last_ = query;
    if (const auto* const named = std::get_if<NamedCharges>(&query.subject)) {
      limit_ = named->charges[0].limit;
      id_ = named->charges[0].id;
      cost_ = named->charges[0].cost;
      return canned_;
    }
    const auto& own = std::get<OwnBucket>(query.subject);
    Answer answer;
    if (query.mode == Mode::reset) {
      answer.verdict.forgotten = tats_.erase(std::string(own.key));
      return answer;
    }
    Time& tat = tats_[std::string(own.key)];
    const Step step = gcra::spend(*own.limit, tat, own.cost, now_);
    tat = step.tat;
    answer.verdict.all.push_back(step.decision);
    answer.verdict.allowed = step.decision.allowed;
    return answer;
  }

  void can(const Decision& decision, bool allowed) {
    Answer answer;
    answer.verdict.all.push_back(decision);
    answer.verdict.allowed = allowed;
    canned_ = answer;
  }

  KeptOutput output_;
  RespSession session_{output_, kOpen, 7};
  std::string pending_;
  Time now_{std::chrono::hours{1}};
  std::map<std::string, Time> tats_;
  Query last_;
  std::string limit_;
  std::string id_;
  Count cost_ = 0;
  Result<Answer> canned_{Answer{}};
};

TEST_F(RespSessionTest, AnswersClThrottleLikeRedisCell) {
  EXPECT_EQ(feed("CL.THROTTLE user123 15 30 60\r\n"), "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n");
  EXPECT_EQ(feed("cl.throttle user123 15 30 60 15\r\n"), "*5\r\n:0\r\n:16\r\n:0\r\n:-1\r\n:32\r\n");
  EXPECT_EQ(feed("CL.THROTTLE user123 15 30 60\r\n"), "*5\r\n:1\r\n:16\r\n:0\r\n:2\r\n:32\r\n");
  now_ += std::chrono::milliseconds{1};  // seconds are rounded up, so that no client returns too early
  EXPECT_EQ(feed("CL.THROTTLE user123 15 30 60\r\n"), "*5\r\n:1\r\n:16\r\n:0\r\n:2\r\n:32\r\n");
  now_ += std::chrono::milliseconds{1000};
  EXPECT_EQ(feed("CL.THROTTLE user123 15 30 60\r\n"), "*5\r\n:1\r\n:16\r\n:0\r\n:1\r\n:31\r\n");
}

TEST_F(RespSessionTest, ClThrottleOfMoreThanTheBurstCanNeverPass) {
  EXPECT_EQ(feed("CL.THROTTLE u 0 1 60 2\r\n"), "*5\r\n:1\r\n:1\r\n:1\r\n:-1\r\n:0\r\n");
}

TEST_F(RespSessionTest, AnswersThrottleInTheOrderOfThrottlecrab) {
  EXPECT_EQ(feed("THROTTLE u 2 1 60\r\n"), "*5\r\n:1\r\n:2\r\n:1\r\n:60\r\n:0\r\n");
  EXPECT_EQ(feed("THROTTLE u 2 1 60\r\n"), "*5\r\n:1\r\n:2\r\n:0\r\n:120\r\n:0\r\n");
  EXPECT_EQ(feed("THROTTLE u 2 1 60\r\n"), "*5\r\n:0\r\n:2\r\n:0\r\n:120\r\n:60\r\n");
  EXPECT_EQ(feed("THROTTLE u 2 1 60 3\r\n"), "*5\r\n:0\r\n:2\r\n:0\r\n:120\r\n:-1\r\n");
}

TEST_F(RespSessionTest, ACostOfZeroIsAPeek) {
  EXPECT_EQ(feed("CL.THROTTLE u 15 30 60 0\r\n"), "*5\r\n:0\r\n:16\r\n:16\r\n:-1\r\n:0\r\n");
  EXPECT_EQ(last_.mode, Mode::peek);
  feed("CL.THROTTLE u 15 30 60 1\r\n");
  EXPECT_EQ(last_.mode, Mode::spend);
  const Limit limit = *std::get<OwnBucket>(last_.subject).limit;
  EXPECT_EQ(limit.burst(), 16);
  EXPECT_EQ(limit.count(), 30);
  EXPECT_EQ(limit.period(), std::chrono::minutes{1});
}

TEST_F(RespSessionTest, RefusesNumbersThatAreNone) {
  for (const std::string_view word :
       {"x", "", "1.5", "+1", " 1", "1 ", "0x1", "-", "1-", "12345678901234567x", "9223372036854775808"}) {
    for (std::size_t i = 2; i < 6; ++i) {
      std::vector<std::string_view> words{"CL.THROTTLE", "u", "15", "30", "60", "1"};
      words[i] = word;
      std::string bytes;
      resp::write_command(words, bytes);
      EXPECT_EQ(feed(bytes), "-ERR value is not an integer or out of range\r\n") << word;
    }
  }
}

TEST_F(RespSessionTest, RefusesNumbersThatBreakARule) {
  EXPECT_EQ(feed("CL.THROTTLE u 15 0 60\r\n"), "-ERR rate must be positive\r\n");
  EXPECT_EQ(feed("CL.THROTTLE u 15 30 0\r\n"), "-ERR rate must be positive\r\n");
  EXPECT_EQ(feed("CL.THROTTLE u 15 -30 -60\r\n"), "-ERR rate must be positive\r\n");
  EXPECT_EQ(feed("CL.THROTTLE u -1 30 60\r\n"), "-ERR max_burst -1 must be at least 0\r\n");
  EXPECT_EQ(feed("THROTTLE u 0 30 60\r\n"), "-ERR max_burst 0 must be at least 1\r\n");
  EXPECT_EQ(feed("CL.THROTTLE u 15 30 60 -1\r\n"), "-ERR cost -1 must not be negative\r\n");
  EXPECT_EQ(feed("CL.THROTTLE \"\" 15 30 60\r\n"), "-ERR key must not be empty\r\n");
  EXPECT_EQ(feed("CL.THROTTLE u 15 30 9223372037\r\n"), "-ERR period 9223372037 is more than 9223372036 seconds\r\n");
  EXPECT_THAT(feed("CL.THROTTLE u 15 9223372036854775807 9223372036\r\n"),
              StartsWith("-ERR count 9223372036854775807 "));
  EXPECT_THAT(feed("CL.THROTTLE u 9223372036854775807 1 1\r\n"),
              StartsWith("-ERR burst 9223372036854775807 would take"));
  EXPECT_THAT(feed("THROTTLE u 9223372036854775807 1 1\r\n"), StartsWith("-ERR burst 9223372036854775807 would take"));
  EXPECT_TRUE(tats_.empty());
}

TEST_F(RespSessionTest, AsksConfiguredLimitsByName) {
  can({true, 20, 19, Duration::zero(), std::chrono::microseconds{49'001}}, true);
  EXPECT_EQ(feed("WEIR.CHECK per-tenant acme\r\n"), "*5\r\n:1\r\n:20\r\n:19\r\n:0\r\n:50\r\n");
  EXPECT_EQ(limit_, "per-tenant");
  EXPECT_EQ(id_, "acme");
  EXPECT_EQ(cost_, 1);
  EXPECT_EQ(last_.mode, Mode::spend);
  can({false, 20, 0, Duration{1}, std::chrono::seconds{1}}, false);
  EXPECT_EQ(feed("weir.check per-tenant acme 5\r\n"), "*5\r\n:0\r\n:20\r\n:0\r\n:1\r\n:1000\r\n");
  EXPECT_EQ(cost_, 5);
  can({false, 20, 20, kNever, Duration::zero()}, false);
  EXPECT_EQ(feed("WEIR.PEEK per-tenant acme 21\r\n"), "*5\r\n:0\r\n:20\r\n:20\r\n:-1\r\n:0\r\n");
  EXPECT_EQ(last_.mode, Mode::peek);
  feed("WEIR.CHECK per-tenant acme 0\r\n");
  EXPECT_EQ(last_.mode, Mode::peek);
  feed("WEIR.REFUND per-tenant acme 2\r\n");
  EXPECT_EQ(last_.mode, Mode::refund);
  EXPECT_EQ(feed("WEIR.CHECK per-tenant acme -1\r\n"), "-ERR cost -1 must not be negative\r\n");
  EXPECT_EQ(feed("WEIR.CHECK per-tenant acme 1x\r\n"), "-ERR value is not an integer or out of range\r\n");
}

TEST_F(RespSessionTest, OfALimitWithARateAndAQuotaTheStricterHalfIsTold) {
  using std::chrono::seconds;
  const Decision rate{true, 20, 19, Duration::zero(), seconds{1}};
  Answer answer;
  answer.verdict.all.push_back({rate, Decision{true, 5, 4, Duration::zero(), seconds{60}}});
  canned_ = answer;
  EXPECT_EQ(feed("WEIR.CHECK a b\r\n"), "*5\r\n:1\r\n:5\r\n:4\r\n:0\r\n:60000\r\n");
  answer.verdict.all[0] = {rate, Decision{false, 5, 0, seconds{60}, seconds{60}}};
  answer.verdict.allowed = false;
  canned_ = answer;
  EXPECT_EQ(feed("WEIR.CHECK a b\r\n"), "*5\r\n:0\r\n:5\r\n:0\r\n:60000\r\n:60000\r\n");
}

TEST_F(RespSessionTest, AShadowLimitsDenialDeniesNobody) {
  can({false, 20, 0, std::chrono::seconds{3}, std::chrono::seconds{4}}, true);
  EXPECT_EQ(feed("WEIR.CHECK a b\r\n"), "*5\r\n:1\r\n:20\r\n:0\r\n:0\r\n:4000\r\n");
}

TEST_F(RespSessionTest, AVerdictWithoutDecisionsSaysWhatItKnows) {
  // The id is unlimited, so the burst is -1, as on HTTP.
  EXPECT_EQ(feed("WEIR.CHECK a b\r\n"), "*5\r\n:1\r\n:-1\r\n:-1\r\n:0\r\n:0\r\n");
  canned_->verdict.allowed = false;
  EXPECT_EQ(feed("WEIR.CHECK a b\r\n"), "*5\r\n:0\r\n:0\r\n:0\r\n:-1\r\n:0\r\n");
}

TEST_F(RespSessionTest, ResetTellsWhetherThereWasABucket) {
  EXPECT_EQ(feed("WEIR.RESET a b\r\n"), ":0\r\n");
  canned_->verdict.forgotten = 2;  // a limit with numbers and a quota has two
  EXPECT_EQ(feed("WEIR.RESET a b\r\n"), ":1\r\n");
  EXPECT_EQ(last_.mode, Mode::reset);
  EXPECT_EQ(feed("WEIR.RESET a b 1\r\n"), "-ERR wrong number of arguments for 'weir.reset' command\r\n");
}

TEST_F(RespSessionTest, DelCountsTheBucketsItForgot) {
  feed("CL.THROTTLE a 15 30 60\r\nCL.THROTTLE b 15 30 60\r\n");
  EXPECT_EQ(feed("DEL a x b a\r\n"), ":2\r\n");
  EXPECT_EQ(feed("DEL a\r\n"), ":0\r\n");
  EXPECT_EQ(feed("DEL a \"\"\r\n"), "-ERR key must not be empty\r\n");
  EXPECT_EQ(feed("DEL\r\n"), "-ERR wrong number of arguments for 'del' command\r\n");
}

TEST_F(RespSessionTest, DelFailsWithItsFirstFailure) {
  for (const bool reversed : {false, true}) {
    KeptOutput output;
    RespSession session(output, kOpen);
    Queries queries;
    std::string& out = output.bytes;
    ASSERT_TRUE(session.receive("DEL a b c\r\nDEL d\r\n", queries, Now{}));
    ASSERT_EQ(queries.all().size(), 4u);
    const std::vector<Result<Answer>> answers{Answer{}, Error{Fault::unavailable, "the store is away"},
                                              Error{Fault::invalid, "no"}, Answer{}};
    for (std::uint64_t i = 0; i < 4; ++i) session.reply(reversed ? 3 - i : i, answers[reversed ? 3 - i : i]);
    EXPECT_EQ(out, "-UNAVAILABLE the store is away\r\n:0\r\n");
  }
}

TEST_F(RespSessionTest, KeepsQuotedKeysOfEarlierCommands) {
  Queries queries;
  std::string& out = output_.bytes;
  out.clear();
  const std::string bytes = "CL.THROTTLE \"a b\" 1 1 1\r\nWEIR.CHECK 'l m' \"c\\x20d\"\r\nDEL \"e f\"\r\n";
  ASSERT_TRUE(session_.receive(bytes, queries, Now{}));
  ASSERT_EQ(queries.all().size(), 3u);
  EXPECT_EQ(std::get<OwnBucket>(queries.all()[0].query.subject).key, "a b");
  EXPECT_EQ(std::get<NamedCharges>(queries.all()[1].query.subject).charges[0].limit, "l m");
  EXPECT_EQ(std::get<NamedCharges>(queries.all()[1].query.subject).charges[0].id, "c d");
  EXPECT_EQ(std::get<OwnBucket>(queries.all()[2].query.subject).key, "e f");
}

TEST_F(RespSessionTest, StopsBeforeADelThatDoesNotFitTheTurn) {
  std::string bytes;
  for (std::size_t i = 0; i + 2 < bounds::queries_per_turn_max; ++i) bytes += "DEL a\n";
  Queries queries;
  std::string& out = output_.bytes;
  out.clear();
  const Result<std::size_t> taken = session_.receive(bytes + "DEL a b c\n", queries, Now{});
  EXPECT_EQ(*taken, bytes.size());
  EXPECT_EQ(queries.all().size(), bounds::queries_per_turn_max - 2);
  queries.clear();
  EXPECT_EQ(*session_.receive("DEL a b c\n", queries, Now{}), 10u);
  EXPECT_EQ(queries.all().size(), 3u);
}

TEST_F(RespSessionTest, BoundsWhatOneTurnSays) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += "COMMAND\n";
  Queries queries;
  std::string& out = output_.bytes;
  out.clear();
  const Result<std::size_t> taken = session_.receive(bytes, queries, Now{});
  EXPECT_GT(*taken, 0u);
  EXPECT_LT(*taken, bytes.size());
  EXPECT_GE(out.size(), bounds::session_held_bytes_max);
  EXPECT_LT(out.size(), bounds::session_held_bytes_max + 8192);
}

TEST_F(RespSessionTest, BoundsWhatWaitsBehindAnOwedAnswer) {
  std::string bytes = "DEL a\n";
  const std::size_t pings = bounds::session_held_bytes_max / 7 + 1;  // "+PONG\r\n"
  for (std::size_t i = 0; i < pings + 1; ++i) bytes += "PING\n";
  Queries queries;
  std::string& out = output_.bytes;
  out.clear();
  EXPECT_EQ(*session_.receive(bytes, queries, Now{}), bytes.size() - 5);
  EXPECT_EQ(*session_.receive("PING\n", queries, Now{}), 0u);
  EXPECT_EQ(out, "");
  session_.reply(0, Answer{});
  EXPECT_EQ(out.size(), 4 + 7 * pings);
  out.clear();
  EXPECT_EQ(*session_.receive("PING\n", queries, Now{}), 5u);
  EXPECT_EQ(out, "+PONG\r\n");
}

TEST_F(RespSessionTest, TellsEachFaultByItsCode) {
  const std::vector<std::pair<Fault, std::string>> codes{{Fault::invalid, "-ERR why\r\n"},
                                                         {Fault::too_large, "-ERR why\r\n"},
                                                         {Fault::unknown, "-ERR why\r\n"},
                                                         {Fault::timeout, "-TIMEOUT why\r\n"},
                                                         {Fault::unavailable, "-UNAVAILABLE why\r\n"},
                                                         {Fault::overloaded, "-ERR overloaded\r\n"},
                                                         {Fault::internal, "-ERR internal error\r\n"}};
  for (const auto& [fault, text] : codes) {
    canned_ = Error{fault, "why"};
    EXPECT_EQ(feed("WEIR.CHECK a b\r\n"), text);
  }
}

TEST_F(RespSessionTest, CutsWhatItQuotes) {
  const std::string longest(1000, 'x');
  EXPECT_EQ(feed(longest + " " + longest + " y\r\n"), "-ERR unknown command '" + longest.substr(0, 128) +
                                                          "', with args beginning with: '" + longest.substr(0, 128) +
                                                          "' \r\n");
}

TEST_F(RespSessionTest, SaysGoodbye) {
  EXPECT_EQ(feed("PING\r\nQUIT\r\nPING\r\n"), "+PONG\r\n+OK\r\n");
  EXPECT_TRUE(session_.finished());
}

TEST_F(RespSessionTest, SaysGoodbyeAfterWhatIsOwed) {
  Queries queries;
  std::string& out = output_.bytes;
  out.clear();
  ASSERT_TRUE(session_.receive("DEL a\r\nQUIT\r\n", queries, Now{}));
  EXPECT_EQ(out, "");
  EXPECT_FALSE(session_.finished());
  session_.reply(0, Answer{});
  EXPECT_EQ(out, ":0\r\n+OK\r\n");
  EXPECT_TRUE(session_.finished());
}

TEST_F(RespSessionTest, SpeaksVersionThreeWhenAsked) {
  EXPECT_EQ(feed("CLIENT GETNAME\r\n"), "$-1\r\n");
  EXPECT_EQ(
      feed("HELLO 3\r\n"),
      "%7\r\n$6\r\nserver\r\n$4\r\nweir\r\n$7\r\nversion\r\n$5\r\n0.1.0\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:7\r\n"
      "$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n");
  EXPECT_EQ(feed("CLIENT GETNAME\r\n"), "_\r\n");
  EXPECT_EQ(feed("CL.THROTTLE user123 15 30 60\r\n"), "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n");
  EXPECT_THAT(feed("HELLO 2\r\n"), StartsWith("*14\r\n"));
  EXPECT_EQ(feed("CLIENT GETNAME\r\n"), "$-1\r\n");
}

}  // namespace
}  // namespace weir::resp_session_test
