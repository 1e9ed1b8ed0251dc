#include "weir/core/identifier.h"

#include <gtest/gtest.h>

namespace weir::identifier_test {
namespace {

TEST(Identifier, SaysWhatKindOfClientItIs) {
  Label label;
  label.limit = "per-ip";
  label.id = "203.0.113.9";
  label.key = "ip";
  EXPECT_EQ(identifier_of(label), "ip:203.0.113.9");
  label.key = "header:x-tenant-id";
  EXPECT_EQ(identifier_of(label), "per-ip:203.0.113.9");
  label.key = "global";
  EXPECT_EQ(identifier_of(label), "global");
  label.limit = {};
  label.key = {};
  EXPECT_EQ(identifier_of(label), "203.0.113.9") << "a bucket of the caller's own";
}

TEST(Identifier, ShowsAnApiKeyInFullToItsOwner) {
  Label label;
  label.limit = "per-apikey";
  label.id = "key-abc-123";
  label.key = "apikey";
  label.secret = true;
  EXPECT_EQ(identifier_of(label), "apikey:key-abc-123");
  EXPECT_EQ(identifier_of(label, "key…"), "apikey:key…");
}

}  // namespace
}  // namespace weir::identifier_test
