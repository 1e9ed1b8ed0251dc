// The RESP error for each Fault. The first word is the code that clients match on. None of them is a code that client
// libraries retry automatically, because a request that timed out may have been charged.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "weir/base/result.h"

namespace weir {

struct FaultError {
  Fault fault;
  std::string_view code;
  std::string_view sentence;  // replaces the Error's detail; empty: the client sees the detail
};

inline constexpr std::array<FaultError, 7> kFaultErrors{{
    {Fault::invalid, "ERR", ""},
    {Fault::too_large, "ERR", ""},
    {Fault::unknown, "ERR", ""},
    {Fault::timeout, "TIMEOUT", ""},
    {Fault::unavailable, "UNAVAILABLE", ""},
    {Fault::overloaded, "ERR", "overloaded"},
    {Fault::internal, "ERR", "internal error"},
}};

// "ERR count 0 must be at least 1".
inline std::string error_text(const Error& error) {
  for (const FaultError& row : kFaultErrors) {
    if (row.fault != error.fault) continue;
    return std::string(row.code) + " " + (row.sentence.empty() ? error.detail : std::string(row.sentence));
  }
  return "ERR internal error";
}

}  // namespace weir
