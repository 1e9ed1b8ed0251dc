// Any token or JWK set: an unsigned token is rejected, and a second check gives the same result.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/identify/jwt.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<JwtKeys> keys = JwtKeys::parse(text);
  if (keys) WEIR_ASSERT(!keys->keys().empty());
  // The secret is not in the corpus.
  static const JwtVerifier verifier({.secret = "not in the corpus"}, {}, {"sub", "a.b"}, HashKey{1, 2});
  const Wall now{std::chrono::seconds{1'300'000'000}};
  const JwtVerifier::Outcome first = verifier.check(text, now);
  const JwtVerifier::Outcome second = verifier.check(text, now);
  WEIR_ASSERT(first.claims == nullptr && second.claims == nullptr && first.reason == second.reason);
  std::string bytes;
  (void)decode_base64url(text, bytes);
  return 0;
}
