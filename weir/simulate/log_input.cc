#include "weir/simulate/log_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/text.h"

namespace weir::simulate {
namespace {

// Replaces a sampled line that is too long. No format accepts it.
constexpr std::string_view kTooLong("\0", 1);

}  // namespace

// zlib passes data that is not gzip through unchanged.
struct LogInput::File {
  gzFile gz = nullptr;
  std::size_t bytes = 0;
  std::string failure;

  ~File() {
    if (gz != nullptr) gzclose_r(gz);
  }

  long read(char* out, std::size_t size) {
    const int got = gzread(gz, out, static_cast<unsigned>(size));
    int code = Z_OK;
    const char* const text = gzerror(gz, &code);
    if (got >= 0 && (code == Z_OK || code == Z_STREAM_END)) return got;
    // zlib reports a truncated file as Z_BUF_ERROR.
    failure = code == Z_ERRNO ? std::strerror(errno) : code == Z_BUF_ERROR ? "the gzip data ends early" : text;
    return got > 0 && code != Z_BUF_ERROR ? got : -1;
  }
};

LogInput::LogInput(std::string name) : name_(std::move(name)), file_(std::make_unique<File>()) {}
LogInput::~LogInput() = default;

Result<std::unique_ptr<LogInput>> LogInput::open(const std::string& path, std::optional<LogFormat> format,
                                                 const ReaderOptions& options) {
  std::unique_ptr<LogInput> input(new LogInput(path == "-" ? "standard input" : path));
  const int descriptor = path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  const bool opened = descriptor >= 0 && ::fstat(descriptor, &status) == 0;
  if (opened && S_ISDIR(status.st_mode)) errno = EISDIR;
  if (!opened || S_ISDIR(status.st_mode)) {
    const std::string reason = std::strerror(errno);
    if (descriptor >= 0) ::close(descriptor);
    return Error{Fault::unavailable, "cannot open " + input->name_ + ": " + reason};
  }
  File& file = *input->file_;
  if (S_ISREG(status.st_mode)) file.bytes = static_cast<std::size_t>(status.st_size);
  file.gz = gzdopen(descriptor, "rb");
  if (file.gz == nullptr) {
    ::close(descriptor);
    return Error{Fault::internal, "cannot open " + input->name_ + ": out of memory"};
  }
  gzbuffer(file.gz, 128u << 10);
  input->lines_ = std::make_unique<LineReader>([&file](char* out, std::size_t size) { return file.read(out, size); },
                                               bounds::log_line_bytes_max);
  std::string_view text;
  while (input->sample_.size() < bounds::log_sample_lines && input->next_text(text)) {
    input->sample_.emplace_back(input->too_long_ ? kTooLong : text);
  }
  if (input->failed_) return Error{Fault::unavailable, "cannot read " + input->name_ + ": " + file.failure};
  const std::optional<LogFormat> found = format ? format : detect_format(input->sample_, options);
  if (!found && !input->sample_.empty()) {
    return Error{Fault::invalid, input->name_ + ": no line is of a format that Weir reads; the first is " +
                                     quote(input->sample_.front()) + "; see --format and --field"};
  }
  input->format_ = found.value_or(LogFormat::combined);
  input->reader_ = make_reader(input->format_, options);
  LogLine line;
  for (const std::string& sampled : input->sample_) {
    if (!input->reader_->read(sampled, line)) continue;
    input->first_time_ = line.time;
    break;
  }
  return input;
}

void LogInput::add_to(Sight& sight) {
  LogLine line;
  for (const std::string& sampled : sample_) {
    if (!reader_->read(sampled, line)) continue;
    for (std::size_t i = 0; i < reader_->fields().size(); ++i) {
      if (line.values[i].empty()) continue;
      sight.fields.insert(reader_->fields()[i]);
      if (reader_->fields()[i] == "path") sight.has_queries |= line.values[i].find('?') != std::string_view::npos;
    }
    if (!line.counted.empty()) sight.is_own = true;
    for (const NamedCharge& counted : line.counted) sight.counted.emplace(counted.limit);
  }
}

// Returns the text of the next line, which may be too long; false at the end.
bool LogInput::next_text(std::string_view& text) {
  too_long_ = false;
  if (ended_) return false;
  switch (lines_->next(text)) {
    case LineReader::Got::line:
      if (text.ends_with('\r')) text.remove_suffix(1);
      return true;
    case LineReader::Got::too_long:
      too_long_ = true;
      text = {};
      return true;
    case LineReader::Got::failed:
      failed_ = true;
      break;
    case LineReader::Got::end:
      break;
  }
  ended_ = true;
  return false;
}

LogInput::Got LogInput::next(LogLine& line) {
  while (true) {
    std::string_view text;
    if (sampled_ < sample_.size()) {
      text = sample_[sampled_++];
      too_long_ = text == kTooLong;
    } else if (!next_text(text)) {
      why_ = file_->failure;
      return failed_ ? Got::failed : Got::end;
    }
    ++number_;
    if (too_long_) {
      why_ = "the line is longer than " + std::to_string(bounds::log_line_bytes_max) + " bytes";
      return Got::malformed;
    }
    if (text.empty()) continue;
    const Result<void> read = reader_->read(text, line);
    if (read && line.refused) continue;  // it took no token
    if (read) return Got::line;
    why_ = read.error().detail;
    return Got::malformed;
  }
}

std::size_t LogInput::size() const noexcept {
  return file_->bytes;
}

std::size_t LogInput::bytes_read() const noexcept {
  const auto offset = gzoffset(file_->gz);
  return offset > 0 ? static_cast<std::size_t>(offset) : 0;
}

}  // namespace weir::simulate
