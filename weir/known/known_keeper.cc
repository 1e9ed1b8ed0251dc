#include "weir/known/known_keeper.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/base/clock.h"
#include "weir/known/known_line.h"
#include "weir/known/shared_snapshot.h"

namespace weir {
namespace {

// Blocks written to the share at once, and the pause after a failed write.
constexpr std::size_t kBlocksPerPut = 500;
constexpr Duration kShareRetryAfter = std::chrono::seconds{1};
template <class Value>
std::vector<Value> values_of(const std::map<std::string, Value>& all) {
  std::vector<Value> out;
  out.reserve(all.size());
  for (const auto& [key, value] : all) out.push_back(value);
  return out;
}

std::shared_ptr<const AccessList> list_of(const std::map<std::string, AccessEntry>& all) {
  auto built = AccessList::build(values_of(all));
  WEIR_ASSERT(built.has_value());  // selectors are unique, and their number is bounded
  return std::make_shared<const AccessList>(std::move(*built));
}

template <class Value>
bool erase_expired(std::map<std::string, Value>& all, Wall now) {
  return std::erase_if(all, [&](const auto& entry) { return !entry.second.live(now); }) > 0;
}

Error shutting_down() {
  return Error{Fault::unavailable, "the server is shutting down and accepts no more changes"};
}

Result<void> check(const Adjustment& adjustment, Wall now) {
  if (adjustment.limit.empty() || adjustment.limit.size() > bounds::name_bytes_max) {
    return Error{Fault::invalid, "an adjustment needs the name of a limit"};
  }
  if (adjustment.id.empty() || adjustment.id.size() > bounds::key_bytes_max) {
    return Error{Fault::invalid,
                 "an adjustment needs an id of 1 to " + std::to_string(bounds::key_bytes_max) + " bytes"};
  }
  if (!adjustment.burst && !adjustment.count && !adjustment.period) {
    return Error{Fault::invalid, "an adjustment needs a rate, burst, count or period"};
  }
  if (adjustment.added_by.size() > bounds::added_by_bytes_max) {
    return Error{Fault::invalid,
                 "added_by of an adjustment has at most " + std::to_string(bounds::added_by_bytes_max) + " bytes"};
  }
  if (!adjustment.live(now)) return Error{Fault::invalid, "an adjustment must end in the future"};
  return {};
}

}  // namespace

KnownKeeper::KnownKeeper(KnownArchive* archive, std::function<void(std::string_view)> log, const Clock* clock)
    : archive_(archive), clock_(clock), log_(std::move(log)), known_(std::make_shared<const Known>()) {
  if (!log_) log_ = [](std::string_view) {};
}

Result<void> KnownKeeper::load(Wall now) {
  if (archive_ == nullptr) return {};
  auto saved = archive_->load();
  if (!saved) return saved.error();
  const std::lock_guard lock(mutex_);
  for (Adjustment& one : saved->adjustments) {
    std::string key = adjustment_name(one.limit, one.id);
    adjustments_.insert_or_assign(std::move(key), std::move(one));
  }
  for (AccessEntry& one : saved->entries) {
    std::string key = selector_of(one);
    entries_.insert_or_assign(std::move(key), std::move(one));
  }
  (void)drop_expired(now);
  // An empty state is not published, so no file is written for it.
  if (!adjustments_.empty() || !entries_.empty()) publish(adjustments_part | entries_part);
  return {};
}

bool KnownKeeper::has_room(const Adjustment& adjustment, Wall now) {
  const std::lock_guard lock(mutex_);
  publish_and_save(drop_expired(now));
  return adjustments_.size() < bounds::adjustments_max ||
         adjustments_.contains(adjustment_name(adjustment.limit, adjustment.id));
}

bool KnownKeeper::has_room(const AccessEntry& entry, Wall now) {
  const std::lock_guard lock(mutex_);
  publish_and_save(drop_expired(now));
  return entries_.size() < bounds::access_entries_max || entries_.contains(selector_of(entry));
}

// Writes to the share first, then applies the change.
void KnownKeeper::put(KnownShare::Part part, std::string name, std::string line, std::function<Result<bool>()> apply,
                      const Done& done) {
  if (share_ == nullptr) return done(apply());
  KnownShare::Texts texts;
  texts.emplace(std::move(name), std::move(line));
  share_->put(part, std::move(texts), [apply = std::move(apply), done](const Result<std::size_t>& count) {
    done(count ? apply() : count.error());
  });
}

void KnownKeeper::remove_shared(KnownShare::Part part, std::vector<std::string> names,
                                std::function<Result<bool>()> apply, const Done& done) {
  if (share_ == nullptr) return done(apply());
  share_->remove(part, std::move(names), [apply = std::move(apply), done](const Result<std::size_t>& count) {
    if (!count) return done(count.error());
    const Result<bool> known = apply();
    done(known && !*known ? *count > 0 : known);
  });
}

void KnownKeeper::adjust(Adjustment adjustment, Wall now, const Done& done) {
  if (auto good = check(adjustment, now); !good) return done(good.error());
  if (!has_room(adjustment, now)) {
    return done(Error{Fault::too_large, std::to_string(bounds::adjustments_max) +
                                            " adjustments are in force, which is the maximum; remove one first"});
  }
  const std::string key = adjustment_name(adjustment.limit, adjustment.id);
  const std::string line = print_line(adjustment);
  put(
      KnownShare::Part::adjustments, key, line,
      [this, key, adjustment = std::move(adjustment)]() -> Result<bool> {
        const std::lock_guard lock(mutex_);
        if (!takes_changes()) return shutting_down();
        adjustments_.insert_or_assign(key, adjustment);
        publish_and_save(adjustments_part);
        return true;
      },
      done);
}

void KnownKeeper::unadjust(std::string_view limit, std::string_view id, Wall now, const Done& done) {
  const std::string key = adjustment_name(limit, id);
  remove_shared(
      KnownShare::Part::adjustments, {key},
      [this, key, now]() -> Result<bool> {
        const std::lock_guard lock(mutex_);
        if (!takes_changes()) return shutting_down();
        const unsigned expired = drop_expired(now);
        const bool found = adjustments_.erase(key) > 0;
        publish_and_save(expired | (found ? adjustments_part : 0u));
        return found;
      },
      done);
}

std::vector<Adjustment> KnownKeeper::adjustments(Wall now) const {
  const std::shared_ptr<const Known> known = known_.current();
  std::vector<Adjustment> live;
  for (const Adjustment& one : known->adjustments().all()) {
    if (one.live(now)) live.push_back(one);
  }
  return live;
}

void KnownKeeper::add(AccessEntry entry, Wall now, const Done& done) {
  if (auto good = weir::check(entry); !good) return done(good.error());
  if (!entry.live(now)) return done(Error{Fault::invalid, "an access entry must end in the future"});
  if (!has_room(entry, now)) {
    return done(Error{Fault::too_large, std::to_string(bounds::access_entries_max) +
                                            " access entries are in force, which is the maximum; remove one first"});
  }
  const std::string key = selector_of(entry);
  const std::string line = print_line(entry);
  put(
      KnownShare::Part::entries, key, line,
      [this, key, entry = std::move(entry)]() -> Result<bool> {
        const std::lock_guard lock(mutex_);
        if (!takes_changes()) return shutting_down();
        entries_.insert_or_assign(key, entry);
        publish_and_save(entries_part);
        return true;
      },
      done);
}

void KnownKeeper::remove(const AccessEntry& selector, Wall now, const Done& done) {
  const std::string key = selector_of(selector);
  remove_shared(
      KnownShare::Part::entries, {key, block_name(selector)},
      [this, key, now]() -> Result<bool> {
        const std::lock_guard lock(mutex_);
        if (!takes_changes()) return shutting_down();
        unsigned changed = drop_expired(now);
        const bool entry = entries_.erase(key) > 0;
        const bool block = blocks_.erase(key) > 0;
        unshared_blocks_.erase(key);
        if (entry) changed |= entries_part;
        if (block) changed |= blocks_part;
        publish_and_save(changed);
        return entry || block;
      },
      done);
}

Result<void> KnownKeeper::adjust(Adjustment adjustment, Wall now) {
  WEIR_ASSERT(share_ == nullptr);
  Result<void> result;
  adjust(std::move(adjustment), now, [&](const Result<bool>& changed) {
    if (!changed) result = changed.error();
  });
  return result;
}

bool KnownKeeper::unadjust(std::string_view limit, std::string_view id, Wall now) {
  WEIR_ASSERT(share_ == nullptr);
  bool found = false;
  unadjust(limit, id, now, [&](const Result<bool>& changed) { found = changed && *changed; });
  return found;
}

Result<void> KnownKeeper::add(AccessEntry entry, Wall now) {
  WEIR_ASSERT(share_ == nullptr);
  Result<void> result;
  add(std::move(entry), now, [&](const Result<bool>& changed) {
    if (!changed) result = changed.error();
  });
  return result;
}

bool KnownKeeper::remove(const AccessEntry& selector, Wall now) {
  WEIR_ASSERT(share_ == nullptr);
  bool found = false;
  remove(selector, now, [&](const Result<bool>& changed) { found = changed && *changed; });
  return found;
}

std::vector<AccessEntry> KnownKeeper::entries(AccessEntry::List list, Wall now) const {
  const std::shared_ptr<const Known> known = known_.current();
  std::vector<AccessEntry> live;
  for (const AccessList* const all : {&known->entries(), &known->blocks()}) {
    for (const AccessEntry& one : all->entries()) {
      if (one.list == list && one.live(now)) live.push_back(one);
    }
  }
  return live;
}

void KnownKeeper::block(AccessEntry entry, std::string limit, std::string message) {
  {
    const std::lock_guard lock(waiting_mutex_);
    if (waiting_.size() >= bounds::blocks_waiting_max) {
      blocks_refused_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    waiting_.push_back({std::move(entry), std::move(limit), std::move(message)});
    any_waiting_.store(true, std::memory_order_release);
  }
  // Publishing takes time proportional to the size of Known, and the holder of the lock may be writing a file, which a
  // loop must not wait for.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  if (adjustments_.size() + entries_.size() + blocks_.size() < bounds::known_at_once_max) publish(take_waiting());
}

unsigned KnownKeeper::take_waiting() {
  std::vector<WaitingBlock> fresh;
  if (any_waiting_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(waiting_mutex_);
    fresh.swap(waiting_);
    any_waiting_.store(false, std::memory_order_release);
  }
  unsigned changed = 0;
  std::map<std::string, std::uint64_t> made;
  for (auto& [entry, limit, message] : fresh) {
    std::string key = selector_of(entry);
    if (blocks_.size() >= bounds::blocks_max && !blocks_.contains(key)) {
      blocks_refused_.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    // Requests in flight when a block starts may request it again; that only extends it.
    if (!blocks_.contains(key)) {
      ++made[std::move(limit)];
      if (!message.empty() && unlogged_.size() < bounds::blocks_waiting_max) unlogged_.push_back(std::move(message));
    }
    if (share_ != nullptr) unshared_blocks_.insert_or_assign(key, entry);
    blocks_.insert_or_assign(std::move(key), std::move(entry));
    changed = blocks_part;
  }
  if (made.empty()) return changed;
  const std::lock_guard lock(waiting_mutex_);
  for (const auto& [limit, count] : made) blocks_made_[limit] += count;
  return changed;
}

std::map<std::string, std::uint64_t> KnownKeeper::blocks_made() const {
  const std::lock_guard lock(waiting_mutex_);
  return blocks_made_;
}

void KnownKeeper::unblock(std::vector<AccessEntry> selectors, Wall now, const Done& done) {
  std::vector<std::string> keys;
  std::vector<std::string> names;
  for (const AccessEntry& selector : selectors) {
    keys.push_back(selector_of(selector));
    names.push_back(block_name(selector));
  }
  remove_shared(
      KnownShare::Part::entries, std::move(names),
      [this, keys = std::move(keys), now] {
        const std::lock_guard lock(mutex_);
        unsigned changed = drop_expired(now) | take_waiting();
        bool found = false;
        for (const std::string& key : keys) {
          found |= blocks_.erase(key) > 0;
          unshared_blocks_.erase(key);
        }
        publish_and_save(changed | (found ? blocks_part : 0u));
        return found;
      },
      done);
}

void KnownKeeper::unblock_all(Wall now, const Done& done) {
  std::vector<AccessEntry> all;
  {
    const std::lock_guard lock(mutex_);
    publish(take_waiting());
    all = values_of(blocks_);
  }
  unblock(std::move(all), now, done);
}

void KnownKeeper::close() {
  const std::lock_guard lock(mutex_);
  if (unsaved_) save();
  closed_ = true;
}

void KnownKeeper::tick(Wall now) {
  std::vector<std::string> messages;
  {
    const std::lock_guard lock(mutex_);
    const unsigned expired = drop_expired(now);
    publish_and_save(expired | take_waiting());
    if (unsaved_) save();
    if (!unshared_blocks_.empty() && !sharing_blocks_ && now >= share_blocks_at_) share_blocks();
    messages.swap(unlogged_);
  }
  for (const std::string& message : messages) log_(message);
}

// Writes a limited number at a time; after a failure it retries until the blocks expire.
void KnownKeeper::share_blocks() {
  KnownShare::Texts texts;
  std::map<std::string, AccessEntry> sent;
  for (const auto& [key, entry] : unshared_blocks_) {
    if (texts.size() == kBlocksPerPut) break;
    texts.emplace(block_name(entry), print_line(entry, true));
    sent.emplace(key, entry);
  }
  sharing_blocks_ = true;
  share_->put(KnownShare::Part::entries, std::move(texts), [this, sent](const Result<std::size_t>& count) {
    const std::lock_guard lock(mutex_);
    sharing_blocks_ = false;
    if (!count) share_blocks_at_ = BootClock::wall() + kShareRetryAfter;
    for (const auto& [key, entry] : sent) {
      const auto found = unshared_blocks_.find(key);
      if (count && found != unshared_blocks_.end() && found->second == entry) unshared_blocks_.erase(found);
    }
  });
}

std::vector<KnownShare::Expired> KnownKeeper::apply_shared(KnownShare::Part part, const KnownShare::Texts& all,
                                                           Wall now) {
  SharedSnapshot snapshot = read_shared_snapshot(part, all, now);
  const std::lock_guard lock(mutex_);
  unsigned changed = 0;
  if (part == KnownShare::Part::adjustments) {
    if (adjustments_ != snapshot.adjustments) changed |= adjustments_part;
    adjustments_ = std::move(snapshot.adjustments);
  } else {
    // Keep blocks that are not on the share yet.
    for (const auto& [key, entry] : unshared_blocks_) {
      if (entry.live(now)) snapshot.blocks.insert_or_assign(key, entry);
    }
    if (entries_ != snapshot.entries) changed |= entries_part;
    if (blocks_ != snapshot.blocks) changed |= blocks_part;
    entries_ = std::move(snapshot.entries);
    blocks_ = std::move(snapshot.blocks);
  }
  publish_and_save(changed);
  log_skipped(part, snapshot.skipped, std::move(snapshot.first_skipped));
  return std::move(snapshot.expired);
}

void KnownKeeper::log_skipped(KnownShare::Part part, std::size_t skipped, std::string first) {
  std::string& last = skipped_[static_cast<std::size_t>(part)];
  if (std::exchange(last, first) == first || skipped == 0) return;
  const bool adjustments = part == KnownShare::Part::adjustments;
  log_(std::string("shared ") + (adjustments ? "adjustments" : "access entries") +
       " skipped: count=" + std::to_string(skipped) + " first=" + first);
}

KnownShare::Texts KnownKeeper::texts(KnownShare::Part part, Wall now) const {
  KnownShare::Texts all;
  const std::lock_guard lock(mutex_);
  if (part == KnownShare::Part::adjustments) {
    for (const auto& [key, one] : adjustments_) {
      if (one.live(now)) all.emplace(key, print_line(one));
    }
    return all;
  }
  for (const auto& [key, one] : entries_) {
    if (one.live(now)) all.emplace(key, print_line(one));
  }
  for (const auto& [key, one] : blocks_) {
    if (one.live(now)) all.emplace(block_name(one), print_line(one, true));
  }
  return all;
}

unsigned KnownKeeper::drop_expired(Wall now) {
  if (now < soonest_) return 0;
  unsigned changed = 0;
  if (erase_expired(adjustments_, now)) changed |= adjustments_part;
  if (erase_expired(entries_, now)) changed |= entries_part;
  if (erase_expired(blocks_, now)) changed |= blocks_part;
  (void)erase_expired(unshared_blocks_, now);
  return changed;
}

void KnownKeeper::publish(unsigned changed) {
  if (changed == 0) return;
  if ((changed & adjustments_part) != 0) {
    parts_.adjustments = std::make_shared<const Adjustments>(values_of(adjustments_));
    if (clock_ != nullptr) parts_.adjusted = clock_->time();
  }
  if ((changed & entries_part) != 0) parts_.entries = list_of(entries_);
  if ((changed & blocks_part) != 0) parts_.blocks = list_of(blocks_);
  soonest_ = Wall::max();
  for (const auto& [key, one] : adjustments_) soonest_ = std::min(soonest_, one.expires);
  for (const auto* all : {&entries_, &blocks_}) {
    for (const auto& [key, one] : *all) soonest_ = std::min(soonest_, one.expires.value_or(Wall::max()));
  }
  known_.publish(std::make_shared<const Known>(parts_));
}

void KnownKeeper::publish_and_save(unsigned changed) {
  publish(changed);
  if ((changed & (adjustments_part | entries_part)) != 0) save();
}

void KnownKeeper::save() {
  if (archive_ == nullptr || closed_) return;
  const auto saved = archive_->save({values_of(adjustments_), values_of(entries_)});
  unsaved_ = !saved;
  if (!saved && !save_failure_logged_) {
    log_("adjustments and access entries not saved, a restart would lose the last changes: " + saved.error().detail);
  }
  save_failure_logged_ = !saved;
}

}  // namespace weir
