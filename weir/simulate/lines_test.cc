#include "weir/simulate/lines.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace weir::simulate::lines_test {
namespace {

// Returns every line of `text` as read from a file, "<too long>" in place of a skipped one.
std::vector<std::string> lines_of(const std::string& text, std::size_t line_bytes_max) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  EXPECT_EQ(::write(fileno(file.get()), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::lseek(fileno(file.get()), 0, SEEK_SET);
  LineReader reader(fileno(file.get()), line_bytes_max, [] {});
  std::vector<std::string> lines;
  std::string_view line;
  while (true) {
    switch (reader.next(line)) {
      case LineReader::Got::line:
        lines.emplace_back(line);
        break;
      case LineReader::Got::too_long:
        lines.emplace_back("<too long>");
        break;
      case LineReader::Got::end:
        EXPECT_EQ(reader.bytes(), text.size());
        return lines;
      case LineReader::Got::failed:
        ADD_FAILURE();
        return lines;
    }
  }
}

using Lines = std::vector<std::string>;

TEST(LineReader, ReadsLinesWithAndWithoutALastNewline) {
  EXPECT_EQ(lines_of("", 8), Lines{});
  EXPECT_EQ(lines_of("a\n\nb", 8), (Lines{"a", "", "b"}));
  EXPECT_EQ(lines_of("a\nb\n", 8), (Lines{"a", "b"}));
}

TEST(LineReader, SkipsALineBeyondTheBoundAndGoesOn) {
  EXPECT_EQ(lines_of("12345678\n123456789\nx\n", 8), (Lines{"12345678", "<too long>", "x"}));
  EXPECT_EQ(lines_of("12345678", 8), (Lines{"12345678"}));
  EXPECT_EQ(lines_of("123456789", 8), (Lines{"<too long>"}));
}

TEST(LineReader, SkipsALineOfManyBuffers) {
  const std::string big(1'000'000, 'x');
  EXPECT_EQ(lines_of("a\n" + big + "\nb\n" + big, 100), (Lines{"a", "<too long>", "b", "<too long>"}));
}

TEST(LineReader, ReadsLinesThatLieAcrossBuffers) {
  Lines expected;
  std::string text;
  for (std::size_t i = 0; i < 3000; ++i) {
    expected.emplace_back(i % 977, static_cast<char>('a' + i % 26));
    text += expected.back() + "\n";
  }
  EXPECT_EQ(lines_of(text, 1000), expected);
}

TEST(LineReader, CallsBackBeforeEveryRead) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  int pauses = 0;
  // Like a writer that waits for the answer to one line before it writes the next.
  LineReader reader(ends[0], 100, [&] {
    const std::string line = "line " + std::to_string(pauses++) + "\n";
    if (pauses <= 3) {
      ASSERT_GT(::write(ends[1], line.data(), line.size()), 0);
    }
    if (pauses == 4) ::close(ends[1]);
  });
  std::string_view line;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(reader.next(line), LineReader::Got::line);
    EXPECT_EQ(line, "line " + std::to_string(i));
  }
  EXPECT_EQ(reader.next(line), LineReader::Got::end);
  EXPECT_EQ(reader.next(line), LineReader::Got::end);
  ::close(ends[0]);
}

TEST(LineReader, SaysThatADescriptorCannotBeRead) {
  LineReader reader(-1, 100, [] {});
  std::string_view line;
  EXPECT_EQ(reader.next(line), LineReader::Got::failed);
}

}  // namespace
}  // namespace weir::simulate::lines_test
