// Comparing what a stranger sent with what only a friend knows.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir {

// Takes a time that depends on the length of `given` alone, so that the secret cannot be guessed byte by byte.
inline bool same_secret(std::string_view given, std::string_view secret) noexcept {
  // Volatile, so that the compiler does not stop at the first difference.
  volatile unsigned char difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
    difference = static_cast<unsigned char>(difference | (given[i] ^ expected));
  }
  return difference == 0;
}

}  // namespace weir
