// Where in a request the identity of a bucket comes from: one entry of a limit's `key`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir {

struct KeySource {
  enum class Kind : unsigned char {
    ip,
    apikey,
    attribute,  // header:NAME, form:FIELD, descriptor:KEY: found under that name, a header's in lower case
    cookie,
    query,
    path,
    segment,  // path:N
    method,
    host,
    global,
    jwt,  // jwt:CLAIM; `segment` is its place among the claims that are read
  };
  Kind kind = Kind::global;
  std::string name;         // the attribute's, cookie's, query field's or claim's
  std::size_t segment = 0;  // counted from 1

  // REQUIRES: the text is one that a configuration may hold.
  static KeySource of(std::string_view text);

  friend bool operator==(const KeySource&, const KeySource&) = default;
};

}  // namespace weir
