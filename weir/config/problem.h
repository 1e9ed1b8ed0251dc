// Problems of a configuration, with positions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::config {

// Lines and columns count from 1. A variable or a flag has no line: line 0.
struct Problem {
  std::string file;  // or the variable's name
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::string sentence;

  std::string text() const;  // "weir.yaml:3:5: unknown key \"brust\"; did you mean \"burst\"?"

  friend bool operator==(const Problem&, const Problem&) = default;
};

// Sorted: files in the order they were read, then by position.
using Problems = std::vector<Problem>;

// One line each.
std::string text(const Problems& problems);

}  // namespace weir::config
