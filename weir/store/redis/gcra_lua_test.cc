// Checks gcra.lua, run by a real Redis, against gcra_vectors.txt, in every form that a question may have.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "weir/algorithm/gcra.h"
#include "weir/base/text.h"
#include "weir/store/redis/timed_script_test.h"
#include "weir/store/testing/redis_server.h"

namespace weir::redis::gcra_lua_test {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
// Answers depend only on differences of instants. Redis's clock has whole microseconds, but the vectors do not, so both
// instants are shifted back together, on top of a base that keeps them positive.
constexpr std::int64_t kBase = 1'000'000'000 * kSecond;

struct Vector {
  std::string text;
  std::string op;
  std::int64_t count = 0, period = 0, burst = 0, tat = 0, now = 0, cost = 0, since = 0;
  std::vector<std::string> out;  // allowed remaining retry reset tat'
};

std::vector<Vector> read_vectors() {
  std::ifstream file(WEIR_SOURCE_DIR "/weir/algorithm/gcra_vectors.txt");
  std::vector<Vector> vectors;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    Vector vector;
    vector.text = line;
    std::string since, arrow;
    words >> vector.op >> vector.count >> vector.period >> vector.burst >> vector.tat >> vector.now >> vector.cost >>
        since >> arrow;
    vector.since = since == "-" ? vector.now : *parse_integer(since);
    for (std::string word; words >> word;) vector.out.push_back(word);
    EXPECT_EQ(vector.out.size(), 5u) << line;
    vectors.push_back(vector);
  }
  return vectors;
}

std::string seconds(std::int64_t instant) {
  return std::to_string(instant / kSecond);
}
std::string microseconds(std::int64_t instant) {
  return std::to_string(instant % kSecond / 1000);
}
std::string state_text(std::int64_t instant) {
  std::string rest = std::to_string(instant % kSecond);
  return seconds(instant) + std::string(9 - rest.size(), '0') + rest;
}

class GcraLua : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = new RedisServer;
    sha_ = new std::string(server_->ask({"SCRIPT", "LOAD", timed_script()}));
  }
  static void TearDownTestSuite() {
    delete server_;
    delete sha_;
  }

  std::string run(const std::vector<std::string>& keys, std::vector<std::string> arguments, std::int64_t now) {
    std::vector<std::string> command = {"EVALSHA", *sha_, std::to_string(keys.size())};
    command.insert(command.end(), keys.begin(), keys.end());
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.push_back(seconds(now));
    command.push_back(microseconds(now));
    return connection_.ask(command);
  }

  // Returns false if the script's clock cannot represent the vector.
  bool hold(const Vector& vector);

  static RedisServer* server_;
  static std::string* sha_;
  RedisConnection connection_{server_->port()};
};

RedisServer* GcraLua::server_;
std::string* GcraLua::sha_;

bool GcraLua::hold(const Vector& vector) {
  const auto limit = Limit::make(vector.count, Duration{vector.period}, vector.burst);
  if (!limit || limit->window() > bounds::redis_window_max) return false;
  // The script has no other instant at which the numbers may have changed.
  if (vector.op != "undo" && vector.since != vector.now) return false;
  // Shift everything back by the part of `now` below a microsecond.
  const std::int64_t shift = kBase - vector.now % 1000;
  const std::int64_t now = vector.now + shift;
  const bool undo = vector.op == "undo";
  // The age is in nanoseconds, but the script's clock is not. Both of its readings are shifted.
  const std::int64_t spent_at = vector.since + shift;
  if (undo && spent_at % 1000 != 0) return false;
  const bool never = vector.cost > vector.burst && (vector.op == "spend" || vector.op == "peek");
  const Duration price =
      vector.op == "refund" ? std::min(limit->worth(vector.cost), bounds::redis_window_max) : limit->price(vector.cost);
  const std::vector<std::string> numbers = {never ? "-1" : std::to_string(price.count()),
                                            std::to_string(limit->window().count())};
  const std::int64_t reset = *parse_integer(vector.out[3] == "-" ? "0" : vector.out[3]);
  const std::string answer = std::to_string(vector.out[0] == "1" ? reset : -1 - reset);
  const std::string head = "[" + seconds(now) + ", " + microseconds(now) + ", 0, ";

  const auto hold_form = [&](const std::vector<std::string>& keys, const std::vector<std::string>& arguments,
                             const std::string& reply) {
    connection_.ask({"DEL", "k", "l"});
    if (vector.tat != 0) connection_.ask({"SET", "k", state_text(vector.tat + shift)});
    const std::string replied = run(keys, arguments, now);
    if (!undo) {
      EXPECT_EQ(replied, reply) << vector.text;
    }
    const std::int64_t tat = *parse_integer(vector.out[4]);
    const std::string kept = connection_.ask({"GET", "k"});
    if (tat > vector.now) {
      EXPECT_EQ(kept, state_text(tat + shift)) << vector.text;
    } else {
      EXPECT_TRUE(kept == "(nil)" || kept == state_text(vector.tat + shift)) << vector.text << " kept " << kept;
    }
  };
  std::vector<std::string> keyed = {vector.op};
  if (undo) keyed.insert(keyed.end(), {seconds(spent_at), microseconds(spent_at)});
  keyed.insert(keyed.end(), {"1", "b", numbers[0], numbers[1]});
  hold_form({"k"}, keyed, head + answer + "]");
  if (undo || vector.op == "look") return true;
  const std::vector<std::string> brief = {vector.op.substr(0, 1), numbers[0], numbers[1]};
  hold_form({"k"}, brief, answer);
  const std::vector<std::string> two = {"s", "10", "100", brief[0], brief[1], brief[2]};
  hold_form({"l", "k"}, two, "[10, " + answer + "]");
  std::vector<std::string> mixed = {"s", "10", "100"};
  mixed.insert(mixed.end(), keyed.begin(), keyed.end());
  hold_form({"l", "k"}, mixed, "[10, " + head + answer + "]]");
  return true;
}

