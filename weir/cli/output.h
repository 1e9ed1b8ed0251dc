// Where a command writes. Buffered; remembers the first failure, so that callers need not check each write.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::cli {

enum class Paint : unsigned char { bold, dim, red, green, yellow };

// The size of a terminal; 0 if unknown.
struct ScreenSize {
  std::size_t columns = 0;
  std::size_t rows = 0;
};

class Output {
 public:
  // Does not own the descriptor. Uses colors only on a terminal that has them, and not if NO_COLOR is set.
  explicit Output(int descriptor);

  void write(std::string_view text);
  // Returns false once a write has failed.
  bool flush() noexcept;
  // The errno of the first failure, or 0.
  int failure() const noexcept { return failure_; }

  bool is_terminal() const noexcept { return is_terminal_; }
  // True if it is a terminal that can move its cursor, which live views need.
  bool can_redraw() const noexcept { return is_terminal_ && has_cursor_; }
  // Asks the terminal each time, because it may be resized.
  ScreenSize size() const noexcept;
  bool colors() const noexcept { return colors_; }
  void no_colours() noexcept { colors_ = false; }
  // Returns the text in that color, or unchanged without colors.
  std::string painted(Paint paint, std::string_view text) const;

 private:
  int descriptor_;
  bool is_terminal_;
  bool has_cursor_;
  bool colors_;
  int failure_ = 0;
  std::string buffer_;
};

// The exit status of the process.
enum Exit : int {
  kOk = 0,
  kFailed = 1,  // it could not be done
  kUsage = 2,   // the command line or the configuration is refused
  kDenied = 3,  // the request is denied, or what was asked for does not exist
};

struct ServerStart;  // configuration.h

// What a command gets from the program: results go to `out`, errors to `err`.
struct Console {
  Output& out;
  Output& err;
  Exit (*run_server)(ServerStart start, Console& console) = nullptr;  // what `weir serve` runs; from app/

  // "weir: sentence" on err, without control characters.
  void print_error(std::string_view sentence) const;
};

// Writes JSON that a server sent: unchanged, but on a terminal with \u escapes for control characters and a line end.
void write_json(std::string_view json, Output& out);
// Returns JSON without the newline that ends it.
std::string_view without_newline(std::string_view json) noexcept;

}  // namespace weir::cli
