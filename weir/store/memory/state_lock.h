// Reserves state files for one process. The snapshot and the file of run-time changes are replaced by renames, so a
// lock on the files themselves would be lost. The lock is on PATH.lock, which is created when needed and never removed.
#pragma once

#include <functional>
#include <string>

#include "weir/base/result.h"

namespace weir {

class StateLock {
 public:
  StateLock() = default;
  // Locks PATH.lock. While another process holds it, calls `wait` and tries again; gives up when `wait` returns false.
  // Errors: unavailable (another process holds it, or the system refuses), invalid (not a regular file).
  static Result<StateLock> take(const std::string& path, const std::function<bool()>& wait);

  StateLock(StateLock&& other) noexcept;
  StateLock& operator=(StateLock&& other) noexcept;
  ~StateLock();

  void release() noexcept;
  bool is_held() const noexcept { return fd_ >= 0; }

 private:
  explicit StateLock(int fd) noexcept : fd_(fd) {}

  int fd_ = -1;
};

}  // namespace weir
