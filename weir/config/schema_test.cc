#include "weir/config/schema.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace weir::config::schema_test {
namespace {

// `weir config schema > schema/weir.schema.json` brings the committed file up to date.
TEST(Schema, CommittedFileIsTheGeneratedOne) {
  std::ifstream file(WEIR_SOURCE_DIR "/schema/weir.schema.json", std::ios::binary);
  std::ostringstream committed;
  committed << file.rdbuf();
  EXPECT_TRUE(committed.str() == schema()) << "schema/weir.schema.json is not what `weir config schema` prints";
}

}  // namespace
}  // namespace weir::config::schema_test
