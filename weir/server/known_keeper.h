// The one writer of what is Known: every change goes through here and is in force for every request that is read after
// the call returned, on any loop. Automatic blocks are the exception: there may be many at once, so they are collected
// and published together by the next tick().
//
// Thread safety: all of it. Changes wait for one another, and for the archive, which may write and sync a file;
// requests never wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/published.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/policy/known.h"
#include "weir/server/known_archive.h"

namespace weir {

class KnownKeeper {
 public:
  // Without an archive what is known ends with the process. It must outlive the keeper. `log` is told what an operator
  // should know, one sentence each.
  explicit KnownKeeper(KnownArchive* archive = nullptr, std::function<void(std::string_view)> log = {});

  // What was kept, less what has ended since. To be called once, at the start.
  Result<void> load(Wall now);

  // For the readers: Reader<Known> reader(keeper.known()).
  const Published<Known>& known() const noexcept { return known_; }

  // Puts the adjustment in force, in place of one for the same limit and id. Errors: invalid (no limit, no id, no
  // number, or it ended already), too_large (bounds::adjustments_max). Whether the numbers fit the limit is for the
  // caller to ask: adjusted() in policy/known.h.
  Result<void> adjust(Adjustment adjustment, Wall now);
  // False if there was none.
  bool unadjust(std::string_view limit, std::string_view id, Wall now);
  // Those in force, by limit and id.
  std::vector<Adjustment> adjustments(Wall now) const;

  // Puts the entry in force, in place of one of the same list for the same client. Errors: invalid, too_large
  // (bounds::access_entries_max).
  Result<void> add(AccessEntry entry, Wall now);
  // Ends the entry of that list for that client, and a block of it. Of `selector` only the list and the client count.
  // False if there was none. Entries of the configuration are not here: they end with it.
  bool remove(const AccessEntry& selector, Wall now);
  // Those in force; in the deny list automatic blocks too.
  std::vector<AccessEntry> entries(AccessEntry::List list, Wall now) const;

  // From a loop's thread: a client to be denied from the next tick() on. Cheap; beyond bounds::blocks_waiting_max and
  // bounds::blocks_max it is not blocked, and counted.
  void block(AccessEntry entry);
  std::uint64_t blocks_refused() const noexcept { return blocks_refused_.load(std::memory_order_relaxed); }

  // Every 50 ms or so, from one thread: publishes blocks, forgets what has ended, saves again what could not be saved.
  void tick(Wall now);

 private:
  enum Changed : unsigned { adjustments_part = 1, entries_part = 2, blocks_part = 4 };

  // All of these: REQUIRES: mutex_ is held.
  unsigned forget_ended(Wall now);
  void publish(unsigned changed);
  void publish_and_save(unsigned changed);
  void save();

  KnownArchive* archive_;
  std::function<void(std::string_view)> log_;

  mutable std::mutex mutex_;
  std::map<std::string, Adjustment> adjustments_;  // by "limit:id"
  std::map<std::string, AccessEntry> entries_;     // by selector_of()
  std::map<std::string, AccessEntry> blocks_;      // the same
  Known::Parts parts_;                             // as published
  Wall soonest_ = Wall::max();                     // nothing ends before
  bool unsaved_ = false;
  bool complained_ = false;  // about what could not be saved

  std::mutex waiting_mutex_;  // for a moment only: loops take it
  std::vector<AccessEntry> waiting_;
  std::atomic<bool> any_waiting_{false};
  std::atomic<std::uint64_t> blocks_refused_{0};

  Published<Known> known_;
};

}  // namespace weir
