// One parsed call of the admin API: what handlers see of an HTTP request.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"

namespace weir::admin {

// Decodes percent escapes: "a%20b" becomes "a b". Returns nullopt for an invalid escape.
std::optional<std::string> unescaped(std::string_view text, bool plus_is_space);

// The decoded query parameters. An unknown or repeated name is an error: a mistyped filter must not mean "everything".
class Parameters {
 public:
  static Result<Parameters> read(std::string_view query, std::span<const std::string_view> known);

  // Returns an empty view if it is absent.
  std::string_view operator[](std::string_view name) const noexcept;
  bool has(std::string_view name) const noexcept;
  // Returns the number, or `otherwise` if it is absent. The Error names the parameter and the rule.
  Result<std::size_t> number(std::string_view name, std::size_t otherwise, std::size_t min, std::size_t max) const;

 private:
  std::vector<std::pair<std::string, std::string>> all_;
};

// Views are valid during the call.
struct Request {
  std::string_view method;
  std::array<std::string, 2> parts;  // the path segments that match "{}", decoded
  std::string_view query;            // not decoded
  Parameters parameters;             // the same, decoded and checked
  std::string_view content_type;
  std::string_view if_none_match;
  std::string_view accept_encoding;
  std::string_view content;
  std::string_view peer;  // the caller's address; empty: a UNIX socket
  Now now{};
};

}  // namespace weir::admin
