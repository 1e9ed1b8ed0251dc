#include "weir/cli/table.h"

#include <algorithm>
#include <numeric>

#include "weir/base/ascii.h"
#include "weir/base/printable.h"
#include "weir/base/text.h"
#include "weir/cli/text_width.h"

namespace weir::cli {
namespace {

constexpr std::size_t kGap = 2;
// A text is not cut to less than this.
constexpr std::size_t kTextColumnsMin = 8;

// RFC 4180 §2: a value with a comma, a quote or a line end is quoted, and its quotes are doubled.
std::string csv_line(const std::vector<std::string>& cells, bool for_terminal) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) text += ',';
    const std::string cell = for_terminal ? printable(cells[i]) : cells[i];
    if (cell.find_first_of(",\"\r\n") == std::string::npos) {
      text += cell;
      continue;
    }
    text += '"';
    for (const char c : cell) text += c == '"' ? "\"\"" : std::string(1, c);
    text += '"';
  }
  return text + "\n";
}

// "-1234567.5" as "-1,234,567.5". Anything that is no number stays.
std::string grouped_number(const std::string& text) {
  const std::size_t start = text.starts_with('-') ? 1 : 0;
  const std::size_t end = std::min(text.find_first_not_of("0123456789", start), text.size());
  if (end < text.size() && text[end] != '.') return text;
  std::string out = text;
  for (std::size_t at = end; at > start + 3;) {
    at -= 3;
    out.insert(at, ",");
  }
  return out;
}

std::size_t total(const std::vector<std::size_t>& widths) {
  const auto shown =
      static_cast<std::size_t>(std::count_if(widths.begin(), widths.end(), [](std::size_t w) { return w > 0; }));
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) + (shown > 0 ? (shown - 1) * kGap : 0);
}

// Cells of no width are left out.
std::string table_line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                       const std::vector<bool>& is_number) {
  std::string text;
  bool first = true;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (widths[i] == 0) continue;
    const std::string cell = clipped(cells[i], widths[i]);
    const std::string room(widths[i] - std::min(widths[i], text_width(cell)), ' ');
    if (!first) text.append(kGap, ' ');
    first = false;
    text += is_number[i] ? room + cell : cell + room;
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace

Table& Table::numbers(std::initializer_list<std::string_view> heads) {
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    if (std::find(heads.begin(), heads.end(), heads_[i]) != heads.end()) is_number_[i] = true;
  }
  return whole(heads);
}

Table& Table::whole(std::initializer_list<std::string_view> heads) {
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    if (std::find(heads.begin(), heads.end(), heads_[i]) != heads.end()) is_whole_[i] = true;
  }
  return *this;
}

void Table::next_page() {
  rows_.clear();
  heads_printed_ = true;
}

void Table::print_csv(Output& out) const {
  std::vector<std::string> heads = heads_;
  for (std::string& head : heads) head = to_lower(head);
  if (!heads_printed_) out.write(csv_line(heads, false));
  for (const auto& row : rows_) out.write(csv_line(row, out.is_terminal()));
}

// As wide as the widest cell and the head; 0 for a column without any text.
std::vector<std::size_t> Table::widths(const std::vector<std::vector<std::string>>& cells) const {
  std::vector<std::size_t> widths = earlier_;
  widths.resize(heads_.size());
  for (std::size_t column = 0; column < heads_.size(); ++column) {
    for (const auto& row : cells) widths[column] = std::max(widths[column], text_width(row[column]));
    if (widths[column] > 0) widths[column] = std::max(widths[column], text_width(heads_[column]));
  }
  return widths;
}

// Cuts the widest texts, all to the same width. False if that is not enough.
bool Table::fit(std::vector<std::size_t>& widths, std::size_t columns) const {
  if (columns == 0 || total(widths) <= columns) return true;
  std::size_t most = *std::max_element(widths.begin(), widths.end());
  const auto cut = [&](std::size_t width) {
    std::vector<std::size_t> narrower = widths;
    for (std::size_t i = 0; i < narrower.size(); ++i) {
      if (!is_whole_[i]) narrower[i] = std::min(narrower[i], width);
    }
    return narrower;
  };
  if (total(cut(kTextColumnsMin)) > columns) return false;
  std::size_t least = kTextColumnsMin;  // fits; most + 1 does not
  while (least < most) {
    const std::size_t middle = (least + most + 1) / 2;
    if (total(cut(middle)) <= columns) {
      least = middle;
    } else {
      most = middle - 1;
    }
  }
  widths = cut(least);
  return true;
}

std::vector<std::string> Table::records(const std::vector<std::vector<std::string>>& cells,
                                        const std::vector<std::size_t>& full) const {
  std::size_t widest = 0;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    if (full[i] > 0) widest = std::max(widest, text_width(heads_[i]));
  }
  std::vector<std::string> lines;
  for (const auto& row : cells) {
    if (!lines.empty() || heads_printed_) lines.emplace_back();
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      if (row[i].empty()) continue;
      lines.push_back(heads_[i] + std::string(widest - text_width(heads_[i]) + kGap, ' ') + row[i]);
    }
  }
  return lines;
}

std::vector<std::string> Table::lines(std::size_t columns, Narrow narrow) {
  std::vector<std::vector<std::string>> cells = rows_;
  for (auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = is_number_[i] ? grouped_number(row[i]) : printable(row[i]);
  }
  const std::vector<std::size_t> full = widths(cells);
  earlier_ = full;
  has_head_line_ = false;
  std::vector<std::size_t> shown = full;
  if (total(shown) == 0) return {};
  if (!fit(shown, columns)) {
    if (narrow == Narrow::records) return records(cells, full);
    for (std::size_t i = heads_.size(); i-- > 1 && !fit(shown, columns);) shown[i] = 0;
  }
  std::vector<std::string> lines;
  has_head_line_ = !heads_printed_;
  if (has_head_line_) lines.push_back(table_line(heads_, shown, is_number_));
  for (const auto& row : cells) lines.push_back(table_line(row, shown, is_number_));
  return lines;
}

void Table::print(Output& out) {
  const std::vector<std::string> all = lines(out.size().columns, Narrow::records);
  for (std::size_t i = 0; i < all.size(); ++i) {
    out.write((i == 0 && has_head_line_ ? out.painted(Paint::bold, all[i]) : all[i]) + "\n");
  }
}

}  // namespace weir::cli
