#include "weir/cli/table.h"

#include <algorithm>

#include "weir/base/ascii.h"

namespace weir::cli {
namespace {

// Columns on the screen: bytes that continue a UTF-8 character take none.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// RFC 4180 §2: a value with a comma, a quote or a line end is quoted, and its quotes are doubled.
std::string csv_line(const std::vector<std::string>& cells) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) text += ',';
    if (cells[i].find_first_of(",\"\r\n") == std::string::npos) {
      text += cells[i];
      continue;
    }
    text += '"';
    for (const char c : cells[i]) text += c == '"' ? "\"\"" : std::string(1, c);
    text += '"';
  }
  return text + "\n";
}

}  // namespace

void Table::print_csv(Output& out) const {
  std::vector<std::string> heads = heads_;
  for (std::string& head : heads) head = to_lower(head);
  out.write(csv_line(heads));
  for (const auto& row : rows_) out.write(csv_line(row));
}

void Table::print(Output& out) const {
  std::vector<std::size_t> shown;
  std::vector<std::size_t> widths(heads_.size());
  for (std::size_t column = 0; column < heads_.size(); ++column) {
    for (const auto& row : rows_) widths[column] = std::max(widths[column], width(row[column]));
    if (widths[column] == 0) continue;
    widths[column] = std::max(widths[column], width(heads_[column]));
    shown.push_back(column);
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (const std::size_t column : shown) {
      text += cells[column];
      if (column != shown.back()) text.append(widths[column] - width(cells[column]) + 2, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  if (shown.empty()) return;
  out.write(out.painted(Paint::bold, line(heads_)) + "\n");
  for (const auto& row : rows_) out.write(line(row) + "\n");
}

}  // namespace weir::cli
