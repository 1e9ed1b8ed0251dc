// Rows in columns, as wide as they need to be. A column in which every row is empty is left out.
#pragma once

#include <string>
#include <vector>

#include "weir/cli/output.h"

namespace weir::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> heads) : heads_(std::move(heads)) {}

  // REQUIRES: one cell per head.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const noexcept { return rows_.empty(); }
  void print(Output& out) const;
  // The same rows for programs (RFC 4180): every column, the heads in lower case as the first line.
  void print_csv(Output& out) const;

 private:
  std::vector<std::string> heads_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace weir::cli
