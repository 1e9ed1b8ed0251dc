#include "weir/store/memory/names.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

#include "weir/base/bounds.h"

namespace weir {
namespace {

// An entry: the hash, the length in two bytes, the text.
constexpr std::uint32_t kEntryHead = sizeof(std::uint64_t) + sizeof(std::uint16_t);

// Atomic, because the page may have contained slots and a spender with an old record may still read it. Relaxed,
// because that spender can only miss.
void write(char* to, const void* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    std::atomic_ref<char>(to[i]).store(static_cast<const char*>(from)[i], std::memory_order_relaxed);
  }
}

}  // namespace

struct Names::Page {
  std::atomic<std::uint32_t> next;  // line of the next older page; 0: none
  std::atomic<std::uint32_t> order;
  std::atomic<std::uint32_t> used;  // bytes of entries; stored after they are written
  std::uint32_t reserved;

  char* entries() { return reinterpret_cast<char*>(this) + sizeof(Page); }
  static std::uint32_t room(std::uint32_t order) {
    return static_cast<std::uint32_t>((kLineBytes << order) - sizeof(Page));
  }
};

Names::Page* Names::at(Line line) const noexcept {
  return reinterpret_cast<Page*>(pages_.data() + std::size_t{line} * kLineBytes);
}

bool Names::append(Group& group, std::uint64_t h, std::string_view name) noexcept {
  std::uint32_t head = group.names.load(std::memory_order_relaxed);
  if (!append_to(head, h, name, bytes_max_)) return false;
  // Release: the page is complete before the log starts with it, also for a process that opens the file after a crash.
  group.names.store(head, std::memory_order_release);
  return true;
}

// Two pages of each size, then two of twice the size. So the newest page, which may be nearly empty, is at most about a
// quarter of the log. The smallest has room for a few names.
std::uint32_t Names::next_order(std::uint32_t head) const noexcept {
  if (head == 0) return 1;
  const Page& newest = *at(head);
  const bool second = newest.next != 0 && at(newest.next)->order == newest.order;
  const std::uint32_t order = newest.order.load(std::memory_order_relaxed);
  return second ? std::min(order + 1, Pages::kOrderMax) : order;
}

// Appends to the log that starts with `head`. A new page becomes the new head.
bool Names::append_to(std::uint32_t& head, std::uint64_t h, std::string_view name, std::size_t bytes_max) noexcept {
  name = name.substr(0, bounds::key_bytes_max);
  const auto length = static_cast<std::uint16_t>(name.size());
  const std::uint32_t bytes = kEntryHead + length;
  if (head == 0 || Page::room(at(head)->order) - at(head)->used.load(std::memory_order_relaxed) < bytes) {
    std::uint32_t order = next_order(head);
    while (Page::room(order) < bytes) ++order;
    Line line = 0;
    const std::size_t bytes_more = kLineBytes << order;
    if (bytes_.load(std::memory_order_relaxed) + bytes_more > bytes_max) return false;
    if (!pages_.allocate(order, std::span(&line, 1))) return false;
    bytes_.fetch_add(bytes_more, std::memory_order_relaxed);
    at(line)->next.store(head, std::memory_order_relaxed);
    at(line)->order.store(order, std::memory_order_relaxed);
    head = line;
  }
  Page* const page = at(head);
  const std::uint32_t used = page->used.load(std::memory_order_relaxed);
  char* const entry = page->entries() + used;
  write(entry, &h, sizeof h);
  write(entry + sizeof h, &length, sizeof length);
  write(entry + kEntryHead, name.data(), length);
  page->used.store(used + bytes, std::memory_order_release);
  return true;
}

void Names::visit(const Group& group, const std::function<void(std::uint64_t, std::string_view)>& visit) const {
  for (Line line = group.names.load(std::memory_order_relaxed); line != 0; line = at(line)->next) {
    char* entry = at(line)->entries();
    char* const end = entry + at(line)->used.load(std::memory_order_relaxed);
    while (entry < end) {
      std::uint64_t h = 0;
      std::uint16_t length = 0;
      std::memcpy(&h, entry, sizeof h);
      std::memcpy(&length, entry + sizeof h, sizeof length);
      visit(h, std::string_view(entry + kEntryHead, length));
      entry += kEntryHead + length;
    }
  }
}

void Names::compact(Group& group, const std::function<bool(std::uint64_t)>& keep) {
  std::uint32_t fresh = 0;
  bool complete = true;
  visit(group, [&](std::uint64_t h, std::string_view name) {
    if (complete && keep(h)) complete = append_to(fresh, h, name, std::numeric_limits<std::size_t>::max());
  });
  const std::uint32_t old = group.names.load(std::memory_order_relaxed);
  if (complete) group.names.store(fresh, std::memory_order_release);
  release(complete ? old : fresh);
}

void Names::release(std::uint32_t head) noexcept {
  while (head != 0) {
    const Line line = head;
    const std::uint32_t order = at(line)->order;
    head = at(line)->next;
    pages_.release(order, std::span(&line, 1));
    bytes_.fetch_sub(kLineBytes << order, std::memory_order_relaxed);
  }
}

bool Names::adopt(Group& group, std::uint32_t& entries) noexcept {
  std::uint32_t previous = 0;
  for (Line line = group.names.load(std::memory_order_relaxed); line != 0; line = at(line)->next) {
    Page* const page = std::size_t{line} * kLineBytes + kLineBytes <= pages_.region().ready() ? at(line) : nullptr;
    bool sound = page != nullptr && page->order <= Pages::kOrderMax &&
                 page->used.load(std::memory_order_relaxed) <= Page::room(page->order) &&
                 pages_.adopt(page->order, line);
    std::uint32_t at_byte = 0;
    while (sound && page->used.load(std::memory_order_relaxed) - at_byte >= kEntryHead) {
      std::uint16_t length = 0;
      std::memcpy(&length, page->entries() + at_byte + sizeof(std::uint64_t), sizeof length);
      sound = length <= page->used.load(std::memory_order_relaxed) - at_byte - kEntryHead;
      at_byte += kEntryHead + length;
      ++entries;
    }
    if (!sound || at_byte != page->used.load(std::memory_order_relaxed)) {
      if (previous == 0) {
        group.names.store(0, std::memory_order_relaxed);
      } else {
        at(previous)->next = 0;
      }
      return false;
    }
    previous = line;
    bytes_.fetch_add(kLineBytes << page->order, std::memory_order_relaxed);
  }
  return true;
}

}  // namespace weir
