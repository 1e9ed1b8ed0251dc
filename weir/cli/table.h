// Rows in columns. On a terminal they fit its width: long texts are cut, and what still does not fit becomes one line
// per value. A column in which every row is empty is left out.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "weir/cli/output.h"

namespace weir::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> heads)
      : heads_(std::move(heads)), is_number_(heads_.size()), is_whole_(heads_.size()) {}

  // These columns are numbers: for people aligned right, with separators (1,234,567).
  Table& numbers(std::initializer_list<std::string_view> heads);
  // These columns are never cut, because half a rate or half a time is misleading. Nor are numbers.
  Table& whole(std::initializer_list<std::string_view> heads);
  // REQUIRES: one cell per head.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const noexcept { return rows_.empty(); }
  // Starts the next page of a long list: drops the rows, keeps the column widths, and does not repeat the heads.
  void next_page();

  void print(Output& out);
  // The same rows for programs (RFC 4180): every column, the heads in lower case as the first line.
  void print_csv(Output& out) const;

  // What to do if even cut texts do not fit.
  enum class Narrow : unsigned char {
    records,  // one line per value, a blank line between rows
    drop,     // leave the last columns out
  };
  // The heads (unless they are printed) and the rows, at most `columns` wide; 0: as wide as they are.
  std::vector<std::string> lines(std::size_t columns, Narrow narrow);

 private:
  std::vector<std::size_t> widths(const std::vector<std::vector<std::string>>& cells) const;
  bool fit(std::vector<std::size_t>& widths, std::size_t columns) const;
  std::vector<std::string> records(const std::vector<std::vector<std::string>>& cells,
                                   const std::vector<std::size_t>& full) const;

  std::vector<std::string> heads_;
  std::vector<bool> is_number_;
  std::vector<bool> is_whole_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> earlier_;  // widths of earlier pages
  bool heads_printed_ = false;
  bool has_head_line_ = false;  // of the last lines()
};

}  // namespace weir::cli
