// Scans the buckets of the memory table in hash order, so that a list can stop anywhere and continue from there even if
// the table was rebuilt in between.
#pragma once

#include "weir/store/bucket_scan.h"
#include "weir/store/memory/table.h"

namespace weir {

// Calls Done before each function returns.
class MemoryBucketScan final : public BucketScan {
 public:
  // Buckets per step, so that the event loop can do other work between steps. A step visits a few more if buckets are
  // added meanwhile, and fewer if they are spread over more than a thousand groups.
  static constexpr std::size_t kBucketsPerStep = 256;

  // The table must outlive the scan.
  explicit MemoryBucketScan(Table& table) noexcept : table_(table) {}

  void visit(std::string_view cursor, Look look, Now now, const Visit& visit, const Done& done) override;
  void forget(std::string_view cursor, Now now, const Done& done) override;

 private:
  Table& table_;
};

}  // namespace weir
