#include "weir/base/text_writer.h"

#include <gtest/gtest.h>

#include <limits>

#include "weir/base/text.h"

namespace weir::text_writer_test {
namespace {

TEST(TextWriter, AppendsToTheString) {
  std::string out = "a";
  TextWriter(out).text("bc").character('d').text("").integer(-12).seconds(Duration{1'050'000'000});
  EXPECT_EQ(out, "abcd-121.05");
}

TEST(TextWriter, RepeatsAPiece) {
  std::string out = "key=";
  {
    TextWriter writer(out);
    const std::size_t begin = writer.size();
    writer.text("value");
    writer.again(begin, writer.size()).again(0, 4);
  }
  EXPECT_EQ(out, "key=valuevaluekey=");
}

TEST(TextWriter, GrowsAsNeeded) {
  std::string out;
  {
    TextWriter writer(out);
    for (int i = 0; i < 1000; ++i) writer.text("0123456789").character('x');
    writer.text(std::string(5000, 'y'));
  }
  EXPECT_EQ(out.size(), 16'000u);
  EXPECT_EQ(out.substr(10'990, 12), "123456789xyy");
}

TEST(TextWriter, WritesEveryNumber) {
  for (const std::int64_t number : {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max(),
                                    std::numeric_limits<std::int64_t>::min(), std::int64_t{1'000'000}}) {
    std::string out;
    TextWriter(out).integer(number);
    EXPECT_EQ(out, std::to_string(number));
  }
}

TEST(TextWriter, WritesSecondsLikePrintSeconds) {
  for (const std::int64_t ns : {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}, std::int64_t{50'000'000},
                                std::int64_t{1'000'000'000}, std::int64_t{1'000'000'010}, std::int64_t{999'999'999},
                                std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    std::string out;
    TextWriter(out).seconds(Duration{ns});
    EXPECT_EQ(out, print_seconds(Duration{ns}));
  }
}

}  // namespace
}  // namespace weir::text_writer_test
