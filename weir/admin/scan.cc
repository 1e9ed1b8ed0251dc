#include "weir/admin/scan.h"

#include <chrono>
#include <utility>

namespace weir::admin {
namespace {

// Limit for one step. A working store answers in a fraction of it.
constexpr Duration kStepTimeout = std::chrono::milliseconds{500};
// How long a step runs while the store answers at once: the loop must serve other connections.
constexpr std::chrono::microseconds kStepTime{500};

}  // namespace

Scan::Scan(BucketScan& bucket_scan, BucketScan::Look look, std::unique_ptr<Collector> collector, std::string cursor)
    : bucket_scan_(bucket_scan), look_(look), progress_(std::make_shared<Progress>()) {
  progress_->collector = std::move(collector);
  progress_->cursor = std::move(cursor);
}

Time Scan::wake_at() const noexcept {
  return progress_->waiting ? progress_->asked + kStepTimeout : Time::max();
}

// Visits more buckets.
void Scan::visit(Now now, const Wake& wake) {
  if (progress_->over || progress_->error) return;
  progress_->waiting = progress_->visiting = true;
  progress_->asked = now.time;
  const std::shared_ptr<Progress> progress = progress_;
  const auto filled = std::make_shared<bool>(false);
  bucket_scan_.visit(
      progress->cursor, look_, now,
      [progress, filled, now](const StoredBucket& bucket) {
        *filled = !progress->collector->take(bucket, now) || *filled;
        return !*filled;
      },
      [progress, filled, wake](const Result<BucketScan::Step>& step) {
        progress->waiting = false;
        if (!progress->visiting) wake();
        if (!step) {
          progress->error = step.error();
          return;
        }
        progress->cursor = step->cursor;
        progress->over = *filled || step->cursor.empty() || progress->collector->enough(step->millionths);
      });
  progress_->visiting = false;
}

std::optional<Outcome> Scan::advance(Now now, const Wake& wake) {
  if (progress_->waiting) {
    // A collector that can reply without the store does not wait for a store that hangs.
    if (now.time - progress_->asked < kStepTimeout) return {};
    return progress_->collector->reply_without();
  }
  using Steady = std::chrono::steady_clock;
  const Steady::time_point began = Steady::now();
  do {
    visit(now, wake);
  } while (!progress_->waiting && !progress_->over && !progress_->error && Steady::now() - began < kStepTime);
  if (progress_->waiting) return {};
  if (progress_->error) {
    const bool bad = progress_->error->fault == Fault::invalid;
    if (!bad) {
      if (auto reply = progress_->collector->reply_without()) return reply;
    }
    return bad ? refuse(400, "bad_value", progress_->error->detail) : refuse(*progress_->error);
  }
  if (!progress_->over) {
    wake();  // after other connections had their turn
    return {};
  }
  return progress_->collector->reply(progress_->cursor);
}

}  // namespace weir::admin
