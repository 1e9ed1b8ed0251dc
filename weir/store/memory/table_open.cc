// Creating a table, and taking over one that an earlier process left in its file.
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/store/memory/table.h"

namespace weir {
namespace {

// Buckets per group when the table is full. Small enough to rebuild a group in a fraction of a millisecond, large
// enough that the groups' records stay in the processor's cache.
constexpr std::uint64_t kBucketsPerGroup = 12'288;

std::size_t groups_for(std::uint64_t buckets_max) {
  return static_cast<std::size_t>((buckets_max + kBucketsPerGroup - 1) / kBucketsPerGroup);
}

// Address space for a bucket's slot and for its name.
constexpr std::uint64_t kSlotBytesPerBucket = 64;
constexpr std::uint64_t kNameBytesPerBucket = 128;

// Where the chunks start.
std::size_t pages_begin(std::size_t groups) {
  const std::size_t bytes = kHeaderBytes + groups * sizeof(Group);
  return (bytes + Pages::kChunkBytes - 1) / Pages::kChunkBytes * Pages::kChunkBytes;
}

// Requires two chunks: one to use, and the last one, which is never used.
bool holds_pages(const Region& region, std::size_t groups) {
  return region.bytes_max() >= pages_begin(groups) + 2 * Pages::kChunkBytes;
}

}  // namespace

Result<HashKey> Table::fresh_seed() {
  HashKey seed;
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
    return Error{Fault::unavailable, "cannot get random bytes for the table's seed"};
  }
  return seed;
}

Result<void> Table::check(const Options& options) {
  if (options.buckets_max >= 1 && options.buckets_max <= bounds::buckets_max) return {};
  return Error{Fault::invalid, "max_buckets " + std::to_string(options.buckets_max) + " must be from 1 to " +
                                   std::to_string(bounds::buckets_max)};
}

std::size_t Table::region_bytes(const Options& options) noexcept {
  // Address space, not memory. A bucket takes 22 to 32 bytes, twice that while its group is rebuilt, and its name up to
  // a line or two. The last chunk is never used, because a stale reader may read past a page's end.
  const std::uint64_t per_bucket = options.names ? kSlotBytesPerBucket + kNameBytesPerBucket : kSlotBytesPerBucket;
  const std::size_t groups = groups_for(options.buckets_max);
  return pages_begin(groups) + groups * 8 * kLineBytes + static_cast<std::size_t>(options.buckets_max * per_bucket) +
         64 * Pages::kChunkBytes;
}

Table::Table(Region region, std::size_t groups, bool huge_pages)
    : pages_(std::move(region), pages_begin(groups), huge_pages),
      header_(reinterpret_cast<Header*>(pages_.data())),
      groups_(reinterpret_cast<Group*>(pages_.data() + kHeaderBytes)),
      groups_count_(groups),
      sides_(std::make_unique<Side[]>(groups)) {}

Result<std::unique_ptr<Table>> Table::create(const Options& options) {
  const auto seed = fresh_seed();
  if (!seed) return seed.error();
  return create(options, *seed);
}

Result<std::unique_ptr<Table>> Table::create(const Options& options, HashKey seed) {
  if (auto checked = check(options); !checked) return checked.error();
  auto region = Region::anonymous(region_bytes(options));
  if (!region) return region.error();
  return create(options, seed, std::move(*region));
}

Result<std::unique_ptr<Table>> Table::create(const Options& options, HashKey seed, Region region) {
  if (auto checked = check(options); !checked) return checked.error();
  const std::size_t groups = groups_for(options.buckets_max);
  if (!holds_pages(region, groups) || !region.extend(pages_begin(groups)))
    return Error{Fault::unavailable, "not enough memory for a table of " + std::to_string(groups) + " groups"};
  std::unique_ptr<Table> table(new Table(std::move(region), groups, options.huge_pages));
  if (!table->format(options, seed))
    return Error{Fault::unavailable, "not enough memory for the first page of every group"};
  return table;
}

