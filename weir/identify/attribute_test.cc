#include "weir/identify/attribute.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

#include "weir/base/bounds.h"
#include "weir/identify/digest.h"

namespace weir::attribute_test {
namespace {

std::string joined(const std::vector<std::string>& values) {
  const std::vector<std::string_view> views(values.begin(), values.end());
  return join_parts(views);
}

TEST(JoinParts, JoinsWithColons) {
  EXPECT_EQ(joined({"acme-corp", "api"}), "acme-corp:api");
  EXPECT_EQ(joined({"acme-corp"}), "acme-corp");
  EXPECT_EQ(joined({""}), "");
  EXPECT_EQ(joined({"", "", ""}), "::");
}

TEST(JoinParts, EscapesColonsAndPercentSigns) {
  EXPECT_EQ(joined({"a:b", "50%"}), "a%3Ab:50%25");
  EXPECT_EQ(joined({"%3A"}), "%253A");
}

TEST(JoinParts, NeverMergesTwoKeys) {
  EXPECT_NE(joined({"a:b", "c"}), joined({"a", "b:c"}));
  EXPECT_NE(joined({"a:b"}), joined({"a", "b"}));
  EXPECT_NE(joined({"a%3Ab"}), joined({"a:b"}));
  EXPECT_NE(joined({"a", ""}), joined({"a"}));
  EXPECT_NE(joined({":"}), joined({"", ""}));

  // Short parts of few characters, so that different lists collide soon if they can at all.
  const auto part = rc::gen::container<std::string>(rc::gen::element(':', '%', '2', '5', '3', 'A', 'a'));
  const auto list = rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(part));
  EXPECT_TRUE(rc::check([&] {
    const auto a = *list;
    const auto b = *list;
    RC_ASSERT((joined(a) == joined(b)) == (a == b));
  }));
}

TEST(JoinParts, CanBeSplitAgain) {
  const auto list = rc::gen::nonEmpty(rc::gen::arbitrary<std::vector<std::string>>());
  EXPECT_TRUE(rc::check([&] {
    const auto parts = *list;
    std::vector<std::string> back(1);
    const std::string text = joined(parts);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == ':') {
        back.emplace_back();
      } else if (text[i] == '%') {
        back.back() += text.substr(i, 3) == "%3A" ? ':' : '%';
        i += 2;
      } else {
        back.back() += text[i];
      }
    }
    RC_ASSERT(back == parts);
  }));
}

TEST(JoinParts, ReplacesAValueOver256BytesByItsHash) {
  const std::string edge(bounds::id_bytes_max, 'x');
  EXPECT_EQ(joined({"a", edge}), "a:" + edge);
  const std::string past(bounds::id_bytes_max + 1, 'x');
  EXPECT_EQ(joined({"a", past}), "a:%sha256-" + sha256_hex(past));
  EXPECT_NE(joined({past}), joined({past + "x"}));
  const std::string colons(bounds::id_bytes_max, ':');
  EXPECT_EQ(joined({colons}).size(), 3 * bounds::id_bytes_max) << "the limit is on the value, not on its escaped form";
}

TEST(JoinParts, ClientCannotSendTheHashOfALongValueToShareItsBucket) {
  const std::string past(bounds::id_bytes_max + 1, 'x');
  EXPECT_NE(joined({sha256_hex(past)}), joined({past}));
  EXPECT_NE(joined({"%sha256-" + sha256_hex(past)}), joined({past}));
}

}  // namespace
}  // namespace weir::attribute_test
