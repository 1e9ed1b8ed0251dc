// The memory table: fifty million buckets in flat memory, charged without a lock.
//
// In: a key, a limit, a cost, now. Out: a decision. A key's 64-bit keyed hash h is its identity: the probability that
// any two of 50 million keys share a bucket is 7e-5. The top bits of h select one of a fixed number of groups. A group
// is a small open-addressed array of slots (layout.h) that is rebuilt in other pages when it grows, shrinks or is
// cleaned.
//
// Invariants
// 1. A thread that inserts, moves or forgets a key holds the lock of the key's group. So at most one slot that is
//    reachable through the group's record and not BUSY holds h.
// 2. A hit needs no lock. A slot's word w encodes h, so a compare-and-swap from w succeeds only on a slot that holds h
//    with that state. A stale record, a stale page or a reused slot can only make it fail or miss.
// 3. An insert re-checks a miss under the group lock. A reader accepts a miss only if the group's record has not
//    changed since before the search.
// 4. A key is forgotten only when its TAT is before the horizon, and a miss is decided at or after the horizon. So a
//    thread with an old clock reading cannot spend a forgotten bucket twice.
// 5. A slot is 0 only in a new page, until its first use. A key goes into the first free or dead slot at or after its
//    home. So a search may stop at the first line with a slot that was never used.
// A denial writes nothing. A lost race is retried, never dropped.
//
// Thread safety: every function may be called from any thread at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "weir/base/clock.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/core/decision.h"
#include "weir/core/key.h"
#include "weir/core/limit.h"
#include "weir/core/quota.h"
#include "weir/store/memory/layout.h"
#include "weir/store/memory/names.h"
#include "weir/store/memory/pages.h"

namespace weir {

class Table {
 public:
  struct Options {
    std::uint64_t buckets_max = 50'000'000;  // beyond this, the nearby bucket closest to full is evicted, and counted
    bool names = false;                      // keep the text of each key, so that buckets can be listed
    bool huge_pages = true;  // request 2 MiB pages once the table is large; only maintain() populates them
  };

  // Counted since the table was opened. `evicted` counts over the life of the state.
  struct Stats {
    std::uint64_t buckets = 0;     // slots in use, including expired ones until they are cleaned
    std::uint64_t bytes = 0;       // memory allocated from the system
    std::uint64_t evicted = 0;     // evicted before they were full because the table is full
    std::uint64_t lost_races = 0;  // retries after a lost compare-and-swap, or after a state changed during a denial
    std::uint64_t waits = 0;       // retries because a slot was being moved or claimed
    std::uint64_t rebuilds = 0;
    std::uint64_t moved = 0;
    std::uint64_t refused_growth = 0;  // a group could not allocate memory to grow and evicted instead
  };

  // The current state of one bucket, for lists and snapshots. `name` is empty if names are not kept.
  struct Bucket {
    std::uint64_t h;
    Kind kind;
    State state;
    std::string_view name;
  };

  struct Recovery {
    std::uint64_t buckets = 0;
    std::uint64_t unfinished = 0;  // claims undone and moves unmarked; none had been reported to a caller
    std::uint64_t dropped = 0;     // slots whose content this table cannot have written
  };

  static Result<void> check(const Options& options);
  static Result<HashKey> fresh_seed();

  // Creates a table in its own memory, with a new secret seed unless one is given.
  static Result<std::unique_ptr<Table>> create(const Options& options);
  static Result<std::unique_ptr<Table>> create(const Options& options, HashKey seed);
  // Creates a table in the region of an empty file.
  static Result<std::unique_ptr<Table>> create(const Options& options, HashKey seed, Region region);
  // Takes over the table that an earlier process left in a region, whatever it was doing when it died. REQUIRES: the
  // caller has checked the header.
  static Result<std::unique_ptr<Table>> recover(Region region, bool huge_pages, Now now, Recovery& recovery);

  // Returns the address space that a table with these options needs.
  static std::size_t region_bytes(const Options& options) noexcept;

  // Returns the key's identity. The functions below take it, so that a caller can hash once and use it several times.
  std::uint64_t hash(const Key& key) const noexcept;

  // How to treat a TAT that this limit cannot have written (gcra::settle), and whether to write the settled TAT. The
  // clock is read only for such a TAT. Without a clock, the TAT counts as that of an empty bucket and stays unchanged.
  struct Settling {
    Time since = Time::max();
    const Clock* clock = nullptr;
    bool writes = true;
  };

