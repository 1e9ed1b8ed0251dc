#include "weir/simulate/log_order.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace weir::simulate {
namespace {

constexpr std::int64_t kSlotsMax = 1 << 16;
constexpr std::size_t kSpareMax = 256;

}  // namespace

LogOrder::LogOrder(Duration window, Spread spread, Release release, std::size_t pending_bytes_max)
    : window_(window), spread_(spread), release_(std::move(release)), pending_bytes_max_(pending_bytes_max) {
  while ((window_.count() >> shift_) + 2 > kSlotsMax) ++shift_;
  const auto slots = std::bit_ceil(static_cast<std::uint64_t>((window_.count() >> shift_) + 2));
  mask_ = slots - 1;
  ring_.resize(slots);
}

bool LogOrder::add(Wall time, Duration resolution, std::string_view packed) {
  resolution_ = std::min(resolution_, resolution);
  const std::int64_t slot = slot_of(time);
  if (next_ < 0) {
    next_ = std::max<std::int64_t>(slot_of(time - std::min(window_, time.time_since_epoch())), 0);
    newest_ = time;
  }
  if (slot < next_) return false;
  if (time > newest_) {
    newest_ = time;
    release_before(slot_of(newest_ - std::min(window_, newest_.time_since_epoch())));
  }
  std::unique_ptr<Slot>& waiting = at(slot);
  if (waiting == nullptr) {
    if (spare_.empty()) spare_.push_back(std::make_unique<Slot>());
    waiting = std::move(spare_.back());
    spare_.pop_back();
  }
  waiting->lines.push_back(
      {time, static_cast<std::uint32_t>(waiting->bytes.size()), static_cast<std::uint32_t>(packed.size())});
  waiting->bytes += packed;
  pending_bytes_ += packed.size() + sizeof(Waiting);
  ++pending_lines_;
  while (pending_bytes_ > pending_bytes_max_) {
    ++hurried_;
    release_before(next_ + 1);
  }
  return true;
}

void LogOrder::finish() {
  if (next_ >= 0) release_before(slot_of(newest_) + 1);
}

void LogOrder::release_before(std::int64_t slot) {
  for (; next_ < slot; ++next_) {
    if (pending_lines_ == 0) {
      next_ = slot;
      return;
    }
    std::unique_ptr<Slot> left = std::move(at(next_));
    if (left == nullptr) continue;
    pending_bytes_ -= left->bytes.size() + left->lines.size() * sizeof(Waiting);
    pending_lines_ -= left->lines.size();
    release(*left);
    left->bytes.clear();
    left->lines.clear();
    if (spare_.size() < kSpareMax) spare_.push_back(std::move(left));
  }
}

void LogOrder::release(Slot& slot) {
  std::vector<Waiting>& lines = slot.lines;
  // Offsets grow with arrival, so lines of the same time keep their order.
  const auto earlier = [](const Waiting& a, const Waiting& b) {
    return a.time != b.time ? a.time < b.time : a.offset < b.offset;
  };
  if (!std::ranges::is_sorted(lines, {}, &Waiting::time)) std::ranges::sort(lines, earlier);
  for (std::size_t i = 0; i < lines.size();) {
    std::size_t end = i + 1;
    while (end < lines.size() && lines[end].time == lines[i].time) ++end;
    const auto equal = static_cast<std::int64_t>(end - i);
    for (std::int64_t n = 0; i < end; ++i, ++n) {
      const Duration shift = spread_ == Spread::even ? Duration{resolution_.count() * n / equal} : Duration::zero();
      release_(lines[i].time + shift, std::string_view(slot.bytes).substr(lines[i].offset, lines[i].size));
    }
  }
}

}  // namespace weir::simulate
