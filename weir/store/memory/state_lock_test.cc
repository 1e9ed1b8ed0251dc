#include "weir/store/memory/state_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "weir/store/memory/state_scratch.h"

namespace weir::state_lock_test {
namespace {

class StateLockTest : public testing::Test {
 protected:
  Scratch scratch_;
  const std::string path_ = scratch_.path("snapshot");
};

TEST_F(StateLockTest, ASecondHolderIsRefused) {
  const StateLock first = std::move(*StateLock::take(path_, [] { return false; }));
  const auto second = StateLock::take(path_, [] { return false; });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), (Error{Fault::unavailable, path_ + ": another process is using this state"}));
}

TEST_F(StateLockTest, ASuccessorWaitsUntilTheLockIsReleased) {
  StateLock first = std::move(*StateLock::take(path_, [] { return false; }));
  int waits = 0;
  const auto second = StateLock::take(path_, [&] {
    if (++waits == 3) first.release();
    return true;
  });
  EXPECT_TRUE(second);
  EXPECT_EQ(waits, 3);
}

TEST_F(StateLockTest, TheFileIsForItsOwnerOnlyAndIsNeverASymbolicLink) {
  {
    const auto lock = StateLock::take(path_, [] { return false; });
  }
  struct stat status {};
  ASSERT_EQ(stat((path_ + ".lock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(unlink((path_ + ".lock").c_str()), 0);
  ASSERT_EQ(symlink(scratch_.path("elsewhere").c_str(), (path_ + ".lock").c_str()), 0);
  EXPECT_FALSE(StateLock::take(path_, [] { return false; }));
  EXPECT_EQ(scratch_.files(), std::set<std::string>{"snapshot.lock"});
}

}  // namespace
}  // namespace weir::state_lock_test
