#include "weir/base/log.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "weir/base/ascii.h"
#include "weir/base/clock.h"
#include "weir/base/utf8.h"

namespace weir {
namespace {

constexpr std::array<std::string_view, 6> kLevels = {"trace", "debug", "info", "warn", "error", "off"};

// "2026-11-15T14:07:31.123Z".
std::string print_instant(Wall wall) {
  const auto days = std::chrono::floor<std::chrono::days>(wall);
  const std::chrono::year_month_day date{days};
  const std::chrono::hh_mm_ss time{std::chrono::floor<std::chrono::milliseconds>(wall - days)};
  std::array<char, 64> text{};
  const int size =
      std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
                    static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                    static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                    static_cast<int>(time.seconds().count()), static_cast<int>(time.subseconds().count()));
  return {text.data(), static_cast<std::size_t>(size)};
}

// JSON escapes (RFC 8259 §7), which also keep a text line on one line. Bytes of a client's id that are not UTF-8 would
// make the line invalid.
void escape(std::string_view message, bool quoted, std::string& out) {
  while (!message.empty()) {
    const char c = message.front();
    const auto byte = static_cast<unsigned char>(c);
    const std::size_t length = utf8_length(message);
    if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      append_hex(byte, out);
    } else if (length == 0) {
      out += kReplacement;
    } else {
      if (quoted && (c == '"' || c == '\\')) out += '\\';
      out += message.substr(0, length);
    }
    message.remove_prefix(std::max<std::size_t>(length, 1));
  }
}

}  // namespace

LogLevel log_level(std::string_view word) noexcept {
  for (std::size_t i = 0; i < kLevels.size(); ++i) {
    if (kLevels[i] == word) return static_cast<LogLevel>(i);
  }
  return LogLevel::info;
}

std::string_view print(LogLevel level) noexcept {
  return kLevels[static_cast<std::size_t>(level)];
}

std::string log_line(LogFormat format, LogLevel level, Wall now, std::string_view message) {
  std::string line;
  if (format == LogFormat::json) {
    line.append(R"({"time":")").append(print_instant(now)).append(R"(","level":")").append(print(level));
    line += R"(","message":")";
    escape(message, true, line);
    line += "\"}\n";
  } else {
    line.append(print_instant(now)).append(" ").append(print(level)).append(" ");
    escape(message, false, line);
    line += '\n';
  }
  return line;
}

std::string json_log_line(LogLevel level, Wall now, std::string_view word, std::string_view fields) {
  std::string line = log_line(LogFormat::json, level, now, word);
  constexpr std::string_view kEnd = "}\n";
  line.resize(line.size() - kEnd.size());
  return line.append(fields.empty() ? "" : ",").append(fields).append(kEnd);
}

void Log::configure(LogLevel least, LogFormat format) noexcept {
  least_.store(least);
  format_.store(format);
}

void Log::write(LogLevel level, std::string_view message) {
  if (level < least_.load() || level == LogLevel::off) return;
  always(level, message);
}

void Log::always(LogLevel level, std::string_view message) {
  const std::string line = log_line(format_.load(), level, BootClock::wall(), message);
  const std::lock_guard lock(writing_);
  sink_(line);
}

void Log::always(LogLevel level, std::string_view message, std::string_view word, std::string_view fields) {
  if (format_.load() == LogFormat::text) return always(level, message);
  const std::string line = json_log_line(level, BootClock::wall(), word, fields);
  const std::lock_guard lock(writing_);
  sink_(line);
}

}  // namespace weir
