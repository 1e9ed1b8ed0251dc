#include "weir/admin/request.h"

#include <algorithm>

#include "weir/base/ascii.h"
#include "weir/base/text.h"

namespace weir::admin {
std::optional<std::string> unescaped(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const std::optional<char> byte = percent_escape(text.substr(i));
      if (!byte) return {};
      out += *byte;
      i += 2;
    }
  }
  return out;
}

Result<Parameters> Parameters::read(std::string_view query, std::span<const std::string_view> known) {
  Parameters parameters;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto name = unescaped(pair.substr(0, equals), true);
    auto value = unescaped(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) return Error{Fault::invalid, quote(pair) + " has an invalid escape; write '%' as %25"};
    if (std::ranges::find(known, *name) == known.end()) {
      std::string message = "unknown parameter " + quote(*name);
      for (std::size_t i = 0; i < known.size(); ++i) message += (i == 0 ? "; known are " : ", ") + quote(known[i]);
      return Error{Fault::unknown, known.empty() ? message + "; this call takes none" : message};
    }
    if (parameters.has(*name)) return Error{Fault::invalid, "parameter " + quote(*name) + " is given twice"};
    parameters.all_.emplace_back(std::move(*name), std::move(*value));
  }
  return parameters;
}

std::string_view Parameters::operator[](std::string_view name) const noexcept {
  const auto found = std::ranges::find(all_, name, [](const auto& pair) -> std::string_view { return pair.first; });
  return found == all_.end() ? std::string_view{} : found->second;
}

bool Parameters::has(std::string_view name) const noexcept {
  return std::ranges::any_of(all_, [&](const auto& pair) { return pair.first == name; });
}

Result<std::size_t> Parameters::number(std::string_view name, std::size_t otherwise, std::size_t min,
                                       std::size_t max) const {
  if (!has(name)) return otherwise;
  const Result<std::int64_t> value = parse_integer((*this)[name]);
  if (value && *value >= 0 && static_cast<std::size_t>(*value) >= min && static_cast<std::size_t>(*value) <= max) {
    return static_cast<std::size_t>(*value);
  }
  return Error{Fault::invalid, std::string(name) + " " + quote((*this)[name]) + " must be a whole number from " +
                                   std::to_string(min) + " to " + std::to_string(max)};
}

}  // namespace weir::admin
