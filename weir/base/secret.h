// Compares a received token with a secret.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir {

// Takes time that depends only on the length of `given`, so response times do not help to guess the secret.
inline bool same_secret(std::string_view given, std::string_view secret) noexcept {
  // Volatile, so that the compiler cannot stop at the first difference.
  volatile unsigned char difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
    difference = static_cast<unsigned char>(difference | (given[i] ^ expected));
  }
  return difference == 0;
}

}  // namespace weir
