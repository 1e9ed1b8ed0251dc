#include "weir/config/reference.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace weir::config::reference_test {
namespace {

// `weir config reference > docs/configuration-reference.md` brings the committed page up to date.
TEST(Reference, CommittedPageIsTheGeneratedOne) {
  std::ifstream file(WEIR_SOURCE_DIR "/docs/configuration-reference.md", std::ios::binary);
  std::ostringstream committed;
  committed << file.rdbuf();
  EXPECT_TRUE(committed.str() == reference())
      << "docs/configuration-reference.md is not what `weir config reference` prints";
}

TEST(Reference, RowSaysTypeDefaultAndWhenAChangeApplies) {
  const std::string page = reference();
  for (const char* row : {
           "| `threads` | whole number, 1 to 1024, or `auto` | `auto` | restart | ",
           "| `password` | secret |  | reload, new connections | ",
           "| `level` | `trace`, `debug`, `info`, `warn`, `error`, `off` | `info` | reload | ",
           "| `address` | address | required | restart | ",
           "| [`tls`](#redistls) | section |  | restart | ",
       }) {
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(Reference, SharedSectionIsListedOnceUnderItsShortestPath) {
  const std::string page = reference();
  EXPECT_NE(page.find("\n## redis\n\nAlso `cache_redis`.\n"), std::string::npos);
  EXPECT_NE(page.find("\n## external\n\nAlso `limits.NAME.external`.\n"), std::string::npos);
  EXPECT_EQ(page.find("\n## cache_redis\n"), std::string::npos);
}

}  // namespace
}  // namespace weir::config::reference_test
