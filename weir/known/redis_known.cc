#include "weir/known/redis_known.h"

#include <algorithm>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/clock.h"
#include "weir/base/text.h"

namespace weir {
namespace {

using redis::SharedHash;

constexpr Duration kPollEvery = std::chrono::milliseconds{500};
// How often everything is read even if unchanged, so that expired fields are removed.
constexpr Duration kFullReadEvery = std::chrono::seconds{60};
// How long sharing must work before the recovery is logged: a master that fails and returns is one incident.
constexpr Duration kHealthyFor = std::chrono::seconds{1};
// Fields that one script call restores or removes.
constexpr std::size_t kFieldsAtOnce = 500;

void ignore(const Result<std::size_t>&) {}

}  // namespace

RedisKnown::RedisKnown(Loop& loop, redis::Commands& commands, const std::string& key_prefix, KnownKeeper& keeper,
                       Log log)
    : loop_(loop),
      commands_(commands),
      keeper_(keeper),
      log_(std::move(log)),
      parts_{SharedPart(Part::adjustments, SharedHash(commands, key_prefix + "adjust")),
             SharedPart(Part::entries, SharedHash(commands, key_prefix + "access"))} {
  loop_.post([this] { poll(); });
}

void RedisKnown::put(Part part, Texts texts, Done done) {
  std::vector<std::string> words;
  for (auto& [name, text] : texts) {
    words.push_back(name);
    words.push_back(std::move(text));
  }
  change(part, SharedHash::Change::put, std::move(words), std::move(done));
}

void RedisKnown::remove(Part part, std::vector<std::string> names, Done done) {
  change(part, SharedHash::Change::remove, std::move(names), std::move(done));
}

void RedisKnown::change(Part part, SharedHash::Change change, std::vector<std::string> words, Done done) {
  loop_.post([this, part, change, words = std::move(words), done = std::move(done)]() mutable {
    parts_[static_cast<std::size_t>(part)].hash.change(
        change, std::move(words), [done = std::move(done)](const Result<std::size_t>& count) {
          if (count) return done(count);
          const bool unknown = count.error().fault == Fault::timeout;
          done(Error{count.error().fault,
                     count.error().detail + (unknown ? "; check whether the change was made, and repeat it if not"
                                                     : "; nothing was changed")});
        });
  });
}

bool RedisKnown::wait(Duration at_most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, at_most, [&] { return complete_ || refused_; });
}

void RedisKnown::poll() {
  const Time now = loop_.now().time;
  if (now >= full_read_at_) {
    full_read_at_ = now + kFullReadEvery;
    for (SharedPart& shared : parts_) shared.hash.invalidate();
  }
  for (SharedPart& shared : parts_) poll_part(shared);
  const bool answered = std::ranges::all_of(parts_, [](const auto& shared) { return shared.read || shared.failing; });
  loop_.at(now + (answered ? kPollEvery : kPollEvery / 20), [this] { poll(); });
}

void RedisKnown::poll_part(SharedPart& shared) {
  if (shared.busy || !commands_.is_up()) return;
  shared.busy = true;
  if (!shared.missing.empty()) return restore_missing(shared);
  shared.hash.read([this, &shared](const Result<SharedHash::ReadResult>& result) {
    shared.busy = false;
    take_result(shared, result);
  });
}

void RedisKnown::take_result(SharedPart& shared, const Result<SharedHash::ReadResult>& result) {
  if (!result) return log_failure(shared, result.error());
  shared.failing = false;
  log_recovery();
  if (!result->changed) return;
  if (result->lost) return restore(shared, result->texts);
  apply_shared(shared, result->texts);
}

// Restores the fields that Redis lost. Other servers may do the same; the first one wins.
void RedisKnown::restore(SharedPart& shared, Texts texts) {
  std::size_t missing = 0;
  for (auto& [name, text] : keeper_.texts(shared.part, BootClock::wall())) {
    if (!texts.emplace(name, text).second) continue;
    if (missing++ % kFieldsAtOnce == 0) shared.missing.emplace_back();
    shared.missing.back().push_back(name);
    shared.missing.back().push_back(text);
  }
  if (missing > 0) {
    log_(LogLevel::warn, "Redis lost " + std::to_string(missing) +
                             (shared.part == Part::adjustments ? " adjustments" : " access entries and blocks") +
                             "; restoring them");
  }
  apply_shared(shared, texts);
  if (shared.missing.empty()) return;
  shared.busy = true;
  restore_missing(shared);
}

void RedisKnown::restore_missing(SharedPart& shared) {
  shared.hash.change(SharedHash::Change::fill, shared.missing.back(),
                     [this, &shared](const Result<std::size_t>& count) {
                       shared.busy = false;
                       if (!count) return log_failure(shared, count.error());
                       shared.missing.pop_back();
                       poll_part(shared);
                     });
}

void RedisKnown::apply_shared(SharedPart& shared, const Texts& texts) {
  const Wall now = BootClock::wall();
  const std::vector<Expired> all_expired = keeper_.apply_shared(shared.part, texts, now);
  shared.read = true;
  if (std::ranges::all_of(parts_, &SharedPart::read)) {
    const std::lock_guard lock(mutex_);
    complete_ = true;
    changed_.notify_all();
  }
  // Also checked against Redis's clock, so that a server whose clock is ahead does not remove fields early.
  std::vector<std::string> words;
  for (const Expired& expired : all_expired) {
    if (words.size() == 3 * kFieldsAtOnce) break;  // a later read removes the rest
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(expired.expires).time_since_epoch().count();
    words.insert(words.end(), {expired.name, texts.at(expired.name), std::to_string(seconds)});
  }
  if (!words.empty()) shared.hash.change(SharedHash::Change::finish, std::move(words), ignore);
}

void RedisKnown::log_failure(SharedPart& shared, const Error& error) {
  shared.failing = true;
  healthy_since_ = Time{};
  // An outage of Redis is logged elsewhere.
  if (!commands_.is_up()) return;
  {
    const std::lock_guard lock(mutex_);
    refused_ = true;
    changed_.notify_all();
  }
  const bool logged = std::ranges::find(logged_errors_, error.detail) != logged_errors_.end();
  if (logged || logged_errors_.size() >= bounds::redis_causes_max) return;
  logged_errors_.push_back(error.detail);
  log_(LogLevel::warn,
       "adjustments and access lists not shared through Redis, keeping the known ones: " + error.detail);
}

void RedisKnown::log_recovery() {
  if (logged_errors_.empty() || std::ranges::any_of(parts_, &SharedPart::failing)) return;
  const Time now = loop_.now().time;
  if (healthy_since_ == Time{}) healthy_since_ = now;
  if (now - healthy_since_ < kHealthyFor) return;
  logged_errors_.clear();
  log_(LogLevel::info, "adjustments and access lists shared through Redis again");
}

}  // namespace weir
