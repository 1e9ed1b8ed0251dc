#include "weir/cli/output.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "weir/base/ascii.h"
#include "weir/base/printable.h"
#include "weir/base/text.h"

namespace weir::cli {
namespace {

constexpr std::size_t kBufferBytes = 64u << 10;

bool has_text(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool terminal_has_cursor() {
  return has_text("TERM") && std::string_view(std::getenv("TERM")) != "dumb";
}

std::string_view code(Paint paint) {
  constexpr std::string_view kCodes[] = {"\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"};
  return kCodes[static_cast<std::size_t>(paint)];
}

}  // namespace

Output::Output(int descriptor)
    : descriptor_(descriptor),
      is_terminal_(isatty(descriptor) == 1),
      has_cursor_(terminal_has_cursor()),
      colors_(is_terminal_ && has_cursor_ && !has_text("NO_COLOR")) {}

ScreenSize Output::size() const noexcept {
  winsize size{};
  if (!is_terminal_ || ioctl(descriptor_, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_col, size.ws_row};
}

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
  if (!colors_ || text.empty()) return std::string(text);
  return std::string(code(paint)) + std::string(text) + "\x1b[0m";
}

void Console::print_error(std::string_view sentence) const {
  err.write(err.painted(Paint::red, "weir:") + " " + printable(sentence) + "\n");
  err.flush();
}

std::string_view without_newline(std::string_view json) noexcept {
  if (json.ends_with('\n')) json.remove_suffix(1);
  return json;
}

void write_json(std::string_view json, Output& out) {
  if (!out.is_terminal()) return out.write(json);
  std::string text;
  for (std::size_t at = 0; at < json.size();) {
    const auto first = static_cast<unsigned char>(json[at]);
    std::size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    length = std::min(length, json.size() - at);
    const std::string_view character = json.substr(at, length);
    at += length;
    if (character == "\n" || printable(character) == character) {
      text += character;
      continue;
    }
    std::uint32_t point = length == 1 ? first : first & (0xFFu >> (length + 1));
    for (const char c : character.substr(1)) point = point << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
    text += "\\u";
    append_hex(static_cast<unsigned char>(point >> 8), text);
    append_hex(static_cast<unsigned char>(point), text);
  }
  if (!text.ends_with('\n')) text += '\n';
  out.write(text);
}

}  // namespace weir::cli
