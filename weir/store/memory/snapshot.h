// A table's buckets in a file that survives a reboot and a loss of power: as they stood within the moments of writing,
// under the table's own seed. Written beside and renamed, so that the path names a whole snapshot or none; read once,
// front to back, in bounded memory, and refused whole if one bit is wrong.
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

// Group by group, so that no request waits for longer than a group takes to copy; off the request path, because it
// writes and syncs. Buckets that are full at `now` are left out.
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

  // Fault::unknown: there is no such file. Fault::invalid: it is no snapshot that this program can read, and the detail
  // completes "it is refused, because". Fault::unavailable: the system would not give it.
  static Result<SnapshotReader> open(const std::string& path);
  // Takes the descriptor.
  static Result<SnapshotReader> read(int fd);

  SnapshotReader(SnapshotReader&& other) noexcept;
  SnapshotReader& operator=(SnapshotReader&&) = delete;
  ~SnapshotReader();

  const Head& head() const noexcept { return head_; }

  // Puts every bucket that is not full at `now` into a new table under the same seed, each TAT moved by `shift`; to be
  // called once. After an error, or before the end, the table holds half a snapshot and must be thrown away. Returns
  // how many buckets were put in.
  Result<std::uint64_t> restore(Table& table, Duration shift, Now now);

 private:
  explicit SnapshotReader(int fd);
  Result<void> read_head();
  std::uint64_t records() const;
  Result<std::string_view> take(std::size_t bytes);
  Result<bool> restore_one(Table& table, Duration shift, Now now);

  int fd_;
  std::uint64_t bytes_ = 0;  // of the file
  std::uint64_t left_ = 0;   // of it, before the two numbers at its end, not yet taken
  Head head_{};
  std::unique_ptr<char[]> buffer_;
  std::size_t from_ = 0;  // what is read and not yet taken
  std::size_t to_ = 0;
  Checksum checksum_;  // of what was taken
};

}  // namespace weir
