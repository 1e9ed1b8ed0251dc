#include "weir/external/answer_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "weir/base/bounds.h"

namespace weir::external {
namespace {

constexpr std::size_t kStripeAnswersMin = 256;
constexpr int kExpiredAtOnce = 2;

}  // namespace

AnswerCache::AnswerCache(HashKey key, std::size_t answers_max)
    : key_(key),
      stripes_count_(std::clamp<std::size_t>(answers_max / kStripeAnswersMin, 1, bounds::service_answer_stripes)),
      per_stripe_max_(std::max<std::size_t>(answers_max / stripes_count_, 1)),
      stripes_(std::make_unique<Stripe[]>(stripes_count_)) {}

std::uint64_t AnswerCache::hash_of(std::string_view limit, std::string_view key) const noexcept {
  return siphash13({key_.k0 ^ siphash13(key_, limit), key_.k1}, key);
}

AnswerCache::Place AnswerCache::Stripe::find(std::uint64_t hash, std::string_view limit, std::string_view key) {
  const auto found = by_hash.find(hash);
  if (found == by_hash.end() || found->second->key != key || found->second->limit != limit) return by_age.end();
  return found->second;
}

void AnswerCache::Stripe::remove(Place place) {
  by_hash.erase(place->hash);
  by_age.erase(place);
}

AnswerCache::Found AnswerCache::find(std::string_view limit, std::string_view key, std::string_view service,
                                     Time now) const {
  const std::uint64_t hash = hash_of(limit, key);
  Stripe& stripe = stripe_of(hash);
  const std::lock_guard lock(stripe.mutex);
  const Place place = stripe.find(hash, limit, key);
  if (place == stripe.by_age.end()) return {};
  const KeptAnswer& answer = *place->answer;
  if (now >= answer.stale_until || answer.service != service) return {};
  return {place->answer, now < answer.fresh_until};
}

std::shared_ptr<const KeptAnswer> AnswerCache::put(std::string_view limit, std::string_view key, KeptAnswer answer,
                                                   Time now) {
  const std::uint64_t hash = hash_of(limit, key);
  Stripe& stripe = stripe_of(hash);
  const std::lock_guard lock(stripe.mutex);
  const Place before = stripe.find(hash, limit, key);
  const bool same = before != stripe.by_age.end() && before->answer->service == answer.service &&
                    before->answer->numbers == answer.numbers;
  answer.since = same ? before->answer->since : now;
  auto kept = std::make_shared<const KeptAnswer>(std::move(answer));
  if (kept->stale_until <= now) return kept;
  // Two names with the same hash replace each other. Clients cannot cause that: the hash is keyed.
  if (const auto other = stripe.by_hash.find(hash); other != stripe.by_hash.end()) stripe.remove(other->second);
  stripe.by_age.push_front({hash, std::string(limit), std::string(key), kept});
  stripe.by_hash.emplace(hash, stripe.by_age.begin());
  for (int i = 0; i < kExpiredAtOnce; ++i) {
    const Place last = std::prev(stripe.by_age.end());
    if (stripe.by_age.size() <= per_stripe_max_ && now < last->answer->stale_until) break;
    stripe.remove(last);
  }
  return kept;
}

bool AnswerCache::forget(std::string_view limit, std::string_view key) {
  const std::uint64_t hash = hash_of(limit, key);
  Stripe& stripe = stripe_of(hash);
  const std::lock_guard lock(stripe.mutex);
  const Place place = stripe.find(hash, limit, key);
  if (place == stripe.by_age.end()) return false;
  stripe.remove(place);
  return true;
}

void AnswerCache::clear() {
  for (std::size_t i = 0; i < stripes_count_; ++i) {
    const std::lock_guard lock(stripes_[i].mutex);
    stripes_[i].by_hash.clear();
    stripes_[i].by_age.clear();
  }
}

std::size_t AnswerCache::size() const {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < stripes_count_; ++i) {
    const std::lock_guard lock(stripes_[i].mutex);
    sum += stripes_[i].by_age.size();
  }
  return sum;
}

}  // namespace weir::external
