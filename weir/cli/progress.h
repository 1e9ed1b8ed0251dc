// A line on the terminal that tells how far a long replay is. Silent for the first second.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "weir/cli/output.h"

namespace weir::cli {

class Progress {
 public:
  // `wanted` is false where it would stand among the answers.
  Progress(const Console& console, std::size_t bytes_all, bool wanted)
      : err_(console.err), bytes_all_(bytes_all), shown_(console.err.is_terminal() && wanted) {}
  ~Progress() {
    if (!drawn_) return;
    err_.write("\r\x1b[K");
    err_.flush();
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::size_t lines, std::size_t bytes) {
    if (!shown_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds{200};
    drawn_ = true;
    std::string text = "\r\x1b[K" + std::to_string(lines) + " lines";
    if (bytes_all_ > 0) text += ", " + std::to_string(100 * bytes / bytes_all_) + " %";
    err_.write(text);
    err_.flush();
  }

 private:
  Output& err_;
  std::size_t bytes_all_;
  bool shown_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::seconds{1};
};

}  // namespace weir::cli
