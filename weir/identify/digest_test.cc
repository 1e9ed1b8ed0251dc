#include "weir/identify/digest.h"

#include <gtest/gtest.h>

namespace weir::digest_test {
namespace {

TEST(Digest, MatchesPublishedSha256Examples) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(std::string_view()), sha256_hex(""));
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// RFC 4231, test cases 1, 2 and 6.
TEST(Digest, MatchesTheVectorsOfRfc4231) {
  EXPECT_EQ(hashed_id(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hashed_id("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hashed_id(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Digest, HashesUnderAnEmptyKeyTheSameWayEveryTime) {
  const std::string first = hashed_id("", "joe@example.com");
  EXPECT_EQ(hashed_id("other", "joe@example.com").size(), kDigestHexBytes);
  EXPECT_EQ(hashed_id(std::string_view(), "joe@example.com"), first) << "not with the key of the previous call";
  EXPECT_NE(hashed_id("other", "joe@example.com"), first);
}

}  // namespace
}  // namespace weir::digest_test
