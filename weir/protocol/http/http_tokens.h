// Who may call the decision API, where a listener asks for tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/wire/http1.h"

namespace weir {

// Of one listener. No tokens: everybody may call, but for refund and reset if there is a write token.
struct HttpTokens {
  std::vector<std::string> tokens;
  std::string write_token;  // may do what the others may, too
};

// What stands behind "Authorization: Bearer"; empty: no such field.
std::string_view bearer_of(const RequestHead& head) noexcept;

// The field that authenticates a caller and is no attribute of a request.
inline constexpr std::string_view kTokenField = "x-weir-token";

enum class Caller : unsigned char {
  welcome,
  unknown,    // 401: no token, or none of ours
  read_only,  // 403: a token, and a write token is needed
};

// On /v1/authorize the Authorization field is the client's, and only X-Weir-Token counts. Takes a time that does not
// depend on how much of a token is right.
Caller caller_of(const RequestHead& head, const HttpTokens& tokens, bool writes);

}  // namespace weir
