#include "weir/known/known_line.h"

#include <gtest/gtest.h>

#include <chrono>

#include "weir/base/bounds.h"

namespace weir::known_line_test {
namespace {

using namespace std::chrono_literals;

TEST(KnownLine, ReadsBackWhatItWrites) {
  Adjustment adjustment;
  adjustment.limit = "orders";
  adjustment.id = std::string("a b%\xff=\n") + '\0';
  adjustment.count = 200;
  adjustment.period = 1s;
  adjustment.expires = Wall{1'767'225'600s};
  EXPECT_EQ(std::get<Adjustment>(parse_line(print_line(adjustment))->what), adjustment);
  adjustment.hash_mark = "0123abcd";
  EXPECT_EQ(std::get<Adjustment>(parse_line(print_line(adjustment))->what), adjustment);
  AccessEntry entry;
  entry.ip = IpPrefix::parse("203.0.113.9").value();
  entry.reason = "denied often";
  entry.expires = Wall{1'798'761'600s};
  for (const bool block : {false, true}) {
    const auto read = parse_line(print_line(entry, block));
    ASSERT_TRUE(read);
    EXPECT_EQ(std::get<AccessEntry>(read->what), entry);
    EXPECT_EQ(read->block, block);
  }
}

TEST(KnownLine, RefusesDamagedUnknownAndOverlongLines) {
  const std::string good = "adjust limit=orders id=7 burst=50 expires=1 by=";
  ASSERT_TRUE(parse_line(good));
  for (const std::string& line :
       {std::string(), std::string("{\"burst\":5}"), std::string("adjust"), good + " more=1", good + " burst=5",
        std::string("adjust limit=orders id=7 burst=x expires=1 by="), std::string("deny ip=1.2.3 reason= by="),
        good + " hashed=0123abc", good + " hashed=0123abcde", std::string("block reason= by="),
        std::string("forgive ip=1.2.3.4 reason= by=")}) {
    EXPECT_FALSE(parse_line(line)) << line;
  }
  const auto named = [](std::size_t bytes) {
    return "adjust limit=orders id=" + std::string(bytes, 'x') + " burst=5 expires=1 by=";
  };
  EXPECT_TRUE(parse_line(named(bounds::key_bytes_max)));
  EXPECT_FALSE(parse_line(named(bounds::key_bytes_max + 1)));
}

}  // namespace
}  // namespace weir::known_line_test
