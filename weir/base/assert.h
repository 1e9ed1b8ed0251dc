// WEIR_ASSERT(x) checks for bugs in our own code, also in release builds. On failure it prints the location and aborts,
// because no later decision could be trusted.
#pragma once

namespace weir {

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace weir

#define WEIR_ASSERT(expression) \
  (static_cast<bool>(expression) ? static_cast<void>(0) : ::weir::assertion_failed(#expression, __FILE__, __LINE__))
