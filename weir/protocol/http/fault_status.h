// The HTTP error for each Fault: a status, a code for programs and a sentence for people.
#pragma once

#include <string>
#include <string_view>

#include "weir/base/result.h"

namespace weir {

struct ApiError {
  int status = 400;
  std::string_view code;  // has static storage duration
  std::string message;
};

struct FaultStatus {
  int status;  // 0: the configured failure_code
  std::string_view code;
};

// For well-formed requests only: a malformed one never becomes a query.
constexpr FaultStatus status_of(Fault fault) noexcept {
  switch (fault) {
    case Fault::invalid:
      return {400, "bad_id"};
    case Fault::too_large:
      return {413, "too_large"};
    case Fault::unknown:
      return {404, "unknown_limit"};
    case Fault::timeout:
    case Fault::unavailable:
      return {0, "store_unavailable"};
    case Fault::overloaded:
      return {503, "overloaded"};
    case Fault::internal:
      break;
  }
  return {500, "internal"};
}

}  // namespace weir
