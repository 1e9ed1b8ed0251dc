// The only writer of Known. In: changes by operators, and automatic blocks. Out: a new Known, published to all loops.
// Once a change is done, it applies to every request read afterwards, on any loop. Automatic blocks can come in bursts,
// so while Known is large or a change is in progress, the next tick() publishes them together.
//
// With a share, a change is first written to the share and then applied, here at once and on the other servers when
// they read it; a change that the share rejects is not made. Automatic blocks apply here in any case and are shared
// when possible.
//
// Thread-safe. Changes wait for each other and for the archive, which may write and sync a file, so do not make any on
// a loop's thread; block() is safe there. Readers never wait.
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
  // Without an archive, Known is lost when the process ends. The archive must outlive the keeper. `log` writes one
  // message. `clock` is the buckets' clock and stamps changes of adjustments; without one they are not stamped.
  explicit KnownKeeper(KnownArchive* archive = nullptr, std::function<void(std::string_view)> log = {},
                       const Clock* clock = nullptr);

  // Call it once, before anything else. The share must outlive all changes.
  void share_with(KnownShare& share) noexcept { share_ = &share; }

  // Loads the archive without expired items. Call it once, at the start.
  Result<void> load(Wall now);

  // For the readers: Reader<Known> reader(keeper.known()).
  const Published<Known>& known() const noexcept { return known_; }

  // Receives whether the change had an effect. Called once: before the call returns or, with a share, later on another
  // thread. With a share every change can fail with unavailable (nothing was changed) or timeout (it may have been).
  using Done = std::function<void(const Result<bool>& changed)>;

  // Applies the adjustment, replacing one for the same limit and id. Errors: invalid (no limit, no id, no number, or
  // already expired), too_large (bounds::adjustments_max). The caller checks with adjusted() in known.h that the
  // numbers fit the limit.
  void adjust(Adjustment adjustment, Wall now, const Done& done);
  // Removes the adjustment. `done` gets false if there was none.
  void unadjust(std::string_view limit, std::string_view id, Wall now, const Done& done);
  // Returns the adjustments in force, by limit and id.
  std::vector<Adjustment> adjustments(Wall now) const;

  // Applies the entry, replacing one of the same list for the same client. Errors: invalid, too_large
  // (bounds::access_entries_max).
  void add(AccessEntry entry, Wall now, const Done& done);
  // Removes the entry and the block of that list for that client. Only the list and the client of `selector` matter.
  // `done` gets false if there was none. Does not affect entries of the configuration.
  void remove(const AccessEntry& selector, Wall now, const Done& done);
  // Returns the entries in force; those of the deny list include automatic blocks.
  std::vector<AccessEntry> entries(AccessEntry::List list, Wall now) const;

  // The same, synchronously. REQUIRES: no share.
  Result<void> adjust(Adjustment adjustment, Wall now);
  bool unadjust(std::string_view limit, std::string_view id, Wall now);
  Result<void> add(AccessEntry entry, Wall now);
  bool remove(const AccessEntry& selector, Wall now);

  // Replaces one part with the content of the share. Skips and logs lines that it cannot parse. Returns the expired
  // items.
  std::vector<KnownShare::Expired> apply_shared(KnownShare::Part part, const KnownShare::Texts& all, Wall now);
  // Returns what is in force here of one part, in the format of the share.
  KnownShare::Texts texts(KnownShare::Part part, Wall now) const;

  // Denies a client from now on, or from the next tick() on if bounds::known_at_once_max is reached or a change is in
  // progress. Cheap and never blocks, so loops may call it. Beyond bounds::blocks_waiting_max or bounds::blocks_max the
  // block is dropped and counted in blocks_refused(). `limit` is the limit whose denials caused it; a non-empty
  // `log_message` is logged by the tick() after the block is in force.
  void block(AccessEntry entry, std::string limit = {}, std::string log_message = {});
  // Removes automatic blocks of these clients, or all of them, and keeps operators' entries. `done` gets false if there
  // was none.
  void unblock(std::vector<AccessEntry> selectors, Wall now, const Done& done);
  void unblock_all(Wall now, const Done& done);
  // Blocks made here since the start, by limit.
  std::map<std::string, std::uint64_t> blocks_made() const;
  std::uint64_t blocks_refused() const noexcept { return blocks_refused_.load(std::memory_order_relaxed); }

  // Saves unsaved changes and stops writing the archive, which then belongs to the next process. Later changes fail
  // with unavailable, unless there is a share.
  void close();

  // Call it about every 50 ms, from one thread. Publishes and shares new blocks, drops expired items, retries failed
  // saves.
  void tick(Wall now);

 private:
  enum Changed : unsigned { adjustments_part = 1, entries_part = 2, blocks_part = 4 };
  struct WaitingBlock {
    AccessEntry entry;
    std::string limit;
    std::string log_message;
  };

  // All of these require that mutex_ is held.
  unsigned drop_expired(Wall now);
  unsigned take_waiting();
  void publish(unsigned changed);
  void publish_and_save(unsigned changed);
  void save();
  bool takes_changes() const noexcept { return !closed_ || share_ != nullptr; }

  bool has_room(const Adjustment& adjustment, Wall now);
  bool has_room(const AccessEntry& entry, Wall now);
  // Both return unavailable from `apply` if the keeper is closed and there is no share.
  void put(KnownShare::Part part, std::string name, std::string line, std::function<Result<bool>()> apply,
           const Done& done);
  void remove_shared(KnownShare::Part part, std::vector<std::string> names, std::function<Result<bool>()> apply,
                     const Done& done);
  void share_blocks();
  void log_skipped(KnownShare::Part part, std::size_t skipped, std::string first);

  KnownArchive* archive_;
  const Clock* clock_;
  KnownShare* share_ = nullptr;
  std::function<void(std::string_view)> log_;

  mutable std::mutex mutex_;
  std::map<std::string, Adjustment> adjustments_;       // by "limit:id"
  std::map<std::string, AccessEntry> entries_;          // by selector_of()
  std::map<std::string, AccessEntry> blocks_;           // the same
  std::map<std::string, AccessEntry> unshared_blocks_;  // not written to the share yet
  bool sharing_blocks_ = false;                         // a write to the share is in progress
  Wall share_blocks_at_{};                              // earliest time of the next write
  std::string skipped_[2];                              // of each part, the last message about skipped items
  Known::Parts parts_;                                  // as published
  Wall soonest_ = Wall::max();                          // earliest expiry of what is published
  std::vector<std::string> unlogged_;  // log messages of blocks in force; at most bounds::blocks_waiting_max
  bool unsaved_ = false;
  bool closed_ = false;
  bool save_failure_logged_ = false;

  mutable std::mutex waiting_mutex_;  // held briefly: loops take it
  std::map<std::string, std::uint64_t> blocks_made_;
  std::vector<WaitingBlock> waiting_;
  std::atomic<bool> any_waiting_{false};
  std::atomic<std::uint64_t> blocks_refused_{0};

  Published<Known> known_;
};

}  // namespace weir
