#include "weir/net/watched_files.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "weir/base/bounds.h"

namespace weir::watched_files_test {
namespace {

namespace fs = std::filesystem;

class WatchedFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "weir-watched-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = fs::canonical(name);
    auto made = WatchedFiles::make();
    ASSERT_TRUE(made);
    watched_ = std::move(*made);
  }
  void TearDown() override { fs::remove_all(directory_); }

  void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  void watch(const fs::path& path) {
    watched_->watch({{path, FileVersion::at(path)}});
    ASSERT_FALSE(watched_->changed());
  }
  // Waits for an inotify event and returns whether a watched file changed.
  bool wakes() {
    pollfd waiting{watched_->fd(), POLLIN, 0};
    return poll(&waiting, 1, 10'000) == 1 && watched_->changed();
  }

  fs::path directory_;
  std::unique_ptr<WatchedFiles> watched_;
};

TEST_F(WatchedFilesTest, NoticesAFileThatIsRewritten) {
  const fs::path path = directory_ / "a";
  write(path, "one");
  watch(path);
  write(path, "three");
  EXPECT_TRUE(wakes());
}

TEST_F(WatchedFilesTest, NoticesAFileReplacedByARename) {
  const fs::path path = directory_ / "a";
  write(path, "one");
  watch(path);
  write(directory_ / "b", "two");
  fs::rename(directory_ / "b", path);
  EXPECT_TRUE(wakes());
}

TEST_F(WatchedFilesTest, NoticesAFileThatIsCreatedOrRemoved) {
  const fs::path path = directory_ / "a";
  watch(path);
  write(path, "one");
  EXPECT_TRUE(wakes());
  watch(path);
  fs::remove(path);
  EXPECT_TRUE(wakes());
}

TEST_F(WatchedFilesTest, IgnoresOtherFilesInTheDirectory) {
  const fs::path path = directory_ / "a";
  write(path, "one");
  watch(path);
  write(directory_ / "neighbor", "two");
  EXPECT_FALSE(watched_->changed());
}

TEST_F(WatchedFilesTest, NoticesAChangeFromBeforeItWatched) {
  const fs::path path = directory_ / "a";
  write(path, "one");
  const FileVersion seen = FileVersion::at(path);
  write(path, "three");
  watched_->watch({{path, seen}});
  EXPECT_TRUE(watched_->changed());
}

// How Kubernetes swaps a ConfigMap: weir.yaml -> ..data/weir.yaml, ..data -> ..1, and then ..data becomes another link.
TEST_F(WatchedFilesTest, NoticesASwappedLinkOnThePath) {
  fs::create_directory(directory_ / "..1");
  fs::create_directory(directory_ / "..2");
  write(directory_ / "..1" / "weir.yaml", "one");
  write(directory_ / "..2" / "weir.yaml", "one");
  fs::create_symlink("..1", directory_ / "..data");
  fs::create_symlink("..data/weir.yaml", directory_ / "weir.yaml");
  watch(directory_ / "weir.yaml");
  fs::create_symlink("..2", directory_ / "..data_tmp");
  fs::rename(directory_ / "..data_tmp", directory_ / "..data");
  EXPECT_TRUE(wakes());
}

TEST_F(WatchedFilesTest, WatchesEveryDirectoryOnThePath) {
  fs::create_directory(directory_ / "real");
  fs::create_directory(directory_ / "links");
  write(directory_ / "real" / "a", "one");
  fs::create_symlink("../real", directory_ / "links" / "to-real");
  fs::create_symlink("links/to-real/a", directory_ / "a");
  const auto found = WatchedFiles::directories_to(directory_ / "a");
  const std::set<std::string> expected = {directory_, directory_ / "links", directory_ / "real"};
  EXPECT_EQ(found, expected);
}

// Like the kernel, follow at most this many links.
TEST_F(WatchedFilesTest, FollowsAsManyLinksAsTheKernel) {
  fs::create_directory(directory_ / "end");
  write(directory_ / "end" / "file", "one");
  fs::create_symlink("end/file", directory_ / "1");
  for (int i = 2; i <= bounds::symlinks_max + 1; ++i) {
    fs::create_symlink(std::to_string(i - 1), directory_ / std::to_string(i));
  }
  const std::string end = directory_ / "end";
  EXPECT_TRUE(WatchedFiles::directories_to(directory_ / std::to_string(bounds::symlinks_max)).contains(end));
  EXPECT_FALSE(WatchedFiles::directories_to(directory_ / std::to_string(bounds::symlinks_max + 1)).contains(end));
  fs::create_symlink("loop", directory_ / "loop");
  EXPECT_EQ(WatchedFiles::directories_to(directory_ / "loop").size(), 1u);
}

}  // namespace
}  // namespace weir::watched_files_test
