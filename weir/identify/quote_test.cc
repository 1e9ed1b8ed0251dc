#include "weir/identify/quote.h"

#include <gtest/gtest.h>

namespace weir::quote_test {
namespace {

TEST(QuotedId, ShowsPrintableTextAsItIs) {
  EXPECT_EQ(quoted_id(""), "\"\"");
  EXPECT_EQ(quoted_id("a b"), "\"a b\"");
  EXPECT_EQ(quoted_id("bücher 💩"), "\"bücher 💩\"");
}

TEST(QuotedId, CannotForgeALogLine) {
  EXPECT_EQ(quoted_id("a\nb\x1b[2J\x7f"), R"("a\x0ab\x1b[2J\x7f")");
  EXPECT_EQ(quoted_id("say \"hi\" \\"), R"("say \"hi\" \\")");
  EXPECT_EQ(quoted_id("\xff\xc3"), R"("\xff\xc3")");
  EXPECT_EQ(quoted_id("\xc2\x9b"), R"("\xc2\x9b")") << "a C1 control also starts a terminal's escape sequence";
}

TEST(QuotedId, TruncatesALongIdBetweenCharacters) {
  EXPECT_EQ(quoted_id(std::string(128, 'x')), "\"" + std::string(128, 'x') + "\"");
  EXPECT_EQ(quoted_id(std::string(129, 'x')), "\"" + std::string(128, 'x') + "…\"");
  EXPECT_EQ(quoted_id(std::string(127, 'x') + "üy"), "\"" + std::string(127, 'x') + "ü…\"");
}

TEST(Utf8Sequence, AcceptsOnlyWhatRfc3629Allows) {
  const std::pair<std::string_view, std::size_t> cases[] = {
      {"", 0},
      {"a", 1},
      {"\x7f", 1},
      {"\x80", 0},
      {"\xc1\xbf", 0},
      {"\xc2\x80", 2},
      {"\xc2", 0},
      {"\xc2\x41", 0},
      {"\xdf\xbf", 2},
      {"\xe0\x9f\xbf", 0},
      {"\xe0\xa0\x80", 3},
      {"\xed\x9f\xbf", 3},
      {"\xed\xa0\x80", 0},
      {"\xee\x80\x80", 3},
      {"\xef\xbf\xbf", 3},
      {"\xef\xbf", 0},
      {"\xf0\x8f\xbf\xbf", 0},
      {"\xf0\x90\x80\x80", 4},
      {"\xf4\x8f\xbf\xbf", 4},
      {"\xf4\x90\x80\x80", 0},
      {"\xf5\x80\x80\x80", 0},
      {"\xff", 0},
  };
  for (const auto& [text, length] : cases) EXPECT_EQ(utf8_sequence(text), length) << quoted_id(text);
}

TEST(HasControl, FindsBothRangesOfControlCharacters) {
  for (const std::string_view text : {"\x1f", "a\x7f", "\u0080", "a\u009f", "\n", "\xc2\xc2\x85"}) {
    EXPECT_TRUE(has_control(text)) << quoted_id(text);
  }
  for (const std::string_view text : {"", " ~", "\u00a0", "\u4080", "\xc2", "\xc3\x80"}) {
    EXPECT_FALSE(has_control(text)) << quoted_id(text);
  }
}

}  // namespace
}  // namespace weir::quote_test
