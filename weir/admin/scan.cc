#include "weir/admin/scan.h"

#include <chrono>
#include <utility>

namespace weir::admin {
namespace {

// For one step. A store that answers does so in a fraction.
constexpr Duration kPatience = std::chrono::milliseconds{500};
// How long a step goes on while the store answers at once: the loop has others to serve.
constexpr std::chrono::microseconds kMoment{500};

}  // namespace

Scan::Scan(BucketScan& bucket_scan, BucketScan::Look look, std::unique_ptr<Collector> collector, std::string cursor)
    : bucket_scan_(bucket_scan), look_(look), progress_(std::make_shared<Progress>()) {
  progress_->collector = std::move(collector);
  progress_->cursor = std::move(cursor);
}

// A store elsewhere is looked at again and again until it has answered.
Duration Scan::pause() const noexcept {
  return progress_->waiting ? std::chrono::milliseconds{1} : Duration::zero();
}

// Some buckets more.
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
    // Whoever can do without does not wait until a store that hangs is given up.
    if (now.time - progress_->asked < kPatience) return {};
    return progress_->collector->reply_without();
  }
  using Steady = std::chrono::steady_clock;
  const Steady::time_point began = Steady::now();
  do {
    visit(now);
  } while (!progress_->waiting && !progress_->over && !progress_->error && Steady::now() - began < kMoment);
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
