// A bar on the terminal that shows how far a long operation is. Silent for the first second.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/cli/output.h"

namespace weir::cli {

class Progress {
 public:
  // `unit` is what is counted: "line". `all` is how much there is to do, 0 if unknown. `wanted` is false if the bar
  // would mix with the results.
  Progress(const Console& console, std::string_view unit, std::size_t all, bool wanted)
      : err_(console.err), unit_(unit), all_(all), shown_(console.err.can_redraw() && wanted) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `units` are counted; `done` is how much of `all` is done.
  void update(std::uint64_t units, std::size_t done);

 private:
  Output& err_;
  std::string_view unit_;
  std::size_t all_;
  bool shown_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::seconds{1};
};

// "[=====>    ]  52 %  1,234 lines", at most `columns` wide.
std::string progress_line(std::string_view unit, std::uint64_t units, std::size_t done, std::size_t all,
                          std::size_t columns);

}  // namespace weir::cli
