#include "weir/cli/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace weir::cli {
namespace {

constexpr std::size_t kBufferBytes = 64u << 10;

bool has_text(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool wants_colours() {
  const char* const terminal = std::getenv("TERM");
  return !has_text("NO_COLOR") && terminal != nullptr && std::string_view(terminal) != "dumb";
}

std::string_view code(Paint paint) {
  constexpr std::string_view kCodes[] = {"\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"};
  return kCodes[static_cast<std::size_t>(paint)];
}

}  // namespace

Output::Output(int descriptor)
    : descriptor_(descriptor), is_terminal_(isatty(descriptor) == 1), colours_(is_terminal_ && wants_colours()) {}

void Output::write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) flush();
}

bool Output::flush() noexcept {
  std::string_view rest = buffer_;
  while (failure_ == 0 && !rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      // The descriptor was given to us non-blocking: wait until it is writable.
      pollfd room{descriptor_, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (errno != EINTR) {
      failure_ = errno;
    }
  }
  buffer_.clear();
  return failure_ == 0;
}

std::string Output::painted(Paint paint, std::string_view text) const {
  if (!colours_ || text.empty()) return std::string(text);
  return std::string(code(paint)) + std::string(text) + "\x1b[0m";
}

void Console::complain(std::string_view sentence) const {
  err.write(err.painted(Paint::red, "weir:") + " " + std::string(sentence) + "\n");
  err.flush();
}

}  // namespace weir::cli
