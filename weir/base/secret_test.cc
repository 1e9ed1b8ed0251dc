#include "weir/base/secret.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::secret_test {
namespace {

TEST(SameSecret, IsTrueForTheSecretOnly) {
  EXPECT_TRUE(same_secret("hunter2", "hunter2"));
  EXPECT_FALSE(same_secret("hunter", "hunter2"));
  EXPECT_FALSE(same_secret("hunter22", "hunter2"));
  EXPECT_FALSE(same_secret("hunter2hunter2", "hunter2"));
  EXPECT_FALSE(same_secret("Hunter2", "hunter2"));
  EXPECT_FALSE(same_secret("", "hunter2"));
  EXPECT_FALSE(same_secret("hunter2", ""));
  EXPECT_FALSE(same_secret(std::string("\0", 1), ""));
  EXPECT_TRUE(same_secret("", ""));
}

}  // namespace
}  // namespace weir::secret_test
