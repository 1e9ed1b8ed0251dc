// The one writer of what is Known: every change goes through here and is in force for every request that is read after
// the call returned, on any loop. Automatic blocks are the exception where much is known or a change is being made:
// there may be many at once, so they are collected and published together by the next tick().
//
// Where several servers share what is known, a change is first told to the share and then in force, here at once and on
// the others when they hear of it; one that the share does not take is not made. Automatic blocks are in force here in
// any case, and told when that is possible.
//
// Thread safety: all of it. Changes wait for one another, and for the archive, which may write and sync a file: they
// are not for a loop's thread. Readers never wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/published.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/known/known.h"
#include "weir/known/known_archive.h"
#include "weir/known/known_share.h"

namespace weir {

class KnownKeeper {
 public:
  // Without an archive what is known ends with the process. It must outlive the keeper. `log` is told what an operator
  // should know, one sentence each.
  // The clock of the buckets tells when adjustments were changed; without one that is never.
  explicit KnownKeeper(KnownArchive* archive = nullptr, std::function<void(std::string_view)> log = {},
                       const Clock* clock = nullptr);

  // To be called once, before anything else; the share must outlive all changes.
  void share_with(KnownShare& share) noexcept { share_ = &share; }

  // What was kept, less what has ended since. To be called once, at the start.
  Result<void> load(Wall now);

  // For the readers: Reader<Known> reader(keeper.known()).
  const Published<Known>& known() const noexcept { return known_; }

  // Of a change: whether there was something to change. Called once: before the call returns, or with a share later, in
  // another thread. Errors of all changes with a share: unavailable (nothing was changed), timeout (nobody knows yet).
  using Done = std::function<void(const Result<bool>& changed)>;

  // Puts the adjustment in force, in place of one for the same limit and id. Errors: invalid (no limit, no id, no
  // number, or it ended already), too_large (bounds::adjustments_max). Whether the numbers fit the limit is for the
  // caller to ask: adjusted() in policy/known.h.
  void adjust(Adjustment adjustment, Wall now, const Done& done);
  // False if there was none.
  void unadjust(std::string_view limit, std::string_view id, Wall now, const Done& done);
  // Those in force, by limit and id.
  std::vector<Adjustment> adjustments(Wall now) const;

  // Puts the entry in force, in place of one of the same list for the same client. Errors: invalid, too_large
  // (bounds::access_entries_max).
  void add(AccessEntry entry, Wall now, const Done& done);
  // Ends the entry of that list for that client, and a block of it. Of `selector` only the list and the client count.
  // False if there was none. Entries of the configuration are not here: they end with it.
  void remove(const AccessEntry& selector, Wall now, const Done& done);
  // Those in force; in the deny list automatic blocks too.
  std::vector<AccessEntry> entries(AccessEntry::List list, Wall now) const;

  // The same without a share: the answer at once.
  Result<void> adjust(Adjustment adjustment, Wall now);
  bool unadjust(std::string_view limit, std::string_view id, Wall now);
  Result<void> add(AccessEntry entry, Wall now);
  bool remove(const AccessEntry& selector, Wall now);

  // All that the servers know together of one part: what is in force from now on. Texts that are not understood are
  // skipped, with one sentence to the log; those that have ended are returned.
  std::vector<KnownShare::Ended> apply_shared(KnownShare::Part part, const KnownShare::Texts& all, Wall now);
  // What is in force here of one part, as the share has it.
  KnownShare::Texts texts(KnownShare::Part part, Wall now) const;

  // From a loop's thread: a client to be denied from now on, or from the next tick() on if bounds::known_at_once_max is
  // reached or somebody else is making a change. Cheap, and waits for nobody; beyond bounds::blocks_waiting_max and
  // bounds::blocks_max it is not blocked, and counted. `limit` is the one whose denials caused it; `sentence`, if any,
  // is logged by the tick() after it came into force.
  void block(AccessEntry entry, std::string limit = {}, std::string sentence = {});
  // Ends automatic blocks of these clients, or all of them, and leaves operators' entries. False if there was none.
  void unblock(std::vector<AccessEntry> selectors, Wall now, const Done& done);
  void unblock_all(Wall now, const Done& done);
  // Blocks that came into force here since the start, by limit.
  std::map<std::string, std::uint64_t> blocks_made() const;
  std::uint64_t blocks_refused() const noexcept { return blocks_refused_.load(std::memory_order_relaxed); }

  // Saves what is unsaved, then takes no more changes: the archive belongs to the next process. Changes return
  // unavailable, unless a share keeps them.
  void close();

  // Every 50 ms or so, from one thread: publishes blocks and tells the share of them, forgets what has ended, saves
  // again what could not be saved.
  void tick(Wall now);

 private:
  enum Changed : unsigned { adjustments_part = 1, entries_part = 2, blocks_part = 4 };
  struct WaitingBlock {
    AccessEntry entry;
    std::string limit;
    std::string sentence;
  };

  // All of these: REQUIRES: mutex_ is held.
  unsigned forget_ended(Wall now);
  unsigned take_waiting();
  void publish(unsigned changed);
  void publish_and_save(unsigned changed);
  void save();
  bool takes_changes() const noexcept { return !closed_ || share_ != nullptr; }

  bool has_room(const Adjustment& adjustment, Wall now);
  bool has_room(const AccessEntry& entry, Wall now);
  // Both return unavailable from `apply` if nothing keeps the change any more.
  void put(KnownShare::Part part, std::string name, std::string line, std::function<Result<bool>()> apply,
           const Done& done);
  void take_away(KnownShare::Part part, std::vector<std::string> names, std::function<Result<bool>()> apply,
                 const Done& done);
  void tell_of_blocks();
  void complain_of(KnownShare::Part part, std::size_t skipped, std::string first);

  KnownArchive* archive_;
  const Clock* clock_;
  KnownShare* share_ = nullptr;
  std::function<void(std::string_view)> log_;

  mutable std::mutex mutex_;
  std::map<std::string, Adjustment> adjustments_;  // by "limit:id"
  std::map<std::string, AccessEntry> entries_;     // by selector_of()
  std::map<std::string, AccessEntry> blocks_;      // the same
  std::map<std::string, AccessEntry> untold_;      // blocks that the share has not taken yet
  bool telling_ = false;                           // it is being told of some
  Wall tell_at_{};                                 // not before
  std::string skipped_[2];                         // of each part, what was complained of last
  Known::Parts parts_;                             // as published
  Wall soonest_ = Wall::max();                     // nothing ends before
  std::vector<std::string> unlogged_;              // sentences of blocks in force; at most bounds::blocks_waiting_max
  bool unsaved_ = false;
  bool closed_ = false;
  bool complained_ = false;  // about what could not be saved

  mutable std::mutex waiting_mutex_;  // for a moment only: loops take it
  std::map<std::string, std::uint64_t> blocks_made_;
  std::vector<WaitingBlock> waiting_;
  std::atomic<bool> any_waiting_{false};
  std::atomic<std::uint64_t> blocks_refused_{0};

  Published<Known> known_;
};

}  // namespace weir
