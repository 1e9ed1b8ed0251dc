#include "weir/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace weir {

void assertion_failed(const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "weir: assertion failed: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace weir
