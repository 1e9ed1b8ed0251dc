// The server's log: one line per event, with time, level and message.
//   text  2026-11-15T14:07:31.123Z warn reload failed; keeping the running configuration
//   json  {"time":"2026-11-15T14:07:31.123Z","level":"warn","message":"reload failed; …"}
//
// Thread-safe; lines never interleave.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "weir/base/time.h"

namespace weir {

enum class LogLevel : unsigned char { trace, debug, info, warn, error, off };
enum class LogFormat : unsigned char { text, json };

// Parses "trace", "debug", "info", "warn", "error" or "off". An unknown word gives `info`.
LogLevel log_level(std::string_view word) noexcept;
std::string_view print(LogLevel level) noexcept;

// Returns the line with its line feed. Escapes control characters, so that the message stays on one line.
std::string log_line(LogFormat format, LogLevel level, Wall now, std::string_view message);
// Returns a JSON line whose message is `word`, with `fields` added: members of an object, without braces.
std::string json_log_line(LogLevel level, Wall now, std::string_view word, std::string_view fields);

class Log {
 public:
  // Receives one whole line at a time.
  using Sink = std::function<void(std::string_view line)>;
  explicit Log(Sink sink) : sink_(std::move(sink)) {}

  // Sets the lowest level that is written, and the format.
  void configure(LogLevel least, LogFormat format) noexcept;

  void write(LogLevel level, std::string_view message);
  // Returns whether write() at this level writes. Check it before building an expensive message.
  bool enabled(LogLevel level) const noexcept { return level >= least_.load(std::memory_order_relaxed); }
  // Writes regardless of the configured level.
  void always(LogLevel level, std::string_view message);
  // The same for a record. In text format it writes `message`. In JSON format the message is `word`, and `fields`
  // (members of a JSON object, without braces) are added to the line.
  void always(LogLevel level, std::string_view message, std::string_view word, std::string_view fields);
  void info(std::string_view message) { write(LogLevel::info, message); }
  void warn(std::string_view message) { write(LogLevel::warn, message); }
  void error(std::string_view message) { write(LogLevel::error, message); }

 private:
  Sink sink_;
  std::mutex writing_;
  std::atomic<LogLevel> least_{LogLevel::info};
  std::atomic<LogFormat> format_{LogFormat::text};
};

}  // namespace weir
