// The buckets of the memory table in the order of their hashes, so that a list may stop anywhere and go on there,
// whatever the table has been rebuilt into in between.
#pragma once

#include "weir/store/bucket_scan.h"
#include "weir/store/memory/table.h"

namespace weir {

// Answers before each call returns.
class MemoryBucketScan final : public BucketScan {
 public:
  // Of one step, a few more if some come meanwhile, or a thousand groups with fewer: a loop goes on in between.
  static constexpr std::size_t kBucketsPerStep = 256;

  // The table must outlive the bucket_scan.
  explicit MemoryBucketScan(Table& table) noexcept : table_(table) {}

  void visit(std::string_view cursor, Look look, Now now, const Visit& visit, const Done& done) override;
  void forget(std::string_view cursor, Now now, const Done& done) override;

 private:
  Table& table_;
};

}  // namespace weir
