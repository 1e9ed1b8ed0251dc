#include "weir/identify/key_source.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "weir/base/ascii.h"

namespace weir {

KeySource KeySource::of(std::string_view text) {
  using Word = std::pair<std::string_view, Kind>;
  constexpr std::array<Word, 6> alone{Word{"ip", Kind::ip},     Word{"apikey", Kind::apikey},
                                      Word{"path", Kind::path}, Word{"method", Kind::method},
                                      Word{"host", Kind::host}, Word{"global", Kind::global}};
  for (const auto& [word, kind] : alone) {
    if (word == text) return {kind, {}, 0};
  }
  const std::string_view name = text.substr(std::min(text.find(':') + 1, text.size()));
  if (text.starts_with("cookie:")) return {Kind::cookie, std::string(name), 0};
  if (text.starts_with("query:")) return {Kind::query, std::string(name), 0};
  if (text.starts_with("jwt:")) return {Kind::jwt, std::string(name), 0};
  if (text.starts_with("path:")) {
    KeySource source{Kind::segment, {}, 1};
    std::from_chars(name.data(), name.data() + name.size(), source.segment);
    return source;
  }
  KeySource source{Kind::attribute, std::string(text), 0};
  if (text.starts_with("header:")) source.name = to_lower(text);
  return source;
}

}  // namespace weir
