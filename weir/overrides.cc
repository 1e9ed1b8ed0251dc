#include "weir/overrides.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "weir/base/bounds.h"

namespace weir {
namespace {

using Words = std::array<std::uint64_t, 4>;
static_assert(sizeof(Words) == sizeof(Limit));

struct Entry {
  std::atomic<std::uint64_t> h{0};  // 0: free
  std::array<std::atomic<std::uint64_t>, 4> words{};
};

// Every store into an entry is a release and every load an acquire: a reader that sees part of a change also sees the
// version stored before that change.
void put(Entry& entry, std::uint64_t h, const Words& words) noexcept {
  for (std::size_t i = 0; i < words.size(); ++i) entry.words[i].store(words[i], std::memory_order_release);
  entry.h.store(h, std::memory_order_release);
}

Words words_of(const Entry& entry) noexcept {
  Words words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = entry.words[i].load(std::memory_order_acquire);
  return words;
}

constexpr std::size_t kEntriesMin = 16;

}  // namespace

// Open addressing with linear probing; at most half full, so that a search for a key without an override is short.
class Overrides::Copy {
 public:
  // Returns null if memory runs out.
  static std::unique_ptr<Copy> make(std::size_t entries) noexcept {
    std::unique_ptr<Entry[]> array(new (std::nothrow) Entry[entries]);
    if (array == nullptr) return nullptr;
    return std::unique_ptr<Copy>(new (std::nothrow) Copy(std::move(array), entries - 1));
  }

  std::size_t room() const noexcept { return (mask_ + 1) / 2; }

  // Returns h's entry, or the free entry where it would go. A reader of a copy that is being changed may find neither;
  // the loop is bounded so that it still terminates.
  Entry* find(std::uint64_t h) const noexcept {
    std::size_t at = h & mask_;
    for (std::size_t searched = 0; searched <= mask_; ++searched, at = (at + 1) & mask_) {
      const std::uint64_t tenant = entries_[at].h.load(std::memory_order_acquire);
      if (tenant == h || tenant == 0) return &entries_[at];
    }
    return nullptr;
  }

  void set(std::uint64_t h, const Words& words) noexcept { put(*find(h), h, words); }

  // Moves entries back into the hole if a search could no longer reach them across it.
  void remove(std::uint64_t h) noexcept {
    std::size_t hole = static_cast<std::size_t>(find(h) - entries_.get());
    for (std::size_t at = (hole + 1) & mask_;; at = (at + 1) & mask_) {
      const std::uint64_t tenant = entries_[at].h.load(std::memory_order_relaxed);
      if (tenant == 0) break;
      if (((at - tenant) & mask_) < ((at - hole) & mask_)) continue;  // its home is after the hole
      put(entries_[hole], tenant, words_of(entries_[at]));
      hole = at;
    }
    entries_[hole].h.store(0, std::memory_order_release);
  }

  // Copies the smaller table's entries and takes ownership of it, because a reader may still be using it.
  void outgrow(std::unique_ptr<Copy> smaller) noexcept {
    outgrown_ = std::move(smaller);
    if (outgrown_ == nullptr) return;
    for (std::size_t i = 0; i <= outgrown_->mask_; ++i) {
      const Entry& entry = outgrown_->entries_[i];
      const std::uint64_t h = entry.h.load(std::memory_order_relaxed);
      if (h != 0) set(h, words_of(entry));
    }
  }

 private:
  Copy(std::unique_ptr<Entry[]> entries, std::size_t mask) noexcept : entries_(std::move(entries)), mask_(mask) {}

  std::unique_ptr<Entry[]> entries_;
  std::size_t mask_;
  std::unique_ptr<Copy> outgrown_;
};

Overrides::~Overrides() {
  for (auto& copy : copies_) delete copy.load(std::memory_order_relaxed);
}

std::optional<Limit> Overrides::search(std::uint64_t h) const noexcept {
  for (;;) {
    // Acquire: makes visible what the writer did to this copy before it advanced the version.
    const std::uint64_t version = version_.load(std::memory_order_acquire);
    const Entry* const entry = copies_[version & 1].load(std::memory_order_acquire)->find(h);
    const bool found = entry != nullptr && entry->h.load(std::memory_order_acquire) == h;
    const Words words = found ? words_of(*entry) : Words{};
    // Relaxed is enough: this load cannot be reordered before the acquire loads above.
    if (version_.load(std::memory_order_relaxed) != version) continue;
    return found ? std::optional<Limit>(std::bit_cast<Limit>(words)) : std::nullopt;
  }
}

// The lock is held.
template <class Change>
void Overrides::change_both(Change change) noexcept {
  const std::uint64_t version = version_.load(std::memory_order_relaxed);
  change(copies_[(version + 1) & 1]);
  version_.store(version + 1, std::memory_order_release);
  change(copies_[version & 1]);
}

// The lock is held. Allocates both arrays before using the first, so a failed allocation cannot leave the copies
// different.
bool Overrides::reserve(std::size_t count) noexcept {
  const Copy* const present = copies_[0].load(std::memory_order_relaxed);
  if (present != nullptr && present->room() >= count) return true;
  const std::size_t entries = present == nullptr ? kEntriesMin : present->room() * 4;
  std::array<std::unique_ptr<Copy>, 2> larger{Copy::make(entries), Copy::make(entries)};
  if (larger[0] == nullptr || larger[1] == nullptr) return false;
  change_both([&, next = std::size_t{0}](std::atomic<Copy*>& copy) mutable {
    std::unique_ptr<Copy> grown = std::move(larger[next++]);
    grown->outgrow(std::unique_ptr<Copy>(copy.load(std::memory_order_relaxed)));
    copy.store(grown.release(), std::memory_order_release);
  });
  return true;
}

Result<void> Overrides::set(std::uint64_t h, const Limit& limit, Time now) noexcept {
  const std::lock_guard lock(writing_);
  const std::size_t count = size() + (find(h) ? 0 : 1);
  if (count > bounds::overrides_max)
    return Error{Fault::too_large, "a limiter has at most " + std::to_string(bounds::overrides_max) + " overrides"};
  if (!reserve(count)) return Error{Fault::unavailable, "no memory for " + std::to_string(count) + " overrides"};
  // Stored before the copies change, so a reader that finds the new limit also sees this time.
  changed_.store(std::max(now, changed()), std::memory_order_release);
  const Words words = std::bit_cast<Words>(limit);
  change_both([&](std::atomic<Copy*>& copy) { copy.load(std::memory_order_relaxed)->set(h, words); });
  size_.store(count, std::memory_order_release);
  return {};
}

bool Overrides::remove(std::uint64_t h, Time now) noexcept {
  const std::lock_guard lock(writing_);
  if (!find(h)) return false;
  changed_.store(std::max(now, changed()), std::memory_order_release);
  change_both([&](std::atomic<Copy*>& copy) { copy.load(std::memory_order_relaxed)->remove(h); });
  size_.store(size() - 1, std::memory_order_release);
  return true;
}

}  // namespace weir