TEST_F(GcraLua, EveryVectorHoldsUpToTheWindowThatRedisTakes) {
  std::map<std::string, int> held;
  for (const Vector& vector : read_vectors()) held[vector.op] += hold(vector) ? 1 : 0;
  EXPECT_GE(held["spend"], 150);
  EXPECT_GE(held["peek"], 30);
  EXPECT_GE(held["refund"], 50);
  EXPECT_GE(held["undo"], 15);
}

TEST_F(GcraLua, TheLongestWindowIsExactToTheNanosecond) {
  const std::int64_t window = Duration{bounds::redis_window_max}.count();
  const std::int64_t now = kBase + 999'999'000;
  // All spent except one nanosecond.
  connection_.ask({"SET", "k", state_text(now + window - 1)});
  const std::vector<std::string> one = {"s", "1", std::to_string(window)};
  EXPECT_EQ(run({"k"}, one, now), std::to_string(window));
  EXPECT_EQ(connection_.ask({"GET", "k"}), state_text(now + window));
  EXPECT_EQ(run({"k"}, one, now), std::to_string(-1 - window));
}

// A foreign value under our key neither limits requests nor makes them fail.
TEST_F(GcraLua, WhatIsNoStateCountsAsNoneAndIsOverwrittenOrReset) {
  const std::int64_t now = kBase;
  const std::string head = "[" + seconds(now) + ", 0, ";
  const std::string minute = std::to_string(now / kSecond / 60 + 1);
  const std::string after = std::to_string(now / kSecond / 60 + 2);
  const std::vector<std::string> bucket = {"1", "b", "10", "100"};
  const std::vector<std::string> quota = {"1", "w", "2", "5", std::to_string(now / kSecond / 60), minute, after};
  const auto with = [](const std::string& mode, std::vector<std::string> rest) {
    rest.insert(rest.begin(), mode);
    return rest;
  };
  std::vector<std::vector<std::string>> all = {{"LPUSH", "k", "x"}, {"HSET", "k", "a", "1"}};
  for (const char* const text : {"", "abc", "-5", "nan", "inf", "1e400", "0x10", " 1", "12345", "1:2:3", ":", "1:",
                                 ":1", "1:-1", "1:1e9", "10000000000000000000", "999999999:1", "1:999999999999"}) {
    all.push_back({"SET", "k", text});
  }
  for (const std::vector<std::string>& command : all) {
    const auto put = [&] {
      connection_.ask({"DEL", "k"});
      connection_.ask(command);
    };
    const std::string& what = command.back();
    put();
    EXPECT_EQ(run({"k"}, with("peek", bucket), now), head + "0, 0]") << what;
    EXPECT_EQ(run({"k"}, with("refund", bucket), now), head + "0, 0]") << what;
    EXPECT_EQ(run({"k"}, {"p", "10", "100"}, now), "0") << what;
    EXPECT_EQ(run({"k"}, {"r", "10", "100"}, now), "0") << what;
    EXPECT_EQ(run({"k"}, with("spend", bucket), now), head + "0, 10]") << what;
    EXPECT_EQ(connection_.ask({"GET", "k"}), state_text(now + 10)) << what;
    put();
    EXPECT_EQ(run({"k"}, {"s", "10", "100"}, now), "10") << what;
    EXPECT_EQ(connection_.ask({"GET", "k"}), state_text(now + 10)) << what;
    put();
    EXPECT_EQ(run({"k"}, with("reset", bucket), now), head + "1, 0]") << what;
    EXPECT_EQ(connection_.ask({"EXISTS", "k"}), "0") << what;
    put();
    EXPECT_EQ(run({"k"}, with("peek", quota), now), head + "0, 0, " + minute + "]") << what;
    EXPECT_EQ(run({"k"}, with("spend", quota), now), head + "0, 2, " + minute + "]") << what;
    EXPECT_EQ(connection_.ask({"GET", "k"}), minute + ":2") << what;
    put();
    EXPECT_EQ(run({"k"}, with("reset", quota), now), head + "1, 0, " + minute + "]") << what;
    EXPECT_EQ(connection_.ask({"EXISTS", "k"}), "0") << what;
  }
}

