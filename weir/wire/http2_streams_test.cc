#include "weir/wire/http2_streams.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace weir::http2_streams_test {
namespace {

TEST(Http2Streams, FindsWhatWasInsertedAndNothingElse) {
  Http2Streams<std::string> streams;
  EXPECT_EQ(streams.find(1), nullptr);
  streams.erase(1);
  streams.insert(1) = "one";
  streams.insert(33) = "thirty-three";  // the same home in an array of 16
  EXPECT_EQ(streams.size(), 2u);
  EXPECT_EQ(streams.insert(1), "one");
  EXPECT_EQ(streams.size(), 2u);
  EXPECT_EQ(*streams.find(33), "thirty-three");
  EXPECT_EQ(streams.find(65), nullptr);
  streams.erase(1);
  EXPECT_EQ(streams.find(1), nullptr);
  EXPECT_EQ(*streams.find(33), "thirty-three");
}

TEST(Http2Streams, StartsANewStreamEmptyWhereAnotherWas) {
  Http2Streams<std::string> streams;
  streams.insert(1) = "one";
  streams.erase(1);
  EXPECT_EQ(streams.insert(33), "");
}

TEST(Http2Streams, BehavesLikeAMapInARandomHistory) {
  std::mt19937 random(7);
  Http2Streams<std::string> streams;
  std::map<std::int32_t, std::string> expected;
  for (int i = 0; i < 200'000; ++i) {
    const auto id = static_cast<std::int32_t>(1 + 2 * (random() % (i < 100'000 ? 40 : 400)));
    if (random() % 2 == 0) {
      streams.insert(id) = expected[id] = std::to_string(i);
    } else {
      streams.erase(id);
      expected.erase(id);
    }
    const std::string* const found = streams.find(id);
    ASSERT_EQ(found != nullptr, expected.contains(id));
  }
  std::map<std::int32_t, std::string> all;
  streams.for_each([&](std::int32_t id, std::string& value) { all[id] = value; });
  EXPECT_EQ(all, expected);
  EXPECT_EQ(streams.size(), expected.size());
}

}  // namespace
}  // namespace weir::http2_streams_test
