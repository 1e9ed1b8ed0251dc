// A log of the texts of a group's keys: a chain of pages, the newest first, separate from the slots and written only
// when a bucket is created. An entry may outlive its bucket, and a key that was forgotten and came back has two. A
// reader of the log asks the table which keys are alive.
//
// Thread safety: the group's lock is held in every call. After every single write, adopt() can read the log.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "weir/store/memory/layout.h"
#include "weir/store/memory/pages.h"

namespace weir {

class Names {
 public:
  // All logs together take at most `bytes_max`, so that long names never use up the space for slots.
  Names(Pages& pages, std::size_t bytes_max) noexcept : pages_(pages), bytes_max_(bytes_max) {}

  // Returns false if there is no room. Then the name is not kept; its bucket still works and is listed without a name.
  bool append(Group& group, std::uint64_t h, std::string_view name) noexcept;
  void visit(const Group& group, const std::function<void(std::uint64_t h, std::string_view name)>& visit) const;
  // Rewrites the log with the entries for which `keep` returns true. The old and the new log briefly coexist and may
  // exceed the bound.
  void compact(Group& group, const std::function<bool(std::uint64_t h)>& keep);
  // After a restart: marks the log's pages as in use and counts its entries. At the first invalid page or entry, drops
  // the rest of the log and returns false.
  bool adopt(Group& group, std::uint32_t& entries) noexcept;

 private:
  struct Page;

  Page* at(Line line) const noexcept;
  std::uint32_t next_order(std::uint32_t head) const noexcept;
  bool append_to(std::uint32_t& head, std::uint64_t h, std::string_view name, std::size_t bytes_max) noexcept;
  void release(std::uint32_t head) noexcept;

  Pages& pages_;
  std::size_t bytes_max_;
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace weir
