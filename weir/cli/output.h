// Where a command writes. Buffered; remembers the first failure instead of making every caller look.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::cli {

enum class Paint : unsigned char { bold, dim, red, green, yellow };

// Of a terminal; 0 where it is unknown.
struct ScreenSize {
  std::size_t columns = 0;
  std::size_t rows = 0;
};

class Output {
 public:
  // Does not own the descriptor. Colours only on a terminal that has them, and never against NO_COLOR.
  explicit Output(int descriptor);

  void write(std::string_view text);
  // False once anything could not be written.
  bool flush() noexcept;
  // The errno of the first failure, or 0.
  int failure() const noexcept { return failure_; }

  bool is_terminal() const noexcept { return is_terminal_; }
  // Whether it is a terminal that can move its cursor, as live views need it.
  bool can_redraw() const noexcept { return is_terminal_ && has_cursor_; }
  // Asks the terminal each time, because it may be resized.
  ScreenSize size() const noexcept;
  bool colours() const noexcept { return colours_; }
  void no_colours() noexcept { colours_ = false; }
  // The text in that colour, or the text.
  std::string painted(Paint paint, std::string_view text) const;

 private:
  int descriptor_;
  bool is_terminal_;
  bool has_cursor_;
  bool colours_;
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
  void complain(std::string_view sentence) const;
};

// Writes JSON that a server sent: unchanged, but on a terminal with \u escapes for control characters and a line end.
void write_json(std::string_view json, Output& out);

}  // namespace weir::cli
