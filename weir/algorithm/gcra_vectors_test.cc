// Checks gcra.h against gcra_vectors.txt, whose answers come from a separate reference implementation
// (gcra_vectors.py).
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "weir/algorithm/gcra.h"
#include "weir/base/text.h"

namespace weir::gcra_vectors_test {
namespace {

struct Vector {
  int line = 0;
  std::string text;
  std::string op;
  std::vector<std::string> in;   // count period burst tat now cost since
  std::vector<std::string> out;  // allowed remaining retry reset tat'
};

std::vector<Vector> read_vectors() {
  std::ifstream file(WEIR_SOURCE_DIR "/weir/algorithm/gcra_vectors.txt");
  std::vector<Vector> vectors;
  Vector vector;
  while (std::getline(file, vector.text)) {
    ++vector.line;
    if (vector.text.empty() || vector.text.front() == '#') continue;
    std::istringstream words(vector.text);
    words >> vector.op;
    vector.in.clear();
    vector.out.clear();
    std::vector<std::string>* side = &vector.in;
    for (std::string word; words >> word;) {
      if (word == "->") {
        side = &vector.out;
      } else {
        side->push_back(word);
      }
    }
    EXPECT_EQ(vector.in.size(), 7u) << vector.text;
    EXPECT_EQ(vector.out.size(), 5u) << vector.text;
    vectors.push_back(vector);
  }
  return vectors;
}

std::int64_t number(const std::string& text) {
  const auto parsed = parse_integer(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : 0;
}

std::string join(const Decision& decision, Time tat) {
  const std::int64_t retry = decision.retry_after == kNever ? -1 : decision.retry_after.count();
  std::ostringstream out;
  out << decision.allowed << ' ' << decision.remaining << ' ' << retry << ' ' << decision.reset_after.count() << ' '
      << tat.time_since_epoch().count();
  return out.str();
}

std::string answer(const Vector& vector) {
  const auto limit = Limit::make(number(vector.in[0]), Duration{number(vector.in[1])}, number(vector.in[2]));
  if (!limit) return limit.error().detail;
  Time tat{Duration{number(vector.in[3])}};
  const Time now{Duration{number(vector.in[4])}};
  const Count cost = number(vector.in[5]);
  if (vector.op == "undo") {
    const Time spent_at{Duration{number(vector.in[6])}};
    return "- - - - " + std::to_string(gcra::undo(tat, limit->price(cost), spent_at, now).time_since_epoch().count());
  }
  tat = gcra::settle(*limit, tat, vector.in[6] == "-" ? now : Time{Duration{number(vector.in[6])}}, now);
  if (vector.op == "peek") return join(gcra::peek(*limit, tat, cost, now), tat);
  const Step step = vector.op == "spend" ? gcra::spend(*limit, tat, cost, now) : gcra::refund(*limit, tat, cost, now);
  EXPECT_EQ(step.decision.burst, limit->burst());
  return join(step.decision, step.tat);
}

TEST(GcraVectors, EveryLineHolds) {
  const std::vector<Vector> vectors = read_vectors();
  std::map<std::string, int> ops;
  for (const Vector& vector : vectors) {
    if (vector.in.size() != 7 || vector.out.size() != 5) continue;
    ++ops[vector.op];
    const std::string wanted = vector.text.substr(vector.text.find("-> ") + 3);
    EXPECT_EQ(answer(vector), wanted) << "line " << vector.line << ": " << vector.text;
  }
  EXPECT_GE(vectors.size(), 150u);
  EXPECT_EQ(ops.size(), 4u);
  for (const auto& [op, lines] : ops) EXPECT_GE(lines, 20) << op;
}

}  // namespace
}  // namespace weir::gcra_vectors_test
