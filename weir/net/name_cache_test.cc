#include "weir/net/name_cache.h"

#include <gtest/gtest.h>

#include "weir/base/bounds.h"

namespace weir::name_cache_test {
namespace {

using namespace std::chrono_literals;

struct Fixture {
  ManualClock clock;
  int lookups = 0;
  bool fails = false;
  std::vector<Address> addresses{{"10.0.0.1", 80, {}}, {"10.0.0.2", 80, {}}};
  NameCache cache{clock, [this](const Target&) -> Result<std::vector<Address>> {
                    ++lookups;
                    if (fails) return Error{Fault::unavailable, "no answer"};
                    return addresses;
                  }};

  std::string first(const std::string& name = "a") {
    const auto found = cache.find({name, 80, {}});
    return found ? found->front().host : found.error().detail;
  }
};

TEST(NameCache, LooksUpAgainAfterFiveSeconds) {
  Fixture names;
  EXPECT_EQ(names.first(), "10.0.0.1");
  EXPECT_EQ(names.first(), "10.0.0.2") << "starts at the next address each time";
  EXPECT_EQ(names.first(), "10.0.0.1");
  EXPECT_EQ(names.lookups, 1);
  names.clock.advance(5s - 1ns);
  names.first();
  EXPECT_EQ(names.lookups, 1);
  names.clock.advance(1ns);
  names.addresses = {{"10.0.0.3", 80, {}}};
  EXPECT_EQ(names.first(), "10.0.0.3");
  EXPECT_EQ(names.lookups, 2);
}

TEST(NameCache, AFailedLookupKeepsTheLastAddresses) {
  Fixture names;
  names.fails = true;
  EXPECT_EQ(names.first(), "no answer");
  names.fails = false;
  EXPECT_EQ(names.first(), "10.0.0.1");
  names.fails = true;
  names.clock.advance(6s);
  EXPECT_EQ(names.first(), "10.0.0.2");
  EXPECT_EQ(names.first(), "10.0.0.1");
  EXPECT_EQ(names.lookups, 3) << "not tried again at once";
}

TEST(NameCache, IsBounded) {
  Fixture names;
  for (std::size_t i = 0; i < bounds::names_cached_max; ++i) names.first(std::to_string(i));
  names.first("0");
  EXPECT_EQ(names.lookups, static_cast<int>(bounds::names_cached_max));
  names.first("one more");
  names.first("0");
  EXPECT_EQ(names.lookups, static_cast<int>(bounds::names_cached_max) + 2);
}

}  // namespace
}  // namespace weir::name_cache_test
