#include "weir/wire/grpc.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace weir::grpc::grpc_test {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

TEST(Grpc, WaitsForTheRestOfASplitMessage) {
  const std::string bytes = "\0\0\0\0\3abc"s;
  Message message;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(parse(std::string_view(bytes).substr(0, size), 3, message), Parsed::more) << size;
  }
  const std::string longer = bytes + "more";
  ASSERT_EQ(parse(longer, 3, message), Parsed::whole);
  EXPECT_EQ(message.bytes, "abc");
  EXPECT_FALSE(message.compressed);
}

TEST(Grpc, RefusesAMessageByItsPrefix) {
  Message message;
  EXPECT_EQ(parse("\0\0\0\0\4"s, 3, message), Parsed::too_large);
  EXPECT_EQ(parse("\0\xff\xff\xff\xff"s, 3, message), Parsed::too_large);
  EXPECT_EQ(parse("\2"s, 3, message), Parsed::broken);
  ASSERT_EQ(parse("\1\0\0\0\0"s, 3, message), Parsed::whole);
  EXPECT_TRUE(message.compressed);
}

TEST(Grpc, WritesTheSizeOfWhatFollows) {
  std::string out = "x";
  const std::size_t begun = begin_message(out);
  out.append(259, 'a');
  end_message(begun, out);
  EXPECT_EQ(out.substr(0, 6), "x\0\0\0\1\3"s);
}

TEST(Grpc, ReadsTimeouts) {
  EXPECT_EQ(parse_timeout("1H"), 1h);
  EXPECT_EQ(parse_timeout("2M"), 2min);
  EXPECT_EQ(parse_timeout("3S"), 3s);
  EXPECT_EQ(parse_timeout("20m"), 20ms);
  EXPECT_EQ(parse_timeout("5u"), 5us);
  EXPECT_EQ(parse_timeout("99999999n"), 99999999ns);
  EXPECT_EQ(parse_timeout("99999999H"), 1'000'000h);
  for (const auto* const bad : {"", "1", "S", "123456789S", "-1S", "1s", "1 S", "1.5S"}) {
    EXPECT_FALSE(parse_timeout(bad)) << bad;
  }
}

TEST(Grpc, EscapesMessages) {
  std::string out;
  append_escaped("100% of \"caf\xc3\xa9\"\n", out);
  EXPECT_EQ(out, "100%25 of \"caf%C3%A9\"%0A");
}

TEST(Grpc, KnowsItsContentType) {
  EXPECT_TRUE(is_grpc("application/grpc"));
  EXPECT_TRUE(is_grpc("application/grpc+proto"));
  EXPECT_TRUE(is_grpc("application/grpc; charset=utf-8"));
  EXPECT_FALSE(is_grpc("application/grpc+json"));
  EXPECT_FALSE(is_grpc("application/grpc-web"));
  EXPECT_FALSE(is_grpc(""));
}

}  // namespace
}  // namespace weir::grpc::grpc_test
