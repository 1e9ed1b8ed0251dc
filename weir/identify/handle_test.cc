#include "weir/identify/handle.h"

#include <gtest/gtest.h>

#include "weir/identify/digest.h"

namespace weir::handle_test {
namespace {

constexpr std::string_view kKey = "sk_live_4242424242";

TEST(Handle, ShowsFourCharactersAndTwelveDigitsOfTheKeyedHash) {
  const std::string hash = hashed_id("secret", kKey);
  EXPECT_EQ(handle_of("secret", kKey), "sk_l…#" + hash.substr(0, 12));
  EXPECT_EQ(full_handle_of("secret", kKey), "sk_l…#" + hash);
  EXPECT_NE(handle_of("other", kKey), handle_of("secret", kKey));
}

TEST(Handle, OfAShortKeyIsTheHashAlone) {
  EXPECT_EQ(handle_of("secret", "elevenbytes"), "…#" + hashed_id("secret", "elevenbytes").substr(0, 12));
  EXPECT_EQ(handle_of("secret", "twelve-bytes").substr(0, 4), "twel");
}

TEST(Handle, DoesNotSplitACharacter) {
  EXPECT_TRUE(handle_of("secret", "abcé-and-more").starts_with("abc…#"));
  EXPECT_TRUE(handle_of("secret", "abé-and-more").starts_with("abé…#"));
  EXPECT_TRUE(handle_of("secret", std::string(12, '\x80')).starts_with("…#"));
}

TEST(Handle, IsDistinguishedFromAKeyByItsForm) {
  EXPECT_TRUE(is_handle(handle_of("secret", kKey)));
  EXPECT_TRUE(is_handle("…#0123"));
  EXPECT_TRUE(is_full_handle(full_handle_of("secret", kKey)));
  EXPECT_FALSE(is_full_handle(handle_of("secret", kKey)));
  for (const std::string_view text : {"", "sk_live_4242424242", "#0123456789ab", "sk_l…0123456789ab", "sk_l…#012",
                                      "sk_l…#0123456789aB", "sk_li…#0123456789ab", "sk_l…#0123456789ab:api"}) {
    EXPECT_FALSE(is_handle(text)) << text;
  }
  EXPECT_FALSE(is_handle("…#" + std::string(65, '0')));
  EXPECT_TRUE(is_handle("…#" + std::string(64, '0')));
}

TEST(Handle, KeyThatLooksLikeAHandleHasItsOwnHandle) {
  const std::string odd = full_handle_of("secret", kKey).substr(4);
  EXPECT_TRUE(is_handle(handle_of("secret", odd)));
  EXPECT_NE(handle_of("secret", odd).substr(4), odd.substr(0, 16));
}

TEST(Handle, IsShownInsteadOfTheKey) {
  Label label;
  label.limit = "per-apikey";
  label.id = kKey;
  label.key = label.limiter_type = "apikey";
  label.secret = true;
  const std::string handle = handle_of("secret", kKey);
  EXPECT_EQ(shown_id(label, "secret"), handle);
  EXPECT_EQ(shown_identifier(label, "secret"), "apikey:" + handle);
  const std::string full = full_handle_of("secret", kKey);
  label.id = full;
  EXPECT_EQ(shown_id(label, "secret"), handle) << "for an entry that stores the hash";
  label.secret = false;
  label.id = "10.0.0.1";
  EXPECT_EQ(shown_id(label, "secret"), "10.0.0.1");
}

TEST(Handle, KeepsOtherPartsOfAnIdReadable) {
  Label label;
  label.limit = "per-key-and-path";
  label.limiter_type = "apikey+path";
  label.secret = true;
  label.id = "sk_live_4242424242:api";
  EXPECT_EQ(shown_id(label, "secret"), handle_of("secret", kKey) + ":api");
  EXPECT_EQ(shown_identifier(label, "secret"), "per-key-and-path:" + handle_of("secret", kKey) + ":api");
  label.limiter_type = "ip+apikey";
  label.id = "2001:db8::/64:k1";
  EXPECT_EQ(shown_id(label, "secret"), "…#" + hashed_id("secret", label.id).substr(0, 12));
}

}  // namespace
}  // namespace weir::handle_test
