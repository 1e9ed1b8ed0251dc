// Work that visits all buckets, one step at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "weir/admin/work.h"
#include "weir/store/bucket_scan.h"

namespace weir::admin {

// Receives the buckets of a scan and makes the reply.
class Collector {
 public:
  virtual ~Collector() = default;
  // Returns false to end the scan.
  virtual bool take(const StoredBucket& bucket, Now now) = 0;
  // Called between two steps with the share of the store seen so far. Returns true to end the scan.
  virtual bool enough(std::uint32_t millionths) {
    (void)millionths;
    return false;
  }
  // `cursor` is where the next page starts; empty if nothing is left.
  virtual Outcome reply(const std::string& cursor) = 0;
  // Called if the store is unavailable. Returns the reply to send instead of the error, if any.
  virtual std::optional<Reply> reply_without() { return {}; }
};

class Scan final : public Work {
 public:
  // `bucket_scan` must outlive it.
  Scan(BucketScan& bucket_scan, BucketScan::Look look, std::unique_ptr<Collector> collector, std::string cursor);
  std::optional<Outcome> advance(Now now, const Wake& wake) override;
  Time wake_at() const noexcept override;

 private:
  // Shared with the store's callback, which may run after the connection has ended.
  struct Progress {
    std::unique_ptr<Collector> collector;
    std::string cursor;
    std::optional<Error> error;
    bool waiting = false;
    bool visiting = false;  // inside visit(): the answer needs no wake
    Time asked{};           // when the wait started
    bool over = false;
  };

  void visit(Now now, const Wake& wake);

  BucketScan& bucket_scan_;
  BucketScan::Look look_;
  std::shared_ptr<Progress> progress_;
};

}  // namespace weir::admin
