// What every protocol decodes to: who asks what. Knows no limits; the policy turns it into charges.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "weir/base/time.h"
#include "weir/core/key.h"
#include "weir/core/limit.h"
#include "weir/core/quota.h"

namespace weir {

enum class Mode : unsigned char {
  spend,   // decide, and take the cost if allowed
  peek,    // decide, take nothing
  look,    // a peek that never writes, by an operator who may not know the numbers in force
  refund,  // give the cost back, never beyond full
  reset,   // forget the bucket: a forgotten bucket is a full bucket
};

// How several limits are charged at once.
enum class Order : unsigned char {
  together,  // all or none
  in_order,  // one after another; stop at the first denial
};

// Something the request carries: {"header:x-tenant-id", "acme"}.
struct Attribute {
  std::string_view name;
  std::string_view value;
};

// A limit that the caller names, with the id it wants counted.
struct NamedCharge {
  std::string_view limit;
  std::string_view id;
  Count cost = 1;
  std::string_view tier = {};  // the client's; empty: none is known
};

// Views die when the call they are passed to returns.
struct Query {
  std::string_view domain;                // Envoy's; empty elsewhere
  std::span<const Attribute> attributes;  // for routes and keys
  std::string_view caller;                // the address that asks; empty: unknown, or not a network's
  std::span<const NamedCharge> charges;   // or limits by name
  std::string_view key;                   // or a bucket of the caller's own
  std::optional<Limit> limit;             //   with numbers it brings along
  Time since = Time::max();               //   as Charge::since
  std::optional<Kind> stored;             // or any bucket: `key` is its whole key in the store; for operators
  std::optional<Quota> quota;             //   its numbers if it is a quota
  bool probe = false;                     // or whether the store decides: an Error if it does not; never counted
  Count cost = 1;
  bool cost_said = false;  // of attributes: the caller said the cost, so the route's own does not count
  Mode mode = Mode::spend;
  Order order = Order::together;
};

}  // namespace weir
