#include "weir/server/known_keeper.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"

namespace weir {
namespace {

// Names of limits have no ':', so no two pairs share a text.
std::string adjustment_key(std::string_view limit, std::string_view id) {
  return std::string(limit).append(":").append(id);
}

template <class Value>
std::vector<Value> values_of(const std::map<std::string, Value>& all) {
  std::vector<Value> out;
  out.reserve(all.size());
  for (const auto& [key, value] : all) out.push_back(value);
  return out;
}

std::shared_ptr<const AccessList> list_of(const std::map<std::string, AccessEntry>& all) {
  auto built = AccessList::build(values_of(all));
  WEIR_ASSERT(built.has_value());  // each selector is there once, and their number is bounded
  return std::make_shared<const AccessList>(std::move(*built));
}

template <class Value>
bool forget_in(std::map<std::string, Value>& all, Wall now) {
  return std::erase_if(all, [&](const auto& entry) { return !entry.second.live(now); }) > 0;
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

KnownKeeper::KnownKeeper(KnownArchive* archive, std::function<void(std::string_view)> log)
    : archive_(archive), log_(std::move(log)), known_(std::make_shared<const Known>()) {
  if (!log_) log_ = [](std::string_view) {};
}

Result<void> KnownKeeper::load(Wall now) {
  if (archive_ == nullptr) return {};
  auto kept = archive_->load();
  if (!kept) return kept.error();
  const std::lock_guard lock(mutex_);
  for (Adjustment& one : kept->adjustments) {
    std::string key = adjustment_key(one.limit, one.id);
    adjustments_.insert_or_assign(std::move(key), std::move(one));
  }
  for (AccessEntry& one : kept->entries) {
    std::string key = selector_of(one);
    entries_.insert_or_assign(std::move(key), std::move(one));
  }
  (void)forget_ended(now);
  // Nothing to say is not worth a file.
  if (!adjustments_.empty() || !entries_.empty()) publish(adjustments_part | entries_part);
  return {};
}

Result<void> KnownKeeper::adjust(Adjustment adjustment, Wall now) {
  if (auto good = check(adjustment, now); !good) return good;
  const std::lock_guard lock(mutex_);
  const unsigned ended = forget_ended(now);
  std::string key = adjustment_key(adjustment.limit, adjustment.id);
  if (adjustments_.size() >= bounds::adjustments_max && !adjustments_.contains(key)) {
    return Error{Fault::too_large,
                 std::to_string(bounds::adjustments_max) + " adjustments are in force; no more are possible"};
  }
  adjustments_.insert_or_assign(std::move(key), std::move(adjustment));
  publish_and_save(ended | adjustments_part);
  return {};
}

bool KnownKeeper::unadjust(std::string_view limit, std::string_view id, Wall now) {
  const std::lock_guard lock(mutex_);
  const unsigned ended = forget_ended(now);
  const bool found = adjustments_.erase(adjustment_key(limit, id)) > 0;
  publish_and_save(ended | (found ? adjustments_part : 0u));
  return found;
}

std::vector<Adjustment> KnownKeeper::adjustments(Wall now) const {
  const std::lock_guard lock(mutex_);
  std::vector<Adjustment> all = values_of(adjustments_);
  std::erase_if(all, [&](const Adjustment& one) { return !one.live(now); });
  return all;
}

Result<void> KnownKeeper::add(AccessEntry entry, Wall now) {
  if (auto good = weir::check(entry); !good) return good;
  if (!entry.live(now)) return Error{Fault::invalid, "an access entry must end in the future"};
  const std::lock_guard lock(mutex_);
  const unsigned ended = forget_ended(now);
  std::string key = selector_of(entry);
  if (entries_.size() >= bounds::access_entries_max && !entries_.contains(key)) {
    return Error{Fault::too_large,
                 std::to_string(bounds::access_entries_max) + " access entries are in force; no more are possible"};
  }
  entries_.insert_or_assign(std::move(key), std::move(entry));
  publish_and_save(ended | entries_part);
  return {};
}

bool KnownKeeper::remove(const AccessEntry& selector, Wall now) {
  const std::lock_guard lock(mutex_);
  unsigned changed = forget_ended(now);
  const std::string key = selector_of(selector);
  bool found = false;
  if (entries_.erase(key) > 0) {
    changed |= entries_part;
    found = true;
  }
  if (blocks_.erase(key) > 0) {
    changed |= blocks_part;
    found = true;
  }
  publish_and_save(changed);
  return found;
}

std::vector<AccessEntry> KnownKeeper::entries(AccessEntry::List list, Wall now) const {
  const std::lock_guard lock(mutex_);
  std::vector<AccessEntry> out;
  for (const auto* all : {&entries_, &blocks_}) {
    for (const auto& [key, entry] : *all) {
      if (entry.list == list && entry.live(now)) out.push_back(entry);
    }
  }
  return out;
}

void KnownKeeper::block(AccessEntry entry) {
  const std::lock_guard lock(waiting_mutex_);
  if (waiting_.size() >= bounds::blocks_waiting_max) {
    blocks_refused_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  waiting_.push_back(std::move(entry));
  any_waiting_.store(true, std::memory_order_release);
}

void KnownKeeper::tick(Wall now) {
  std::vector<AccessEntry> fresh;
  if (any_waiting_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(waiting_mutex_);
    fresh.swap(waiting_);
    any_waiting_.store(false, std::memory_order_release);
  }
  const std::lock_guard lock(mutex_);
  unsigned changed = forget_ended(now);
  for (AccessEntry& entry : fresh) {
    std::string key = selector_of(entry);
    if (blocks_.size() >= bounds::blocks_max && !blocks_.contains(key)) {
      blocks_refused_.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    blocks_.insert_or_assign(std::move(key), std::move(entry));
    changed |= blocks_part;
  }
  publish_and_save(changed);
  if (unsaved_) save();
}

unsigned KnownKeeper::forget_ended(Wall now) {
  if (now < soonest_) return 0;
  unsigned changed = 0;
  if (forget_in(adjustments_, now)) changed |= adjustments_part;
  if (forget_in(entries_, now)) changed |= entries_part;
  if (forget_in(blocks_, now)) changed |= blocks_part;
  return changed;
}

void KnownKeeper::publish(unsigned changed) {
  if (changed == 0) return;
  if ((changed & adjustments_part) != 0) {
    parts_.adjustments = std::make_shared<const Adjustments>(values_of(adjustments_));
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
  if (archive_ == nullptr) return;
  const auto saved = archive_->save({values_of(adjustments_), values_of(entries_)});
  unsaved_ = !saved;
  if (!saved && !complained_) {
    log_(saved.error().detail + "; adjustments and access entries are in force, but a restart would forget the last");
  }
  complained_ = !saved;
}

}  // namespace weir
