// Reads a log file or standard input line by line, and unpacks gzip. Samples the first lines to find the format and the
// fields before anything is replayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/simulate/lines.h"
#include "weir/simulate/log_line.h"
#include "weir/simulate/needs.h"

namespace weir::simulate {

class LogInput {
 public:
  // "-" is standard input. Detects the format if `format` is absent. Fails if the input cannot be opened or read, or no
  // sampled line has a known format.
  static Result<std::unique_ptr<LogInput>> open(const std::string& path, std::optional<LogFormat> format,
                                                const ReaderOptions& options);
  ~LogInput();
  LogInput(const LogInput&) = delete;
  LogInput& operator=(const LogInput&) = delete;

  enum class Got : unsigned char { line, malformed, end, failed };
  // Reads the next line that is not empty. why() describes `malformed` and `failed`.
  Got next(LogLine& line);
  const std::string& why() const noexcept { return why_; }
  std::uint64_t line_number() const noexcept { return number_; }

  const std::string& name() const noexcept { return name_; }
  LogFormat format() const noexcept { return format_; }
  const LogReader& reader() const noexcept { return *reader_; }
  std::optional<Wall> first_time() const noexcept { return first_time_; }
  // Adds what the sampled lines contain.
  void add_to(Sight& sight);

  // Size of the file and bytes read so far; 0 if it has no size.
  std::size_t size() const noexcept;
  std::size_t bytes_read() const noexcept;

 private:
  struct File;
  explicit LogInput(std::string name);
  bool next_text(std::string_view& text);

  std::string name_;
  std::unique_ptr<File> file_;
  std::unique_ptr<LineReader> lines_;
  std::vector<std::string> sample_;
  std::size_t sampled_ = 0;  // sampled lines already returned by next()
  bool ended_ = false;
  bool failed_ = false;
  bool too_long_ = false;
  LogFormat format_ = LogFormat::combined;
  std::unique_ptr<LogReader> reader_;
  std::optional<Wall> first_time_;
  std::uint64_t number_ = 0;
  std::string why_;
};

}  // namespace weir::simulate
