// The part of a request that selects its bucket: one item of a limit's `key`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir {

struct KeySource {
  enum class Kind : unsigned char {
    ip,
    apikey,
    attribute,  // header:NAME, form:FIELD, descriptor:KEY: the attribute's name, in lower case for headers
    cookie,
    query,
    path,
    segment,  // path:N
    method,
    host,
    global,
    jwt,  // jwt:CLAIM; `segment` is its index among the claims
  };
  Kind kind = Kind::global;
  std::string name;         // of the attribute, cookie, query field or claim
  std::size_t segment = 0;  // counted from 1

  // REQUIRES: the text is valid in a configuration.
  static KeySource of(std::string_view text);

  friend bool operator==(const KeySource&, const KeySource&) = default;
};

}  // namespace weir