TEST_F(GcraLua, WhatIsNoListOfLeasesIsNone) {
  connection_.ask({"DEL", "k", "l"});
  connection_.ask({"LPUSH", "l", "x"});
  const std::vector<std::string> lease = {"lease", "b", "10", "100", "10", "1", "4", "me", "1", "2", "250"};
  EXPECT_EQ(run({"k", "l"}, lease, kBase), "[" + seconds(kBase) + ", 0, 0, 1, 5, 0, 50, 4]");
  EXPECT_TRUE(connection_.ask({"GET", "l"}).starts_with("me 1 "));
}

TEST_F(GcraLua, AServersClockMoreThanAWindowAwayIsRefused) {
  // The window is minutes 60 to 119. The script accepts it while Redis's clock is at most one window away: minutes 0 to
  // 179.
  const std::vector<std::string> spend = {"spend", "1", "w", "1", "5", "60", "120", "180"};
  connection_.ask({"DEL", "k"});
  EXPECT_EQ(run({"k"}, spend, 0), "[0, 0, 0, 1, 60]");
  connection_.ask({"DEL", "k"});
  EXPECT_EQ(run({"k"}, spend, 179 * 60 * kSecond), "[10740, 0, 0, 1, 180]");
  EXPECT_TRUE(run({"k"}, spend, 180 * 60 * kSecond).starts_with("(error) WEIRCLOCK"));
  const std::vector<std::string> later = {"spend", "1", "w", "1", "5", "120", "180", "240"};
  EXPECT_TRUE(run({"k"}, later, 59 * 60 * kSecond).starts_with("(error) WEIRCLOCK"));
}

// Several questions in one command.

TEST_F(GcraLua, QuestionsOfOneCommandAreDecidedInOrderEvenAboutTheSameBucket) {
  connection_.ask({"DEL", "k", "l"});
  const std::vector<std::string> four = {"s", "60", "100", "s", "60", "100", "r", "60", "100", "s", "60", "100"};
  EXPECT_EQ(run({"k", "k", "k", "k"}, four, kBase), "[60, -61, 0, 60]");
  const std::string head = "[" + seconds(kBase) + ", 0, 0, ";
  const std::vector<std::string> mixed = {"s",   "40", "100", "spend", "2", "b", "40",
                                          "100", "b",  "40",  "100",   "p", "0", "100"};
  EXPECT_EQ(run({"k", "k", "l", "k"}, mixed, kBase), "[100, " + head + "-101, 0], 100]");
}

TEST_F(GcraLua, AQuestionThatFailsFailsAlone) {
  connection_.ask({"DEL", "k", "q", "w"});
  connection_.ask({"LPUSH", "w", "x"});
  // The quota's window is far from the clock, and one price is invalid.
  const std::vector<std::string> all = {"s",   "10",  "100", "spend", "1",   "w", "1",  "5",  "60",
                                        "120", "180", "s",   "x",     "100", "s", "10", "100"};
  const std::string reply = run({"k", "q", "k", "w"}, all, kBase);
  EXPECT_TRUE(reply.starts_with("[10, WEIRCLOCK ")) << reply;
  EXPECT_TRUE(reply.ends_with(", 10]")) << reply;
  EXPECT_EQ(connection_.ask({"GET", "k"}), state_text(kBase + 10));
  const std::string brief = run({"k", "k", "k"}, {"s", "10", "100", "s", "x", "100", "s", "10", "100"}, kBase);
  EXPECT_TRUE(brief.starts_with("[20, ") && brief.ends_with(", 30]")) << brief;
}

TEST_F(GcraLua, WithoutMemoryWhatWritesFailsAndTheRestIsAnswered) {
  RedisServer server;
  RedisConnection redis(server.port());
  const std::string sha = redis.ask({"SCRIPT", "LOAD", std::string(kGcraScript.text)});
  const std::vector<std::string> three = {"EVALSHA", sha, "3",  "a",   "b", "c",  "p",  "10",
                                          "100",     "s", "10", "100", "p", "10", "100"};
  redis.ask({"CONFIG", "SET", "maxmemory", "1"});
  const std::string reply = redis.ask(three);
  EXPECT_TRUE(reply.starts_with("[0, ") && reply.find("OOM ") != std::string::npos && reply.ends_with(", 0]")) << reply;
}

}  // namespace
}  // namespace weir::redis::gcra_lua_test
