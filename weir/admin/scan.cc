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

// A remote store is polled until it has answered.
Duration Scan::pause() const noexcept {
  return progress_->waiting ? std::chrono::milliseconds{1} : Duration::zero();
}

// Visits more buckets.
void Scan::visit(Now now) {
  if (progress_->over || progress_->error) return;
  progress_->waiting = true;
  progress_->asked = now.time;
  const std::shared_ptr<Progress> progress = progress_;
  const auto filled = std::make_shared<bool>(false);
  bucket_scan_.visit(
      progress->cursor, look_, now,
      [progress, filled, now](const StoredBucket& bucket) {
        *filled = !progress->collector->take(bucket, now) || *filled;
        return !*filled;
      },
      [progress, filled](const Result<BucketScan::Step>& step) {
        progress->waiting = false;
        if (!step) {
          progress->error = step.error();
          return;
        }
        progress->cursor = step->cursor;
        progress->over = *filled || step->cursor.empty() || progress->collector->enough(step->millionths);
      });
}

std::optional<Outcome> Scan::step(Now now) {
  if (progress_->waiting) {
    // A collector that can reply without the store does not wait for a store that hangs.
    if (now.time - progress_->asked < kStepTimeout) return {};
    return progress_->collector->reply_without();
  }
  using Steady = std::chrono::steady_clock;
  const Steady::time_point began = Steady::now();
  do {
    visit(now);
  } while (!progress_->waiting && !progress_->over && !progress_->error && Steady::now() - began < kStepTime);
  if (progress_->waiting) return {};
  if (progress_->error) {
    const bool bad = progress_->error->fault == Fault::invalid;
    if (!bad) {
      if (auto reply = progress_->collector->reply_without()) return reply;
    }
    return bad ? refuse(400, "bad_value", progress_->error->detail) : refuse(*progress_->error);
  }
  if (!progress_->over) return {};
  return progress_->collector->reply(progress_->cursor);
}

}  // namespace weir::admin