  // REQUIRES: h == hash(key), cost >= 0.
  Decision spend(std::uint64_t h, const Key& key, const Limit& limit, Count cost, Time now) noexcept {
    return spend(h, key, limit, cost, now, Settling{});
  }
  Decision spend(std::uint64_t h, const Key& key, const Limit& limit, Count cost, Time now, Settling settling) noexcept;
  Decision peek(std::uint64_t h, const Limit& limit, Count cost, Time now) noexcept {
    return peek(h, limit, cost, now, Settling{});
  }
  Decision peek(std::uint64_t h, const Limit& limit, Count cost, Time now, Settling settling) noexcept;
  Decision refund(std::uint64_t h, const Limit& limit, Count cost, Time now) noexcept {
    return refund(h, limit, cost, now, Settling{});
  }
  Decision refund(std::uint64_t h, const Limit& limit, Count cost, Time now, Settling settling) noexcept;
  // The same for quotas.
  Decision spend(std::uint64_t h, const Key& key, const Quota& quota, Count cost, Now now) noexcept;
  Decision peek(std::uint64_t h, const Quota& quota, Count cost, Now now) noexcept;
  Decision refund(std::uint64_t h, const Quota& quota, Count cost, Now now) noexcept;

  // Forgets the bucket. Returns false if it was already full.
  bool reset(std::uint64_t h, Kind kind, Now now) noexcept;

  // Takes back a spend whose request another limit denied: at most what the refill has not returned since.
  void undo(std::uint64_t h, const Limit& limit, Count cost, Time spent_at, const Clock& clock) noexcept;
  // For a quota: only if its bucket is still in the window that was charged.
  void undo(std::uint64_t h, const Quota& quota, Count cost, Wall window_end) noexcept;

  // One spend of a batch, from a limit's bucket. Call hash() before spend_batch(). It fills in `h`, which may determine
  // the limit.
  struct Spend {
    std::string_view key;
    const Limit* limit;
    Count cost;
    Settling settling{};
    std::uint64_t h = 0;
  };
  // Hashes all keys and prefetches their groups.
  void hash(std::span<Spend> asked) const noexcept;
  // Decides one spend after another at one reading of the clock and writes out[0], out[1], …. The result is the same as
  // with separate spends, but all lines are prefetched at once.
  void spend_batch(std::span<const Spend> asked, Time now, Decision* out) noexcept;

  // Prefetch a key's memory, so that a batch waits for all keys at once. Call the first for every key, then the second
  // for every key.
  void prefetch_group(std::uint64_t h) const noexcept;
  void prefetch_line(std::uint64_t h) const noexcept;

  // Keeps a bucket and its name for at least this long after it is full. Thread-safe. A shorter time takes effect with
  // the next maintain().
  void keep_idle(Duration at_least) noexcept { idle_.store(at_least.count(), std::memory_order_relaxed); }

  // Call it off the request path. Cleans and shrinks the next `groups_max` groups, prepares memory for growth and
  // returns memory to the system. Returns true when a pass over all groups is complete.
  bool maintain(Now now, std::size_t groups_max = 64) noexcept;

  // Visits every live bucket of one group, 0 <= group < groups(), under its lock: no bucket is seen twice or missed.
  // `visit` must not call the table.
  void visit(std::size_t group, const std::function<void(const Bucket&)>& visit) const;
  std::size_t groups() const noexcept { return groups_count_; }
  // Returns the group of a hash. A higher hash never has a lower group, so lists can be in hash order.
  std::size_t group_of(std::uint64_t h) const noexcept { return index_of(h); }
  // Inserts a bucket that visit() returned. REQUIRES: the table has the same seed and serves no requests yet.
  void restore(const Bucket& bucket, Now now) noexcept;
  // Makes room for this many buckets. Call it before restore(): buckets that arrive in the order of visit() would crowd
  // the front of every group that still has to grow, which takes quadratic time.
  void reserve(std::uint64_t buckets) noexcept;

