#include "weir/base/published.h"

#include <gtest/gtest.h>

#include <thread>

namespace weir::published_test {
namespace {

TEST(Published, ReaderKeepsItsValueUntilItRefreshes) {
  Published<int> number(std::make_shared<int>(1));
  Reader<int> reader(number);
  EXPECT_FALSE(reader.refresh());
  number.publish(std::make_shared<int>(2));
  EXPECT_EQ(*reader.get(), 1);
  EXPECT_TRUE(reader.refresh());
  EXPECT_EQ(*reader.get(), 2);
  EXPECT_FALSE(reader.refresh());
  EXPECT_EQ(number.version(), 1u);
}

TEST(Published, RefreshAfterAPublishSeesItOnAnyThread) {
  Published<int> number(std::make_shared<int>(0));
  std::atomic<int> published{0};
  std::thread writer([&] {
    for (int i = 1; i <= 10'000; ++i) {
      number.publish(std::make_shared<int>(i));
      published.store(i, std::memory_order_release);
    }
  });
  Reader<int> reader(number);
  for (int seen = 0; seen < 10'000;) {
    const int at_least = published.load(std::memory_order_acquire);
    reader.refresh();
    EXPECT_GE(*reader.get(), at_least);
    EXPECT_GE(*reader.get(), seen);
    seen = *reader.get();
  }
  writer.join();
}

}  // namespace
}  // namespace weir::published_test
