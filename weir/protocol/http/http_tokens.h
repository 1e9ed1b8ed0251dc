// Decides who may call the decision API on a listener that requires tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/wire/http1.h"

namespace weir {

// The tokens of one listener. If `tokens` is empty, all callers are welcome, except for refund and reset if there is a
// write token.
struct HttpTokens {
  std::vector<std::string> tokens;
  std::string write_token;  // also allows what the others allow
};

// Returns the token after "Authorization: Bearer", or an empty view if there is no such field.
std::string_view bearer_of(const RequestHead& head) noexcept;

// The field that authenticates a caller. It never becomes an attribute of a request.
inline constexpr std::string_view kTokenField = "x-weir-token";

enum class Caller : unsigned char {
  welcome,
  unknown,    // 401: no token, or none of ours
  read_only,  // 403: a token, and a write token is needed
};

// On /v1/authorize the Authorization field is the client's, and only X-Weir-Token counts. The time it takes does not
// depend on how much of a token is right.
Caller caller_of(const RequestHead& head, const HttpTokens& tokens, bool writes);

}  // namespace weir
