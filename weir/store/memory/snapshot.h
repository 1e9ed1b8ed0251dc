// A copy of a table's buckets in a file that survives a reboot and a power loss. Each bucket is copied at some instant
// while the file is written; hashes use the table's own seed. The snapshot is written to a temporary file and renamed,
// so the path names a complete snapshot or none. It is read once, front to back, in bounded memory, and refused as a
// whole if one bit is wrong.
//
//   file   = Head, records, u64 records, u64 checksum of everything before it
//   record = u64 h, u64 kind (bit 62) and state, and if names are kept u16 length and the name
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/store/memory/checksum.h"
#include "weir/store/memory/table.h"

namespace weir {

struct SnapshotWritten {
  std::uint64_t buckets = 0;
  std::uint64_t bytes = 0;
};

// Copies group by group, so that no request waits longer than copying one group takes. Call it off the request path,
// because it writes and syncs a file. Omits buckets that are full at `now`.
Result<SnapshotWritten> write_snapshot(const Table& table, const std::string& path, Now now);

class SnapshotReader {
 public:
  struct Head {
    char magic[8];
    std::uint32_t version;
    std::uint32_t names;  // 1: records have names
    std::uint64_t buckets_max;
    HashKey seed;
    std::int64_t time;  // when it was written, on the timeline of its TATs
    std::int64_t wall;  // the same moment on the wall clock
    std::uint64_t evicted;
  };

  // Fault::unknown: there is no such file. Fault::invalid: this program cannot read it as a snapshot; the detail
  // completes "it is refused, because". Fault::unavailable: the system cannot open or read it.
  static Result<SnapshotReader> open(const std::string& path);
  // Takes ownership of the descriptor.
  static Result<SnapshotReader> read(int fd);

  SnapshotReader(SnapshotReader&& other) noexcept;
  SnapshotReader& operator=(SnapshotReader&&) = delete;
  ~SnapshotReader();

  const Head& head() const noexcept { return head_; }

  // Inserts every bucket that is not full at `now` into a new table with the same seed, with each TAT moved by `shift`.
  // Call it once. After an error the table has only part of the snapshot and must be discarded. Returns the number of
  // buckets inserted.
  Result<std::uint64_t> restore(Table& table, Duration shift, Now now);

 private:
  explicit SnapshotReader(int fd);
  Result<void> read_head();
  std::uint64_t records() const;
  Result<std::string_view> take(std::size_t bytes);
  Result<bool> restore_one(Table& table, Duration shift, Now now);

  int fd_;
  std::uint64_t bytes_ = 0;  // of the file
  std::uint64_t left_ = 0;   // bytes not yet taken, without the two numbers at the end
  Head head_{};
  std::unique_ptr<char[]> buffer_;
  std::size_t from_ = 0;  // [from_, to_) is read and not yet taken
  std::size_t to_ = 0;
  Checksum checksum_;  // of what was taken
};

}  // namespace weir