  Stats stats() const noexcept;
  Header& header() const noexcept { return *header_; }
  const Region& region() const noexcept { return pages_.region(); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

 private:
  // The result of one operation on a state.
  struct Change {
    State state;
    bool write;
  };

  // One reading of the header's horizons.
  struct Horizons {
    std::int64_t time;
    std::int64_t wall;
  };

  struct Victim {
    Slot* slot = nullptr;
    std::uint64_t word = 0;
    std::uint64_t tenant = 0;
    Duration wait{};  // until it is full

    void consider(Slot& candidate, std::uint64_t its_word, std::uint64_t its_tenant, Now now) noexcept;
  };

  // The part of a group that need not survive the process.
  struct Side {
    mutable std::mutex lock;
    std::uint32_t used = 0;        // slots that are not 0
    std::uint32_t counted = 0;     // those of them that are counted in buckets_
    std::uint32_t names_dead = 0;  // entries of the name log whose bucket is gone
    std::uint32_t patience = 0;    // inserts to wait before asking for pages again after a failure
  };

  Table(Region region, std::size_t groups, bool huge_pages);
  bool format(const Options& options, HashKey seed) noexcept;
  bool adopt_group(std::size_t index, Now now, Recovery& recovery) noexcept;
  void recover_slot(std::size_t index, Slot& slot, Now now, Recovery& recovery) noexcept;

  std::size_t index_of(std::uint64_t h) const noexcept;
  std::uint32_t home(std::uint64_t h, Shape shape) const noexcept;
  Slot* line(const Group& group, Shape shape, std::uint32_t number) const noexcept;
  Slot* find(const Group& group, Shape shape, std::uint64_t h, std::uint32_t* slot_number = nullptr) const noexcept;
  Slot* find_locked(std::size_t index, std::uint64_t h) const noexcept;
  Horizons horizons() const noexcept;
  bool dead(std::uint64_t word, std::uint64_t h) const noexcept { return dead(word, h, horizons()); }
  static bool dead(std::uint64_t word, std::uint64_t h, const Horizons& horizons) noexcept;
  void raise_horizon(Now now) noexcept;

  // Where a search starts, and the shape from which that was computed. What is found there is valid only while the
  // group has exactly that shape.
  struct Home {
    Shape shape;
    Slot* line;
  };
  Home home_of(std::uint64_t h) const noexcept;

  // The common case is a hit in the line where the search starts. Only that part is inlined into every operation, so
  // that neither a call nor a copy of the decision lies between two waits for memory.
  template <class Step>
  [[gnu::always_inline]] inline void update(std::uint64_t h, Key key, Home home, Now now, Step&& step) noexcept;
  template <class Step>
  [[gnu::always_inline]] inline bool change(std::uint64_t h, Home home, Now now, Step&& step) noexcept;
  template <class Step>
  [[gnu::noinline]] bool insert(std::uint64_t h, Key key, Now now, Step& step) noexcept;
  [[gnu::always_inline]] inline void spend_at(Home home, std::uint64_t h, Key key, const Limit& limit, Count cost,
                                              Time now, const Settling& settling, Decision& decision) noexcept;
  void wait(std::uint64_t h) noexcept;

  // The group's lock is held in all of these.
  Slot* claim(std::size_t index, std::uint64_t h, Now now) noexcept;
  void make_room(std::size_t index) noexcept;
  bool claim_dead(std::size_t index, Slot& slot) noexcept;
  void count_one(Side& side) noexcept;
  void evict_near(std::size_t index, std::uint64_t h, Now now, bool crammed) noexcept;
  bool forget(std::size_t index, const Victim& victim) noexcept;
  std::uint32_t count_live(const Group& group, Shape shape) const noexcept;
  template <class Choose>
  bool rebuild(std::size_t index, Choose choose) noexcept;
  static std::uint32_t mark(Slot* slots, const Horizons& horizons) noexcept;
  bool move(Group& group, Slot& from, Shape to, const Horizons& horizons) noexcept;
  bool scattered(const Group& group, Shape shape) noexcept;
  void fit(std::size_t index) noexcept;
  void remember_name(std::size_t index, std::uint64_t h, Key key) noexcept;
  void compact_names(std::size_t index) noexcept;

  Pages pages_;
  Header* header_;
  Group* groups_;
  std::size_t groups_count_;
  std::unique_ptr<Side[]> sides_;
  std::unique_ptr<Names> names_;      // null: names are not kept
  std::size_t next_to_maintain_ = 0;  // used only by maintain()
  std::mutex maintaining_;
  std::atomic<std::uint64_t> buckets_{0};
  std::atomic<std::int64_t> idle_{0};  // relaxed: any value read, however old, is one that was set
  std::atomic<std::uint64_t> lost_races_{0};
  std::atomic<std::uint64_t> waits_{0};
  std::atomic<std::uint64_t> rebuilds_{0};
  std::atomic<std::uint64_t> moved_{0};
  std::atomic<std::uint64_t> refused_growth_{0};
};

}  // namespace weir
