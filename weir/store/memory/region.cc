#include "weir/store/memory/region.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace weir {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

// Returns address space aligned to a huge page, or null. All of it is readable and writable from the start: what is not
// ready reads as zeros instead of faulting.
char* reserve(std::size_t bytes) {
  const std::size_t padded = bytes + kHugePage;
  void* raw = mmap(nullptr, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(raw);
  char* const aligned =
      begin + (round_up(reinterpret_cast<std::size_t>(begin), kHugePage) - reinterpret_cast<std::size_t>(begin));
  if (aligned != begin) munmap(begin, static_cast<std::size_t>(aligned - begin));
  const std::size_t tail = padded - static_cast<std::size_t>(aligned - begin) - bytes;
  if (tail != 0) munmap(aligned + bytes, tail);
  return aligned;
}

// Retries after a signal, which must not look like a full file system. The number of retries is bounded.
bool give_blocks(int fd, std::size_t from, std::size_t to) {
  int failed = EINTR;
  for (int tries = 0; tries < 16 && failed == EINTR; ++tries) {
    failed = posix_fallocate(fd, static_cast<off_t>(from), static_cast<off_t>(to - from));
  }
  return failed == 0;
}

Error no_space(std::size_t bytes) {
  return Error{Fault::unavailable,
               "cannot reserve " + std::to_string(bytes) + " bytes of address space: " + std::strerror(errno)};
}

}  // namespace

Result<Region> Region::anonymous(std::size_t bytes_max) {
  bytes_max = round_up(bytes_max, kHugePage);
  char* const data = reserve(bytes_max);
  if (data == nullptr) return no_space(bytes_max);
  // Only populate() requests huge pages, even if the system enables them by default: the first access to one takes
  // milliseconds, and elsewhere that access would be a request's.
  madvise(data, bytes_max, MADV_NOHUGEPAGE);
  return Region(data, bytes_max, -1);
}

Result<Region> Region::shared(int fd, std::size_t bytes_max) {
  struct stat status {};
  if (fstat(fd, &status) != 0)
    return Error{Fault::unavailable, std::string("cannot read the size of the state file: ") + std::strerror(errno)};
  const std::size_t size = static_cast<std::size_t>(status.st_size) / kPage * kPage;
  bytes_max = round_up(std::max(bytes_max, size), kHugePage);
  char* const data = reserve(bytes_max);
  if (data == nullptr) return no_space(bytes_max);
  Region region(data, bytes_max, fd);
  // No fallocate: a hole stays a hole until the allocator takes it back.
  if (size != 0 && mmap(data, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
    return Error{Fault::unavailable, std::string("cannot map the state file: ") + std::strerror(errno)};
  }
  region.ready_ = size;
  return region;
}

Region::Region(Region&& other) noexcept {
  *this = std::move(other);
}

Region& Region::operator=(Region&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_max_, other.bytes_max_);
  std::swap(ready_, other.ready_);
  std::swap(fd_, other.fd_);
  return *this;
}

Region::~Region() {
  if (data_ != nullptr) munmap(data_, bytes_max_);
}

bool Region::extend(std::size_t bytes) noexcept {
  bytes = round_up(bytes, kPage);
  if (bytes <= ready_) return true;
  if (bytes > bytes_max_) return false;
  if (fd_ >= 0 && !take_back(ready_, bytes)) return false;
  ready_ = bytes;
  return true;
}

void Region::populate(std::size_t from, std::size_t to, bool huge) noexcept {
  // Best effort: if the kernel declines, requests fault in ordinary pages themselves.
  if (fd_ >= 0) {
    (void)give_blocks(fd_, from, to);
    return;
  }
  if (huge) madvise(data_ + from, to - from, MADV_HUGEPAGE);
  madvise(data_ + from, to - from, MADV_POPULATE_WRITE);
}

bool Region::make_readable(std::size_t from, std::size_t to) const noexcept {
  return madvise(data_ + from, to - from, MADV_POPULATE_READ) == 0;
}

bool Region::give_back(std::size_t from, std::size_t to) noexcept {
  if (fd_ < 0) {
    madvise(data_ + from, to - from, MADV_NOHUGEPAGE);  // the next access will be a request's
    return madvise(data_ + from, to - from, MADV_DONTNEED) == 0;
  }
  // A late reader must find zeros, not a hole in the file: accessing a hole in a full tmpfs raises SIGBUS.
  void* const zeros = mmap(data_ + from, to - from, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (zeros == MAP_FAILED) return false;  // too many mappings: the pages stay, and nothing is lost
  return fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
                   static_cast<off_t>(to - from)) == 0;
}

bool Region::take_back(std::size_t from, std::size_t to) noexcept {
  if (fd_ < 0) return true;
  if (!give_blocks(fd_, from, to)) return false;
  return mmap(data_ + from, to - from, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_, static_cast<off_t>(from)) !=
         MAP_FAILED;
}

}  // namespace weir