// Gives every group its smallest shape, so that a key always has a place, whatever fails later.
bool Table::format(const Options& options, HashKey seed) noexcept {
  for (std::size_t i = 0; i < groups_count_; ++i) {
    const Shape shape = Shape::of(Shape::kPagesMin, 0);
    std::array<Line, Shape::kPagesMin> pages{};
    if (!pages_.allocate(0, pages)) return false;
    for (unsigned p = 0; p < pages.size(); ++p) groups_[i].page[0][p].store(pages[p], std::memory_order_relaxed);
    groups_[i].shape.store(shape.bits, std::memory_order_release);
  }
  header_->version = kFormatVersion;
  header_->groups = static_cast<std::uint32_t>(groups_count_);
  header_->buckets_max = options.buckets_max;
  header_->seed = seed;
  header_->names = options.names ? 1 : 0;
  if (options.names) names_ = std::make_unique<Names>(pages_, options.buckets_max * kNameBytesPerBucket);
  // Written last; the fence keeps the compiler from reordering it. A file without the magic was never a complete table.
  std::atomic_signal_fence(std::memory_order_release);
  std::memcpy(header_->magic, kMagic, sizeof kMagic);
  return true;
}

Result<std::unique_ptr<Table>> Table::recover(Region region, bool huge_pages, Now now, Recovery& recovery) {
  const auto* const header = reinterpret_cast<const Header*>(region.data());
  const std::size_t groups = groups_for(header->buckets_max);
  if (header->buckets_max > bounds::buckets_max || groups == 0 || groups != header->groups ||
      region.ready() < pages_begin(groups) || !holds_pages(region, groups)) {
    return Error{Fault::invalid, "its header does not fit its size"};
  }
  std::unique_ptr<Table> table(new Table(std::move(region), groups, huge_pages));
  if (table->header_->names != 0) {
    table->names_ = std::make_unique<Names>(table->pages_, table->header_->buckets_max * kNameBytesPerBucket);
  }
  for (std::size_t i = 0; i < groups; ++i) {
    if (!table->adopt_group(i, now, recovery))
      return Error{Fault::invalid, "group " + std::to_string(i) + " of " + std::to_string(groups) + " is damaged"};
  }
  // Only after all pages of slots are adopted, so that a damaged name log cannot claim one of them.
  for (std::size_t i = 0; table->names_ != nullptr && i < groups; ++i) {
    std::uint32_t entries = 0;
    if (!table->names_->adopt(table->groups_[i], entries)) ++recovery.dropped;
    Side& side = table->sides_[i];
    side.names_dead = entries > side.used ? entries - side.used : 0;
  }
  table->pages_.finish_adopting();
  return table;
}

bool Table::adopt_group(std::size_t index, Now now, Recovery& recovery) noexcept {
  const Group& group = groups_[index];
  const Shape shape{group.shape.load(std::memory_order_relaxed)};
  if (shape.pages() < Shape::kPagesMin || shape.pages() > Shape::kPagesMax || shape.order() > Pages::kOrderMax)
    return false;
  for (unsigned i = 0; i < shape.pages(); ++i) {
    if (!pages_.adopt(shape.order(), group.page[shape.bank()][i].load(std::memory_order_relaxed))) return false;
  }
  for (std::uint32_t number = 0; number < shape.lines(); ++number) {
    Slot* const slots = line(group, shape, number);
    for (unsigned i = 0; i < kSlotsPerLine; ++i) recover_slot(index, slots[i], now, recovery);
  }
  buckets_.fetch_add(sides_[index].counted, std::memory_order_relaxed);
  return true;
}

