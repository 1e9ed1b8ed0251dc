#include "weir/store/redis/denial_cache.h"

#include <algorithm>

namespace weir::redis {

const DenialCache::Denial* DenialCache::find(std::string_view bucket, std::string_view question, Time now) {
  if (entries_.empty()) return nullptr;
  const auto found = entries_.find(siphash13(key_, bucket));
  if (found == entries_.end()) return nullptr;
  const Entry& entry = found->second;
  if (entry.until <= now || entry.question != siphash13(key_, question)) return nullptr;
  found_ = {entry.decisions, entry.sent};
  return &found_;
}

void DenialCache::remember(std::string_view bucket, std::string_view question, std::span<const Decision> decisions,
                           Duration retry_after, Time sent, Time now) {
  const Time until = sent + std::min(retry_after, kDenialLifeMax);
  if (until <= now || entries_max_ == 0) return;
  drop_old(now);
  const std::uint64_t hash = siphash13(key_, bucket);
  Entry& entry = entries_[hash];
  entry.question = siphash13(key_, question);
  entry.sent = sent;
  entry.until = until;
  entry.serial = next_serial_++;
  entry.decisions.assign(decisions.begin(), decisions.end());
  ages_.push_back({now, hash, entry.serial});
  drop_old(now);
}

// Nothing lives longer than kDenialLifeMax. When there are too many, the oldest goes. An age whose entry was forgotten
// or remembered anew in between counts for nothing; it goes as it came.
void DenialCache::drop_old(Time now) {
  while (!ages_.empty() && (now - ages_.front().born >= kDenialLifeMax || ages_.size() > entries_max_)) {
    const auto found = entries_.find(ages_.front().bucket);
    if (found != entries_.end() && found->second.serial == ages_.front().serial) entries_.erase(found);
    ages_.pop_front();
  }
}

}  // namespace weir::redis
