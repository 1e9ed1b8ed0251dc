// WEIR_ASSERT(x): we failed, not the world. On in release too: prints where and aborts, because a limiter that goes on
// with broken state lies in every number after that.
#pragma once

namespace weir {

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace weir

#define WEIR_ASSERT(expression) \
  (static_cast<bool>(expression) ? static_cast<void>(0) : ::weir::assertion_failed(#expression, __FILE__, __LINE__))
