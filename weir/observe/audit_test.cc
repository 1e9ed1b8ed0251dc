#include "weir/observe/audit.h"

#include <gtest/gtest.h>

namespace weir::audit_test {
namespace {

TEST(Audit, IsOneLineThatAProgramCanRead) {
  const AuditEntry entry{Wall{std::chrono::seconds{1}}, "127.0.0.1", "adjust", "per-ip:\n\"x\"", {}, R"({"burst":5})"};
  EXPECT_EQ(audit_line(entry), R"(audit {"time":"1970-01-01T00:00:01Z","who":"127.0.0.1","action":"adjust",)"
                               R"("target":"per-ip:\u000a\"x\"","before":null,"after":{"burst":5}})");
}

TEST(Audit, HasFieldsForJsonLogs) {
  const AuditEntry entry{Wall{}, "127.0.0.1", "reset", "all", R"({"buckets":3})", {}};
  EXPECT_EQ(audit_fields(entry),
            R"("who":"127.0.0.1","action":"reset","target":"all","before":{"buckets":3},"after":null)");
}

}  // namespace
}  // namespace weir::audit_test
