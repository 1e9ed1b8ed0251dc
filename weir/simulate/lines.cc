#include "weir/simulate/lines.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace weir::simulate {
namespace {

constexpr std::size_t kReadBytes = 64u << 10;

}  // namespace

LineReader::LineReader(Read read, std::size_t line_bytes_max, std::function<void()> before_read)
    : read_(std::move(read)),
      line_bytes_max_(line_bytes_max),
      before_read_(std::move(before_read)),
      buffer_(line_bytes_max + 1 + kReadBytes, '\0') {}

LineReader::LineReader(int descriptor, std::size_t line_bytes_max, std::function<void()> before_read)
    : LineReader([descriptor](char* bytes, std::size_t size) -> long { return ::read(descriptor, bytes, size); },
                 line_bytes_max, std::move(before_read)) {}

LineReader::Got LineReader::next(std::string_view& line) {
  std::size_t searched = begin_;
  bool skipping = false;
  while (true) {
    const void* const found = std::memchr(buffer_.data() + searched, '\n', end_ - searched);
    const bool complete = found != nullptr;
    if (complete || at_end_) {
      const std::size_t stop =
          complete ? static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data()) : end_;
      line = {buffer_.data() + begin_, stop - begin_};
      if (failed_) return Got::failed;
      if (!complete && line.empty() && !skipping) return Got::end;
      begin_ = complete ? stop + 1 : stop;
      return skipping || line.size() > line_bytes_max_ ? Got::too_long : Got::line;
    }
    if (skipping || end_ - begin_ > line_bytes_max_) {
      skipping = true;
      begin_ = end_ = 0;
    }
    searched = end_ - begin_;  // fill() moves the rest to the front
    at_end_ = !fill();
  }
}

bool LineReader::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (before_read_) before_read_();
  while (true) {
    const long got = read_(buffer_.data() + end_, buffer_.size() - end_);
    if (got < 0 && errno == EINTR) continue;
    failed_ = got < 0;
    if (got <= 0) return false;
    end_ += static_cast<std::size_t>(got);
    bytes_ += static_cast<std::size_t>(got);
    return true;
  }
}

}  // namespace weir::simulate
