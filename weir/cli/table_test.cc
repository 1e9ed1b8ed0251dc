#include "weir/cli/table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weir/cli/progress.h"
#include "weir/cli/text_width.h"

namespace weir::table_test {
namespace {

using namespace cli;
using Lines = std::vector<std::string>;

Table people() {
  Table table({"LIMIT", "ID", "COUNT", "NOTE"});
  table.numbers({"COUNT"});
  table.add({"per-ip", "203.0.113.9", "1234567", ""});
  table.add({"orders", "a-very-long-identifier-of-a-client", "7", ""});
  return table;
}

TEST(Table, AlignsNumbersRightAndLeavesEmptyColumnsOut) {
  EXPECT_EQ(people().lines(0, Table::Narrow::records),
            (Lines{"LIMIT   ID                                      COUNT",
                   "per-ip  203.0.113.9                         1,234,567",
                   "orders  a-very-long-identifier-of-a-client          7"}));
}

TEST(Table, CutsTheWidestTextsUntilItFits) {
  EXPECT_EQ(people().lines(36, Table::Narrow::records),
            (Lines{"LIMIT   ID                     COUNT", "per-ip  203.0.113.9        1,234,567",
                   "orders  a-very-long-iden…          7"}));
  for (std::size_t columns = 27; columns < 60; ++columns) {
    for (const std::string& line : people().lines(columns, Table::Narrow::records))
      EXPECT_LE(text_width(line), columns) << line;
  }
}

TEST(Table, NeverCutsWholeColumns) {
  Table table({"ID", "RATE"});
  table.whole({"RATE"});
  table.add({"a-very-long-identifier", "10 per 1m, burst 10"});
  EXPECT_EQ(table.lines(31, Table::Narrow::records), (Lines{"ID          RATE", "a-very-lo…  10 per 1m, burst 10"}));
  EXPECT_EQ(table.lines(28, Table::Narrow::records),
            (Lines{"ID    a-very-long-identifier", "RATE  10 per 1m, burst 10"}));
}

TEST(Table, BecomesRecordsWhereNotEvenCutTextsFit) {
  EXPECT_EQ(people().lines(20, Table::Narrow::records),
            (Lines{"LIMIT  per-ip", "ID     203.0.113.9", "COUNT  1,234,567", "", "LIMIT  orders",
                   "ID     a-very-long-identifier-of-a-client", "COUNT  7"}));
}

TEST(Table, DropsTheLastColumnsInLiveViews) {
  EXPECT_EQ(people().lines(20, Table::Narrow::drop),
            (Lines{"LIMIT   ID", "per-ip  203.0.113.9", "orders  a-very-long…"}));
}

TEST(Table, PrintsNoControlCharacter) {
  Table table({"ID"});
  table.add({"a\x1b[2Jb\n\xc2\x9b\xe2\x80\xae"});
  EXPECT_EQ(table.lines(0, Table::Narrow::records), (Lines{"ID", "a\\x1b[2Jb\\x0a\\xc2\\x9b\\xe2\\x80\\xae"}));
}

TEST(Table, KeepsItsColumnsOverPages) {
  Table table({"ID", "N"});
  table.add({"a-long-one", "1"});
  EXPECT_EQ(table.lines(0, Table::Narrow::records).size(), 2u);
  table.next_page();
  table.add({"b", "2"});
  EXPECT_EQ(table.lines(0, Table::Narrow::records), (Lines{"b           2"}));
}

TEST(TextWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(text_width("abc"), 3u);
  EXPECT_EQ(text_width("é…"), 2u);
  EXPECT_EQ(text_width("日本"), 4u);
  EXPECT_EQ(text_width("e\xcc\x81"), 1u) << "a combining mark";
  EXPECT_LE(text_width("\xff\xc3"), 2u) << "bytes that are no characters";
}

TEST(TextWidth, CutsBetweenCharacters) {
  EXPECT_EQ(clipped("abc", 3), "abc");
  EXPECT_EQ(clipped("abcd", 3), "ab…");
  EXPECT_EQ(clipped("日本語", 5), "日本…");
  EXPECT_EQ(clipped("日本語", 4), "日…");
  EXPECT_EQ(clipped("abc", 1), "…");
  EXPECT_EQ(clipped("abc", 0), "");
}

TEST(ProgressLine, ShowsABarThatFits) {
  EXPECT_EQ(progress_line("line", 1234567, 52, 100, 80),
            "[====================>                   ]  52 %  1,234,567 lines");
  EXPECT_EQ(progress_line("line", 1, 100, 100, 80), "[========================================] 100 %  1 line");
  EXPECT_EQ(progress_line("bucket", 5, 7, 5, 40), "[=====================] 100 %  5 buckets");
  EXPECT_EQ(progress_line("line", 1234567, 52, 100, 24), "52 %  1,234,567 lines");
  EXPECT_EQ(progress_line("line", 1234567, 0, 0, 80), "1,234,567 lines");
  for (std::size_t columns = 1; columns < 90; ++columns) {
    for (const std::size_t done : {0u, 1u, 99u, 100u})
      EXPECT_LE(text_width(progress_line("line", 1234567, done, 100, columns)), columns);
  }
}

}  // namespace
}  // namespace weir::table_test
