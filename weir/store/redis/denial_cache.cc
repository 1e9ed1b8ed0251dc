#include "weir/store/redis/denial_cache.h"

#include <algorithm>
#include <utility>

namespace weir::redis {
namespace {

constexpr std::size_t kStripesMax = 64;
constexpr std::size_t kStripeEntriesMin = 1024;

}  // namespace

DenialCache::DenialCache(HashKey key, std::size_t entries_max)
    : key_(key),
      stripes_(std::clamp<std::size_t>(entries_max / kStripeEntriesMin, 1, kStripesMax)),
      stripe_entries_max_(entries_max / stripes_.size()) {}

DenialCache::Found DenialCache::find(std::string_view bucket, std::string_view question, Time now, Denial& denial) {
  if (size() == 0) return Found::nothing;
  const std::uint64_t hash = siphash13(key_, bucket);
  Stripe& stripe = stripe_of(hash);
  const std::lock_guard lock(stripe.mutex);
  const auto found = stripe.entries.find(hash);
  if (found == stripe.entries.end()) return Found::nothing;
  Entry& entry = found->second;
  if (entry.denies_until <= now || entry.question != siphash13(key_, question)) return Found::nothing;
  if (entry.until <= now) {
    if (std::exchange(entry.asked_again, true)) return Found::nothing;
    entry.until = std::min(entry.denies_until, now + kAskAgainMax);
    return Found::ask_again;
  }
  denial.decisions.assign(entry.decisions.begin(), entry.decisions.end());
  denial.sent = entry.sent;
  return Found::denied;
}

void DenialCache::remember(std::string_view bucket, std::string_view question, std::span<const Decision> decisions,
                           Duration retry_after, Time sent, Time now, std::uint64_t serial) {
  const Time until = sent + std::min(retry_after, kDenialLifeMax);
  if (until <= now || stripe_entries_max_ == 0) return;
  const std::uint64_t hash = siphash13(key_, bucket);
  Stripe& stripe = stripe_of(hash);
  const std::lock_guard lock(stripe.mutex);
  if (is_void(hash, serial)) return;
  drop_old(stripe, now);
  const auto [at, is_new] = stripe.entries.try_emplace(hash);
  if (is_new) size_.fetch_add(1, std::memory_order_relaxed);
  Entry& entry = at->second;
  entry.question = siphash13(key_, question);
  entry.sent = sent;
  entry.until = until;
  entry.denies_until = sent + std::min(retry_after, kDenialLifeMax + kAskAgainMax);
  entry.asked_again = false;
  entry.serial = stripe.next_serial++;
  entry.decisions.assign(decisions.begin(), decisions.end());
  stripe.ages.push_back({now, hash, entry.serial});
  drop_old(stripe, now);
}

bool DenialCache::is_void(std::uint64_t bucket, std::uint64_t since) const {
  if (voided_.serial() == since) return false;
  bool found = false;
  return !voided_.visit_since(since, [&](std::uint64_t other) { found |= other == bucket; }) || found;
}

void DenialCache::forget(std::string_view bucket) {
  const std::uint64_t hash = siphash13(key_, bucket);
  Stripe& stripe = stripe_of(hash);
  // Both under the lock, so that a later remember() sees that its denial is void.
  const std::lock_guard lock(stripe.mutex);
  voided_.add(hash);
  size_.fetch_sub(stripe.entries.erase(hash), std::memory_order_relaxed);
}

void DenialCache::forget_all() {
  voided_.add_all();
  for (Stripe& stripe : stripes_) {
    const std::lock_guard lock(stripe.mutex);
    size_.fetch_sub(stripe.entries.size(), std::memory_order_relaxed);
    stripe.entries.clear();
    stripe.ages.clear();
  }
}

void DenialCache::drop(std::string_view bucket, std::string_view but) noexcept {
  if (size() == 0) return;
  const std::uint64_t hash = siphash13(key_, bucket);
  Stripe& stripe = stripe_of(hash);
  const std::lock_guard lock(stripe.mutex);
  const auto found = stripe.entries.find(hash);
  if (found == stripe.entries.end()) return;
  if (!but.empty() && found->second.question == siphash13(key_, but)) return;
  stripe.entries.erase(found);
  size_.fetch_sub(1, std::memory_order_relaxed);
}

// Drops entries past their second plus kAskAgainMax, and the oldest ones if there are too many. If an age's entry was
// forgotten or replaced in the meantime, only the age is removed.
void DenialCache::drop_old(Stripe& stripe, Time now) {
  std::deque<Age>& ages = stripe.ages;
  while (!ages.empty() &&
         (now - ages.front().born >= kDenialLifeMax + kAskAgainMax || ages.size() > stripe_entries_max_)) {
    const auto found = stripe.entries.find(ages.front().bucket);
    if (found != stripe.entries.end() && found->second.serial == ages.front().serial) {
      stripe.entries.erase(found);
      size_.fetch_sub(1, std::memory_order_relaxed);
    }
    ages.pop_front();
  }
}

}  // namespace weir::redis
