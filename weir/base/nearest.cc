#include "weir/base/nearest.h"

#include <algorithm>
#include <vector>

#include "weir/base/ascii.h"
#include "weir/base/bounds.h"

namespace weir {
namespace {

// Returns the number of single-character edits, including swaps of neighbors, between two words, ignoring case.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = to_lower(a[i - 1]) == to_lower(b[j - 1]);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same ? 0u : 1u)});
      const bool swapped =
          i > 1 && j > 1 && to_lower(a[i - 1]) == to_lower(b[j - 2]) && to_lower(a[i - 2]) == to_lower(b[j - 1]);
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string_view nearest_word(std::span<const std::string_view> words, std::string_view word) {
  // A word with more than a third of its letters wrong is a different word. Long input is skipped to bound the cost.
  if (word.size() > bounds::name_bytes_max) return {};
  std::size_t best = bounds::name_bytes_max;
  std::string_view found;
  for (const std::string_view candidate : words) {
    const std::size_t far = distance(word, candidate);
    if (far >= best || far > 3 || far > std::max(word.size(), candidate.size()) / 3) continue;
    best = far;
    found = candidate;
  }
  return found;
}

}  // namespace weir
