// Any JSON: a query whose numbers obey the rules, or an error with a code and a sentence.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/protocol/http/check_body.h"

namespace {

void expect_sound(const std::optional<weir::ApiError>& error, const weir::Query& query) {
  if (error) {
    WEIR_ASSERT((error->status == 400 || error->status == 413) && !error->code.empty() && !error->message.empty());
    return;
  }
  WEIR_ASSERT(query.cost >= 0);
  // Limits by name, a request that routes decide about, or a bucket of the caller's own.
  WEIR_ASSERT(!query.charges.empty() + !query.attributes.empty() + query.limit.has_value() == 1);
  WEIR_ASSERT(query.attributes.size() <= weir::bounds::attributes_max);
  WEIR_ASSERT(query.charges.size() <= weir::bounds::charges_max);
  for (const weir::NamedCharge& charge : query.charges) WEIR_ASSERT(charge.cost >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static weir::JsonReader reader;
  const auto value = reader.read({reinterpret_cast<const char*>(data), size});
  if (!value) return 0;
  weir::Queries queries;
  weir::Query check;
  const auto check_error = weir::read_check(*value, queries, check);
  expect_sound(check_error, check);
  weir::Query throttle;
  const auto throttle_error = weir::read_throttle(*value, queries, throttle);
  expect_sound(throttle_error, throttle);
  return 0;
}
