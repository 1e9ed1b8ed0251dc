// Where a command writes. Buffered; remembers the first failure instead of making every caller look.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::cli {

enum class Paint : unsigned char { bold, dim, red, green, yellow };

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
  bool colours() const noexcept { return colours_; }
  void no_colours() noexcept { colours_ = false; }
  // The text in that colour, or the text.
  std::string painted(Paint paint, std::string_view text) const;

 private:
  int descriptor_;
  bool is_terminal_;
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

  // "weir: sentence" on err.
  void complain(std::string_view sentence) const;
};

}  // namespace weir::cli
