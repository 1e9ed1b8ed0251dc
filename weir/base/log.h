// What an operator should know while a server runs: one line per event, with the time, the level and a sentence.
//   text  2026-11-15T14:07:31.123Z warn reload failed; keeping the running configuration
//   json  {"time":"2026-11-15T14:07:31.123Z","level":"warn","message":"reload failed; …"}
//
// Thread safety: all of it; lines never mix.
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

// "trace", "debug", "info", "warn", "error", "off". An unknown word is `info`.
LogLevel log_level(std::string_view word) noexcept;
std::string_view print(LogLevel level) noexcept;

// The line, with its line feed. Control characters in the message are escaped: it stays one line.
std::string log_line(LogFormat format, LogLevel level, Wall now, std::string_view message);
// A line of JSON with more fields.
std::string json_log_line(LogLevel level, Wall now, std::string_view word, std::string_view fields);

class Log {
 public:
  // Gets one whole line at a time.
  using Sink = std::function<void(std::string_view line)>;
  explicit Log(Sink sink) : sink_(std::move(sink)) {}

  // What is written from now on: events of at least this level, in this form.
  void configure(LogLevel least, LogFormat format) noexcept;

  void write(LogLevel level, std::string_view message);
  // Whether write() at this level writes: ask before building an expensive message.
  bool enabled(LogLevel level) const noexcept { return level >= least_.load(std::memory_order_relaxed); }
  // Whatever is configured: what must never go unwritten.
  void always(LogLevel level, std::string_view message);
  // The same for a record. In text it is `message`. In JSON the message is `word`, and `fields` are fields of the line:
  // members of a JSON object, without its braces.
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
