#include "weir/known/known.h"

#include <utility>

#include "weir/base/assert.h"
#include "weir/identify/handle.h"

namespace weir {

Result<Limit> adjusted(const Adjustment& adjustment, const Limit* under) {
  if (under == nullptr && (!adjustment.count || !adjustment.period)) {
    return Error{Fault::invalid, "an adjustment needs count and period, or rate, because the limit has no numbers"};
  }
  const Count count = adjustment.count ? *adjustment.count : under->count();
  const Duration period = adjustment.period ? *adjustment.period : under->period();
  const Count burst = adjustment.burst ? *adjustment.burst : under != nullptr ? under->burst() : count;
  return Limit::make(count, period, burst);
}

Adjustments::Adjustments(std::vector<Adjustment> all)
    : all_(std::move(all)), index_(all_.size(), BucketNameHash{random_hash_key()}) {
  for (std::uint32_t i = 0; i < all_.size(); ++i) {
    const bool fresh = index_.emplace(BucketName{all_[i].limit, all_[i].id}, i).second;
    WEIR_ASSERT(fresh);
    has_handles_ |= is_full_handle(all_[i].id);
  }
}

const Adjustment* Adjustments::find(const BucketName& name) const noexcept {
  if (index_.empty()) return nullptr;
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &all_[found->second];
}

const Adjustment* Adjustments::find(const BucketName& name, Wall now) const noexcept {
  const Adjustment* const found = find(name);
  return found != nullptr && found->live(now) ? found : nullptr;
}

}  // namespace weir
