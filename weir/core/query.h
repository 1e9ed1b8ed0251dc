// What a client or an operator asks for, as every protocol decodes it. The policy turns it into charges.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "weir/base/time.h"
#include "weir/core/key.h"
#include "weir/core/limit.h"
#include "weir/core/quota.h"

namespace weir {

enum class Mode : unsigned char {
  spend,   // decide, and take the cost if allowed
  peek,    // decide, but take nothing
  look,    // a peek by an operator, whose limit may be outdated, so it never writes
  refund,  // return the cost, but never beyond the burst
  reset,   // forget the bucket; a forgotten bucket is full
};

// How to charge several limits at once.
enum class Order : unsigned char {
  together,  // all or none
  in_order,  // one after another; stop at the first denial
};

// Something the request carries: {"header:x-tenant-id", "acme"}.
struct Attribute {
  std::string_view name;
  std::string_view value;
};

// A limit that the caller names, with the id to charge.
struct NamedCharge {
  std::string_view limit;
  std::string_view id;
  Count cost = 1;
  std::string_view tier = {};  // the client's tier; empty: unknown
};

// The possible subjects of a query. Views are valid until the call they are passed to returns.

// Charges limits by name.
struct NamedCharges {
  std::span<const NamedCharge> charges;
  Order order = Order::together;
};

// Whether a limit applies to a logged request, which may lack the value that the limit is keyed by.
enum class Applies : unsigned char {
  always,    // as for any request
  if_known,  // only if the key is known; a request without it is not refused
  never,
};

// A request as received. Its route determines which limits are charged, and how.
struct RequestFacts {
  std::span<const Attribute> attributes;
  std::string_view caller{};    // the peer's address, or "unix"; empty: unknown
  std::optional<Count> cost{};  // unset: the route's cost
  bool wants_backend = false;   // a proxy asks: find Answer::backend_url even if no limit applies
  bool may_lack_keys = false;   // a limit whose key it lacks does not apply, also where `missing` says to refuse
  // The ids under which a server charged this request, as in bucket keys. A log has these even where it lacks the
  // values they were made from.
  std::span<const NamedCharge> counted{};
  std::span<const Applies> applies{};  // indexed like the policy's limits; empty: all always apply
};

// A limit that the caller supplies for one descriptor.
struct OwnNumbers {
  Count count = 0;
  Duration period{};
};

// A list of key-value pairs; the policy looks up its limit (policy/descriptors.h).
struct Descriptor {
  std::span<const Attribute> entries;
  Count cost = 1;
  bool peeks = false;                   // decides whether the cost fits, but takes nothing
  std::optional<OwnNumbers> numbers{};  // overrides the policy's limit
};

// Descriptors of one domain. All that have a limit are charged together.
struct Descriptors {
  std::string_view domain;
  std::span<const Descriptor> list;
};

// A bucket and a limit that the caller supplies.
struct OwnBucket {
  std::string_view key;
  std::optional<Limit> limit{};  // a reset needs none
  Count cost = 1;
};

// Any bucket by its full key in the store, for operators, who look at buckets and reset them. Takes no tokens.
struct ExactBucket {
  Key key;
  std::optional<Limit> limit{};  // a reset needs none
  Time since = Time::max();      // as RateCharge::since
  std::optional<Quota> quota{};  // set if the bucket is a quota
};

// Checks that the store works; an Error if it does not. Never counted in metrics.
struct StoreProbe {};

struct Query {
  std::variant<NamedCharges, RequestFacts, Descriptors, OwnBucket, ExactBucket, StoreProbe> subject;
  Mode mode = Mode::spend;
};

}  // namespace weir
