// The URL of a backend: "http://127.0.0.1:3000", "https://api.example.com/v2", "h2://10.0.0.1:8080".
#pragma once

#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/net/resolve.h"

namespace weir {

struct HttpUrl {
  enum class Scheme : unsigned char {
    http,
    https,
    h2,  // HTTP/2 without TLS, by prior knowledge
  };
  Scheme scheme = Scheme::http;
  Target target;          // the port defaults to 80 or 443
  std::string authority;  // as written, in lower case: "api.example.com:8443"
  std::string path;       // empty, or starts with '/' and does not end with one

  // Refuses other schemes, a query, a fragment and user info. The Error quotes the text and names the rule.
  static Result<HttpUrl> parse(std::string_view text);
  std::string print() const;

  friend bool operator==(const HttpUrl&, const HttpUrl&) = default;
};

}  // namespace weir
