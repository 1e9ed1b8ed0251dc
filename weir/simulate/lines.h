// Reads the lines of a file or a pipe one after another, in constant memory.
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
    too_long,  // a line over the bound was skipped
    end,
    failed,  // errno holds the reason
  };

  // Reads up to that many bytes. Returns 0 at the end, a negative number on error, with errno set.
  using Read = std::function<long(char* bytes, std::size_t size)>;

  // `before_read` is called before each read, because the read may block: send pending answers there.
  LineReader(Read read, std::size_t line_bytes_max, std::function<void()> before_read = {});
  // Does not own the descriptor.
  LineReader(int descriptor, std::size_t line_bytes_max, std::function<void()> before_read);

  // Returns the next line without its newline; the last line may lack one. The view is valid until the next call.
  Got next(std::string_view& line);

  // Bytes read so far.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  bool fill();

  Read read_;
  std::size_t line_bytes_max_;
  std::function<void()> before_read_;
  std::string buffer_;
  std::size_t begin_ = 0;  // start of what was not returned yet
  std::size_t end_ = 0;    // end of what was read
  std::size_t bytes_ = 0;
  bool at_end_ = false;
  bool failed_ = false;
};

}  // namespace weir::simulate
