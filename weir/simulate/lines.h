// Lines of a file or a pipe, one after another, in constant memory.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace weir::simulate {

class LineReader {
 public:
  enum class Got : unsigned char {
    line,
    too_long,  // a line beyond the bound; it was skipped
    end,
    failed,  // errno says why
  };

  // Reads up to that many bytes; 0 at the end, negative if it fails, with errno.
  using Read = std::function<long(char* bytes, std::size_t size)>;

  // `before_read` is called before each read, which may block: whatever was answered so far should be on its way by
  // then.
  LineReader(Read read, std::size_t line_bytes_max, std::function<void()> before_read = {});
  // Does not own the descriptor.
  LineReader(int descriptor, std::size_t line_bytes_max, std::function<void()> before_read);

  // The next line without its newline; the last one need not have any. The view lives until the next call.
  Got next(std::string_view& line);

  // Bytes read so far.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  bool fill();

  Read read_;
  std::size_t line_bytes_max_;
  std::function<void()> before_read_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of what was not handed out yet
  std::size_t end_ = 0;    // of what was read
  std::size_t bytes_ = 0;
  bool at_end_ = false;
  bool failed_ = false;
};

}  // namespace weir::simulate
