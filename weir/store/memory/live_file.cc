#include "weir/store/memory/live_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/files.h"
#include "weir/store/memory/checksum.h"
#include "weir/store/memory/layout.h"

namespace weir {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;

Error in_use(const std::string& path) {
  return Error{Fault::unavailable, path + ": another process is using this state"};
}

}  // namespace

Result<LiveFile> LiveFile::lock(const std::string& path) {
  // Its owner may replace the file between open() and flock(); then the lock is on a file that is no longer at the
  // path.
  constexpr int kTries = 8;
  for (int tries = 0; tries < kTries; ++tries) {
    LiveFile file;
    file.path_ = path;
    file.fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (file.fd_ < 0) return system_error(path, "open");
    struct stat status {};
    if (fstat(file.fd_, &status) != 0) return system_error(path, "open");
    if (!S_ISREG(status.st_mode)) return Error{Fault::invalid, path + ": is not a regular file"};
    if (flock(file.fd_, LOCK_EX | LOCK_NB) != 0)
      return errno == EWOULDBLOCK ? in_use(path) : system_error(path, "lock");
    if (!is_same_file(file.fd_, path)) continue;
    (void)fchmod(file.fd_, 0600);  // it contains the seed and clients' names; may fail if another user owns it
    return file;
  }
  return in_use(path);
}

Result<LiveFile> LiveFile::replacement(const std::string& path) {
  LiveFile file;
  file.path_ = path;
  const std::string temporary = path + ".new";
  // The holder of the path's lock owns this name too, so an existing file was left by a killed process.
  (void)unlink(temporary.c_str());
  file.fd_ = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file.fd_ < 0) return system_error(temporary, "create");
  file.temporary_ = temporary;
  if (flock(file.fd_, LOCK_EX | LOCK_NB) != 0) return system_error(temporary, "lock");
  return file;
}

LiveFile::LiveFile(LiveFile&& other) noexcept {
  *this = std::move(other);
}

LiveFile& LiveFile::operator=(LiveFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(fd_, other.fd_);
  return *this;
}

LiveFile::~LiveFile() {
  if (!temporary_.empty()) (void)unlink(temporary_.c_str());
  if (fd_ >= 0) close(fd_);
}

Result<void> LiveFile::install() {
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return system_error(path_, "replace");
  temporary_.clear();
  return sync_directory(path_);
}

Result<std::size_t> LiveFile::bytes() const {
  struct stat status {};
  if (fstat(fd_, &status) != 0) return system_error(path_, "read");
  return static_cast<std::size_t>(status.st_size);
}

// Returns the data at `from`, up to the next hole, if it can be read through the mapping. A hole would allocate memory
// when read, and data that the system cannot read would raise SIGBUS.
std::string_view LiveFile::mapped_data(const Region& region, std::size_t from) const noexcept {
  const off_t hole = lseek(fd_, static_cast<off_t>(from), SEEK_HOLE);  // `from` itself if it is in a hole
  const std::size_t to = std::min(static_cast<std::size_t>(std::max<off_t>(hole, 0)), region.ready());
  if (to <= from || !region.make_readable(from, to)) return {};
  return {region.data() + from, to - from};
}

Result<std::uint64_t> LiveFile::checksum(const Region* mapped) const {
  const auto buffer = std::make_unique<char[]>(kReadBytes);
  Checksum checksum;
  for (off_t at = 0;;) {
    // The header is always copied, because its seal is not part of the checksum.
    if (mapped != nullptr && at > 0) {
      const std::string_view data = mapped_data(*mapped, static_cast<std::size_t>(at));
      checksum.add(data);
      at += static_cast<off_t>(data.size());
    }
    const ssize_t got = pread(fd_, buffer.get(), kReadBytes, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path_, "read");
    if (got == 0) return checksum.value();
    if (at == 0 && got >= static_cast<ssize_t>(sizeof(Header)))
      std::memset(buffer.get() + offsetof(Header, seal), 0, sizeof(Header::seal));
    checksum.add(std::string_view(buffer.get(), static_cast<std::size_t>(got)));
    at += got;
  }
}

}  // namespace weir
