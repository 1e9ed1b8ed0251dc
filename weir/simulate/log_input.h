// A log file, or standard input, line by line; gzip is unpacked on the way. Its first lines tell the format and what
// the log has before anything is replayed.
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
  // "-" is standard input. `format`: nothing finds it out. The Error: it cannot be opened or read, or no line of its
  // start is of a format that Weir reads.
  static Result<std::unique_ptr<LogInput>> open(const std::string& path, std::optional<LogFormat> format,
                                                const ReaderOptions& options);
  ~LogInput();
  LogInput(const LogInput&) = delete;
  LogInput& operator=(const LogInput&) = delete;

  enum class Got : unsigned char { line, malformed, end, failed };
  // The next line that is not empty. Malformed: why() says why; failed: the same.
  Got next(LogLine& line);
  const std::string& why() const noexcept { return why_; }
  std::uint64_t line_number() const noexcept { return number_; }

  const std::string& name() const noexcept { return name_; }
  LogFormat format() const noexcept { return format_; }
  const LogReader& reader() const noexcept { return *reader_; }
  std::optional<Wall> first_time() const noexcept { return first_time_; }
  // Adds what the lines at the start say.
  void add_to(Sight& sight);

  // Bytes of the file, and how many of them were read; 0 if it has no size.
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
  std::size_t sampled_ = 0;  // of them, handed out again
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
