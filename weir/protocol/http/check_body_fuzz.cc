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
  if (const auto* const own = std::get_if<weir::OwnBucket>(&query.subject)) {
    WEIR_ASSERT(own->limit && own->cost >= 0);
  } else if (const auto* const facts = std::get_if<weir::RequestFacts>(&query.subject)) {
    WEIR_ASSERT(!facts->attributes.empty() && facts->attributes.size() <= weir::bounds::attributes_max);
    WEIR_ASSERT(facts->cost.value_or(1) >= 0);
  } else {
    const auto& named = std::get<weir::NamedCharges>(query.subject);
    WEIR_ASSERT(!named.charges.empty() && named.charges.size() <= weir::bounds::charges_max);
    for (const weir::NamedCharge& charge : named.charges) WEIR_ASSERT(charge.cost >= 0);
  }
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
