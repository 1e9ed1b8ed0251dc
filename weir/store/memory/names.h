// The texts of a group's keys, apart from the slots and touched only when a bucket is created: a chain of pages that
// are appended to, the newest first. An entry may outlive its bucket, and a key that came back has two; whoever reads
// the log asks the table which are alive.
//
// Thread safety: the group's lock is held in every call. Each store leaves a log that adopt() can read.
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
  // All logs together take at most `bytes_max`, so that long names never take the room of slots.
  Names(Pages& pages, std::size_t bytes_max) noexcept : pages_(pages), bytes_max_(bytes_max) {}

  // False if there is no room: the name is not kept, its bucket limits all the same and is listed without one.
  bool append(Group& group, std::uint64_t h, std::string_view name) noexcept;
  void visit(const Group& group, const std::function<void(std::uint64_t h, std::string_view name)>& visit) const;
  // Rewrites the log with the entries that `keep` wants. For a moment both take room, beyond the bound if need be.
  void compact(Group& group, const std::function<bool(std::uint64_t h)>& keep);
  // After a restart: takes the log's pages as in use and counts its entries. False, and the rest of the log is dropped,
  // where it makes no sense.
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