void Table::recover_slot(std::size_t index, Slot& slot, Now now, Recovery& recovery) noexcept {
  const std::uint64_t h = slot.fingerprint.load(std::memory_order_relaxed);
  const std::uint64_t found = slot.word.load(std::memory_order_relaxed);
  // A rebuild that did not finish leaves the state under its mark. A claim that did not finish leaves no state, and its
  // spend was not acknowledged.
  if ((found & kBusy) != 0) ++recovery.unfinished;
  std::uint64_t word = found & ~kBusy;
  if (h == 0) {
    if (found != 0) slot.word.store(0, std::memory_order_relaxed);
    return;
  }
  Side& side = sides_[index];
  ++side.used;
  const State state = decode(word, h);
  const auto latest = static_cast<State>((now.time.time_since_epoch() + bounds::window_max).count());
  const bool possible = index_of(h) == index && (kind_of(word) == Kind::quota || state <= latest);
  if (word == 0 || state == 0 || !possible) {
    if (word != 0 && state != 0) ++recovery.dropped;
    // The slot stays as an evicted bucket, because searches for other keys must not end here.
    word = encode(State{0}, h, Kind::bucket);
  } else {
    ++side.counted;
    if (!dead(word, h)) ++recovery.buckets;
  }
  // Write only if it differs, so that opening a large file does not dirty every page.
  if (word != found) slot.word.store(word, std::memory_order_relaxed);
}

void Table::remember_name(std::size_t index, std::uint64_t h, Key key) noexcept {
  if (names_ == nullptr || names_->append(groups_[index], h, key.text)) return;
  // There is no room. Compact only if that frees a good part of the log, not for every name.
  const Side& side = sides_[index];
  if (side.names_dead <= side.counted / 4) return;
  compact_names(index);
  names_->append(groups_[index], h, key.text);
}

// Drops the entries of buckets that are gone, and all but one entry of a key that came back.
void Table::compact_names(std::size_t index) noexcept {
  if (names_ == nullptr) return;
  const Group& group = groups_[index];
  const Shape shape{group.shape.load(std::memory_order_relaxed)};
  std::array<std::uint64_t, Shape::kSlotsMax / 64> named{};
  names_->compact(groups_[index], [&](std::uint64_t h) {
    std::uint32_t number = 0;
    const Slot* const slot = find(group, shape, h, &number);
    if (slot == nullptr || dead(slot->word.load(std::memory_order_relaxed), h)) return false;
    const std::uint64_t bit = std::uint64_t{1} << (number % 64);
    return (std::exchange(named[number / 64], named[number / 64] | bit) & bit) == 0;
  });
  sides_[index].names_dead = 0;
}

void Table::visit(std::size_t index, const std::function<void(const Bucket&)>& visit) const {
  const std::lock_guard lock(sides_[index].lock);
  const Group& group = groups_[index];
  std::unordered_map<std::uint64_t, std::string_view> names;
  if (names_ != nullptr) names_->visit(group, [&](std::uint64_t h, std::string_view name) { names[h] = name; });
  const Shape shape{group.shape.load(std::memory_order_relaxed)};
  for (std::uint32_t number = 0; number < shape.lines(); ++number) {
    const Slot* const slots = line(group, shape, number);
    for (unsigned i = 0; i < kSlotsPerLine; ++i) {
      const std::uint64_t word = slots[i].word.load(std::memory_order_acquire);
      const std::uint64_t h = slots[i].fingerprint.load(std::memory_order_relaxed);
      if (word == 0 || dead(word, h)) continue;
      const auto name = names.find(h);
      visit({h, kind_of(word), decode(word, h), name != names.end() ? name->second : std::string_view{}});
    }
  }
}

void Table::restore(const Bucket& bucket, Now now) noexcept {
  const std::size_t index = index_of(bucket.h);
  const std::lock_guard lock(sides_[index].lock);
  if (find_locked(index, bucket.h) != nullptr) return;
  Slot* const slot = claim(index, bucket.h, now);
  if (!bucket.name.empty()) remember_name(index, bucket.h, Key{bucket.name, bucket.kind});
  slot->fingerprint.store(bucket.h, std::memory_order_release);
  slot->word.store(encode(bucket.state, bucket.h, bucket.kind), std::memory_order_release);
}

}  // namespace weir
