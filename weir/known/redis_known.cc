#include "weir/known/redis_known.h"

#include <algorithm>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/clock.h"
#include "weir/base/text.h"

namespace weir {
namespace {

using redis::SharedHash;

constexpr Duration kLookEvery = std::chrono::milliseconds{500};
// How often everything is read although nothing has changed: then what has ended is removed.
constexpr Duration kDoubtEvery = std::chrono::seconds{60};
// How long everything must have been shared until the log says so again: a master that goes and comes is one trouble.
constexpr Duration kWellFor = std::chrono::seconds{1};
// Fields that one script puts back or removes.
constexpr std::size_t kFieldsAtOnce = 500;

void ignore(const Result<std::size_t>&) {}

}  // namespace

RedisKnown::RedisKnown(Loop& loop, redis::Commands& commands, const std::string& key_prefix, KnownKeeper& keeper,
                       Log log)
    : loop_(loop),
      commands_(commands),
      keeper_(keeper),
      log_(std::move(log)),
      halves_{Half(Part::adjustments, SharedHash(commands, key_prefix + "adjust")),
              Half(Part::entries, SharedHash(commands, key_prefix + "access"))} {
  loop_.post([this] { look(); });
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
    halves_[static_cast<std::size_t>(part)].hash.change(
        change, std::move(words), [done = std::move(done)](const Result<std::size_t>& count) {
          if (count) return done(count);
          const bool unknown = count.error().fault == Fault::timeout;
          done(Error{count.error().fault,
                     count.error().detail + (unknown ? "; look whether the change was made, and repeat it if not"
                                                     : "; nothing was changed")});
        });
  });
}

bool RedisKnown::wait(Duration at_most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, at_most, [&] { return complete_ || refused_; });
  return complete_;
}

void RedisKnown::look() {
  const Time now = loop_.now().time;
  if (now >= doubt_at_) {
    doubt_at_ = now + kDoubtEvery;
    for (Half& half : halves_) half.hash.doubt();
  }
  for (Half& half : halves_) look_at(half);
  const bool first = std::ranges::all_of(halves_, &Half::read);
  loop_.at(now + (first ? kLookEvery : kLookEvery / 20), [this] { look(); });
}

void RedisKnown::look_at(Half& half) {
  if (half.busy || !commands_.is_up()) return;
  half.busy = true;
  if (!half.owed.empty()) return restore_missing(half);
  half.hash.read([this, &half](const Result<SharedHash::News>& news) {
    half.busy = false;
    heard(half, news);
  });
}

void RedisKnown::heard(Half& half, const Result<SharedHash::News>& news) {
  if (!news) return complain(half, news.error());
  half.troubled = false;
  log_recovery();
  if (!news->any) return;
  if (news->lost) return put_back(half, news->texts);
  apply_shared(half, news->texts);
}

// What we know and Redis does not: others may be doing the same, and whoever is first wins.
void RedisKnown::put_back(Half& half, Texts texts) {
  std::size_t missing = 0;
  for (auto& [name, text] : keeper_.texts(half.part, BootClock::wall())) {
    if (!texts.emplace(name, text).second) continue;
    if (missing++ % kFieldsAtOnce == 0) half.owed.emplace_back();
    half.owed.back().push_back(name);
    half.owed.back().push_back(text);
  }
  if (missing > 0) {
    log_(LogLevel::warn, "Redis has lost " + std::to_string(missing) +
                             (half.part == Part::adjustments ? " adjustments" : " access entries and blocks") +
                             " that are in force here: they are put back");
  }
  apply_shared(half, texts);
  if (half.owed.empty()) return;
  half.busy = true;
  restore_missing(half);
}

void RedisKnown::restore_missing(Half& half) {
  half.hash.change(SharedHash::Change::fill, half.owed.back(), [this, &half](const Result<std::size_t>& count) {
    half.busy = false;
    if (!count) return complain(half, count.error());
    half.owed.pop_back();
    look_at(half);
  });
}

void RedisKnown::apply_shared(Half& half, const Texts& texts) {
  const Wall now = BootClock::wall();
  const std::vector<Ended> all_ended = keeper_.apply_shared(half.part, texts, now);
  half.read = true;
  if (std::ranges::all_of(halves_, &Half::read)) {
    const std::lock_guard lock(mutex_);
    complete_ = true;
    changed_.notify_all();
  }
  // By Redis's clock too, so that a server whose own is ahead removes nothing early.
  std::vector<std::string> words;
  for (const Ended& ended : all_ended) {
    if (words.size() == 3 * kFieldsAtOnce) break;  // the rest another time
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(ended.expires).time_since_epoch().count();
    words.insert(words.end(), {ended.name, texts.at(ended.name), std::to_string(seconds)});
  }
  if (!words.empty()) half.hash.change(SharedHash::Change::finish, std::move(words), ignore);
}

void RedisKnown::complain(Half& half, const Error& error) {
  half.troubled = true;
  well_since_ = Time{};
  // That Redis is away others tell.
  if (!commands_.is_up()) return;
  {
    const std::lock_guard lock(mutex_);
    refused_ = true;
    changed_.notify_all();
  }
  const bool told = std::ranges::find(complaints_, error.detail) != complaints_.end();
  if (told || complaints_.size() >= bounds::redis_causes_max) return;
  complaints_.push_back(error.detail);
  log_(LogLevel::warn,
       "adjustments and access lists are not shared through Redis now, those that are known stay in force: " +
           error.detail);
}

void RedisKnown::log_recovery() {
  if (complaints_.empty() || std::ranges::any_of(halves_, &Half::troubled)) return;
  const Time now = loop_.now().time;
  if (well_since_ == Time{}) well_since_ = now;
  if (now - well_since_ < kWellFor) return;
  complaints_.clear();
  log_(LogLevel::info, "adjustments and access lists are shared through Redis again");
}

}  // namespace weir
