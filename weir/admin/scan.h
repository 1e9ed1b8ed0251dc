// Work that goes through all buckets, a step at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "weir/admin/work.h"
#include "weir/store/bucket_scan.h"

namespace weir::admin {

// What is made of the buckets.
class Collector {
 public:
  virtual ~Collector() = default;
  // False: that is enough.
  virtual bool take(const StoredBucket& bucket, Now now) = 0;
  // Between two steps: true if there is no need to go on, with that much of everything seen.
  virtual bool enough(std::uint32_t millionths) {
    (void)millionths;
    return false;
  }
  // `cursor` is where a list would go on; empty: nothing is left.
  virtual Outcome reply(const std::string& cursor) = 0;
  // The store cannot be asked. What is said instead of that, if anything.
  virtual std::optional<Reply> reply_without() { return {}; }
};

class Scan final : public Work {
 public:
  // The bucket_scan outlives it.
  Scan(BucketScan& bucket_scan, BucketScan::Look look, std::unique_ptr<Collector> collector, std::string cursor);
  std::optional<Outcome> step(Now now) override;
  Duration pause() const noexcept override;

 private:
  // What a late answer of the store may still touch when the connection is gone.
  struct Progress {
    std::unique_ptr<Collector> collector;
    std::string cursor;
    std::optional<Error> error;
    bool waiting = false;
    Time asked{};  // when it began to wait
    bool over = false;
  };

  void visit(Now now);

  BucketScan& bucket_scan_;
  BucketScan::Look look_;
  std::shared_ptr<Progress> progress_;
};

}  // namespace weir::admin
