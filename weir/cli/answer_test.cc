#include "weir/cli/answer.h"

#include <gtest/gtest.h>

#include <string>

#include "weir/base/bounds.h"

namespace weir::answer_test {
namespace {

using cli::Answer;

TEST(Answer, KeepsNumbersAsTheyAreWritten) {
  const auto answer =
      Answer::read(R"({"a":0.000002,"b":[1,-1,1e3],"c":null,"d":true,"e":"x","f":18446744073709551615})");
  ASSERT_TRUE(answer);
  EXPECT_EQ((*answer)["a"].text(), "0.000002");
  EXPECT_DOUBLE_EQ((*answer)["a"].number(), 0.000002);
  ASSERT_EQ((*answer)["b"].items().size(), 3u);
  EXPECT_EQ((*answer)["b"].items()[1].text(), "-1");
  EXPECT_EQ((*answer)["b"].items()[2].text(), "1e3");
  EXPECT_EQ((*answer)["c"].text(), "");
  EXPECT_TRUE((*answer)["d"].is_true());
  EXPECT_EQ((*answer)["e"].text(), "x");
  EXPECT_EQ((*answer)["f"].count(), 18446744073709551615u);
}

TEST(Answer, AbsentMembersAreNull) {
  const auto answer = Answer::read("[1]");
  ASSERT_TRUE(answer);
  EXPECT_TRUE((*answer)["a"]["b"].is(Answer::Kind::null));
  EXPECT_EQ((*answer)["a"].count(), 0u);
  EXPECT_EQ((*answer)["a"].number(), 0);
}

TEST(Answer, RefusesWhatIsNoJson) {
  for (const char* const text : {"", "{", "[1,]", "nul", "{\"a\":1}x", "<html>"})
    EXPECT_FALSE(Answer::read(text)) << text;
}

TEST(Answer, IsNotNestedDeeperThanItsBound) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_TRUE(Answer::read(nested(bounds::json_depth_max)));
  EXPECT_FALSE(Answer::read(nested(bounds::json_depth_max + 1)));
}

}  // namespace
}  // namespace weir::answer_test
