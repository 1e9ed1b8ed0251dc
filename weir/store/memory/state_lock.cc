#include "weir/store/memory/state_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "weir/base/files.h"

namespace weir {

Result<StateLock> StateLock::take(const std::string& path, const std::function<bool()>& wait) {
  const std::string name = path + ".lock";
  StateLock lock(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!lock.is_held()) return system_error(name, "open");
  struct stat status {};
  if (fstat(lock.fd_, &status) != 0) return system_error(name, "open");
  if (!S_ISREG(status.st_mode)) return Error{Fault::invalid, name + ": is not a regular file"};
  while (flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return system_error(name, "lock");
    if (!wait()) return Error{Fault::unavailable, path + ": another process is using this state"};
  }
  return lock;
}

StateLock::StateLock(StateLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

StateLock& StateLock::operator=(StateLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

StateLock::~StateLock() {
  release();
}

void StateLock::release() noexcept {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

}  // namespace weir
