#include "weir/known/known_file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "weir/base/bounds.h"

namespace weir::known_file_test {
namespace {

using namespace std::chrono_literals;

SavedKnown some() {
  SavedKnown kept;
  Adjustment one;
  one.limit = "orders";
  one.id = std::string("a b%\xff=\n") + '\0';
  one.burst = 50;
  one.expires = Wall{1'767'225'600s};
  one.added_by = "token:4f2a";
  kept.adjustments.push_back(one);
  one.id = "8";
  one.burst.reset();
  one.count = 200;
  one.period = 1s;
  kept.adjustments.push_back(one);
  AccessEntry entry;
  entry.ip = IpPrefix::parse("203.0.113.0/24").value();
  entry.reason = "abuse of search";
  entry.expires = Wall{1'798'761'600s};
  kept.entries.push_back(entry);
  entry = {};
  entry.list = AccessEntry::List::allow;
  entry.apikey = "K";
  entry.added_by = "ops";
  kept.entries.push_back(entry);
  entry = {};
  entry.limit = "orders";
  entry.id = "9";
  kept.entries.push_back(entry);
  return kept;
}

TEST(KnownFile, ReadsBackWhatItWrites) {
  EXPECT_EQ(parse_known(print_known(some())).value(), some());
  EXPECT_EQ(parse_known(print_known({})).value(), SavedKnown{});
}

TEST(KnownFile, IsReadableText) {
  const std::string text = print_known(some());
  EXPECT_NE(
      text.find("\nadjust limit=orders id=8 count=200 period=1000000000 expires=1767225600000000000 by=token:4f2a\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("\ndeny ip=203.0.113.0/24 reason=abuse%20of%20search expires=1798761600000000000 by=\n"),
            std::string::npos)
      << text;
}

TEST(KnownFile, RefusesEveryTruncationAndEveryFlippedBit) {
  const std::string text = print_known(some());
  for (std::size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(parse_known(text.substr(0, size))) << size;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    EXPECT_FALSE(parse_known(flipped)) << i;
  }
  EXPECT_FALSE(parse_known(text + text));
}

TEST(KnownFile, LimitsTheNumberOfAdjustmentsAndEntries) {
  SavedKnown kept;
  Adjustment one = some().adjustments[1];
  for (std::size_t i = 0; i < bounds::adjustments_max; ++i) {
    one.id = std::to_string(i);
    kept.adjustments.push_back(one);
  }
  AccessEntry entry = some().entries[2];
  for (std::size_t i = 0; i < bounds::access_entries_max; ++i) {
    entry.id = std::to_string(i);
    kept.entries.push_back(entry);
  }
  const std::string full = print_known(kept);
  EXPECT_LE(full.size(), bounds::known_file_bytes_max);
  EXPECT_TRUE(parse_known(full));
  SavedKnown more = kept;
  more.adjustments.push_back(one);
  EXPECT_EQ(parse_known(print_known(more)).error().detail, "it has too many adjustments");
  kept.entries.push_back(entry);
  EXPECT_EQ(parse_known(print_known(kept)).error().detail, "it has too many access entries");
}

class KnownFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "weir-known-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return (folder_ / "state.known").string(); }
  void write(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }

  std::filesystem::path folder_;
  std::vector<std::string> logged_;
  KnownFile file() {
    return KnownFile(path(), [this](std::string_view sentence) { logged_.emplace_back(sentence); });
  }
};

TEST_F(KnownFileTest, IsEmptyWithoutAFile) {
  EXPECT_EQ(file().load().value(), SavedKnown{});
  EXPECT_TRUE(logged_.empty());
}

TEST_F(KnownFileTest, LoadsWhatWasSavedLast) {
  ASSERT_TRUE(file().save({}));
  ASSERT_TRUE(file().save(some()));
  EXPECT_EQ(file().load().value(), some());
  std::size_t files = 0;
  for (const auto& each : std::filesystem::directory_iterator(folder_)) files += each.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, 1u) << "no temporary file is left";
  const auto mode = std::filesystem::status(path()).permissions();
  EXPECT_EQ(mode & std::filesystem::perms::others_all, std::filesystem::perms::none) << "it may contain API keys";
}

// Issue 14, row 10.
TEST_F(KnownFileTest, DoesNotFollowASymbolicLinkAtTheTemporaryPath) {
  const std::filesystem::path target = folder_ / "precious";
  std::ofstream(target) << "precious";
  std::filesystem::create_symlink(target, path() + ".new");
  ASSERT_TRUE(file().save(some()));
  EXPECT_EQ(file().load().value(), some());
  std::string kept;
  std::ifstream(target) >> kept;
  EXPECT_EQ(kept, "precious");
  EXPECT_FALSE(std::filesystem::is_symlink(path()));
}

TEST_F(KnownFileTest, MovesADamagedFileAsideOnce) {
  const std::string text = print_known(some());
  write(text.substr(0, text.size() - 1));
  EXPECT_EQ(file().load().value(), SavedKnown{});
  ASSERT_EQ(logged_.size(), 1u);
  EXPECT_EQ(logged_[0], "saved adjustments and access entries not loaded: " + path() +
                            " is damaged: it ends in the middle of a line; moved to " + path() + ".damaged-1");
  EXPECT_TRUE(std::filesystem::exists(path() + ".damaged-1"));
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_EQ(file().load().value(), SavedKnown{});
  EXPECT_EQ(logged_.size(), 1u);
}

TEST_F(KnownFileTest, ReportsAPathThatCannotBeWritten) {
  KnownFile nowhere((folder_ / "missing" / "state.known").string());
  EXPECT_FALSE(nowhere.save(some()));
  EXPECT_EQ(nowhere.load().value(), SavedKnown{});
}

TEST_F(KnownFileTest, MovesAFileAsideThatIsTooLarge) {
  write(std::string(bounds::known_file_bytes_max + 1, ' '));
  EXPECT_EQ(file().load().value(), SavedKnown{});
  ASSERT_EQ(logged_.size(), 1u);
  EXPECT_NE(logged_[0].find("it is too large"), std::string::npos);
}

}  // namespace
}  // namespace weir::known_file_test
