#include "weir/simulate/spool.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weir::simulate {

Spool::~Spool() {
  if (file_ >= 0) ::close(file_);
}

Spool::Spool(Spool&& other) noexcept
    : memory_max_(other.memory_max_),
      memory_(std::move(other.memory_)),
      written_(std::exchange(other.written_, 0)),
      file_(std::exchange(other.file_, -1)),
      failed_(other.failed_) {}

Error Spool::fail(const char* what) {
  const int reason = errno;
  failed_ = true;
  memory_.clear();
  written_ = 0;
  return Error{Fault::unavailable, std::string("cannot ") + what + " a temporary file: " + std::strerror(reason)};
}

Result<void> Spool::add(const SpooledRequest& request) {
  if (failed_) return {};
  memory_.push_back(request);
  return memory_.size() < memory_max_ ? Result<void>{} : write_out();
}

Result<void> Spool::write_out() {
  if (file_ < 0) {
    const char* const directory = ::getenv("TMPDIR");
    std::string path = (directory != nullptr && *directory != '\0' ? directory : "/tmp") + std::string("/weir.XXXXXX");
    file_ = ::mkostemp(path.data(), O_CLOEXEC);
    if (file_ < 0) return fail("make");
    ::unlink(path.c_str());
  }
  const char* bytes = reinterpret_cast<const char*>(memory_.data());
  std::size_t left = memory_.size() * sizeof(SpooledRequest);
  while (left > 0) {
    const ssize_t wrote = ::write(file_, bytes, left);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return fail("write");
    bytes += wrote;
    left -= static_cast<std::size_t>(wrote);
  }
  written_ += memory_.size();
  memory_.clear();
  return {};
}

Result<void> Spool::each(const std::function<bool(std::span<const SpooledRequest>)>& visit) {
  constexpr std::size_t kAtOnce = 16384;
  std::vector<SpooledRequest> read(written_ > 0 ? kAtOnce : 0);
  for (std::uint64_t done = 0; done < written_;) {
    const std::size_t wanted = std::min<std::uint64_t>(kAtOnce, written_ - done) * sizeof(SpooledRequest);
    auto* const bytes = reinterpret_cast<char*>(read.data());
    std::size_t got = 0;
    while (got < wanted) {
      const auto offset = static_cast<off_t>(done * sizeof(SpooledRequest) + got);
      const ssize_t more = ::pread(file_, bytes + got, wanted - got, offset);
      if (more < 0 && errno == EINTR) continue;
      if (more <= 0) return fail("read");
      got += static_cast<std::size_t>(more);
    }
    const std::size_t count = wanted / sizeof(SpooledRequest);
    if (!visit({read.data(), count})) return {};
    done += count;
  }
  if (!memory_.empty()) visit(memory_);
  return {};
}

}  // namespace weir::simulate
