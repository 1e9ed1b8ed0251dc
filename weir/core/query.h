// What every protocol decodes to: who asks what. Knows no limits; the policy turns it into charges.
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

// Who asks what, in one of these forms. Views die when the call they are passed to returns.

// Limits by name.
struct NamedCharges {
  std::span<const NamedCharge> charges;
  Order order = Order::together;
};

// Whether a limit applies to a request of a log, which may lack what the limit is keyed by.
enum class Applies : unsigned char {
  always,    // as to any request
  if_known,  // if its key is known: a request without it is not refused
  never,
};

// A request as it came: its route says which limits are charged, and how.
struct RequestFacts {
  std::span<const Attribute> attributes;
  std::string_view caller{};    // the address that asks; empty: unknown, or not a network's
  std::optional<Count> cost{};  // nothing: the route says it
  // What a server counted this request as, ids as in bucket keys: a log has them where it lacks what they were made of.
  std::span<const NamedCharge> counted{};
  std::span<const Applies> applies{};  // by the policy's limits; empty: all always
};

// Numbers that a caller brings along for one descriptor.
struct OwnNumbers {
  Count count = 0;
  Duration period{};
};

// A list of keys and values whose limit the policy looks up (policy/descriptors.h).
struct Descriptor {
  std::span<const Attribute> entries;
  Count cost = 1;
  bool peeks = false;                   // decided for its cost, and takes nothing
  std::optional<OwnNumbers> numbers{};  // instead of the policy's
};

// Descriptors of one domain: all that apply are charged together.
struct Descriptors {
  std::string_view domain;
  std::span<const Descriptor> list;
};

// A bucket of the caller's own, with numbers that it brings along.
struct OwnBucket {
  std::string_view key;
  std::optional<Limit> limit{};  // a reset needs none
  Count cost = 1;
};

// Any bucket by its whole key in the store: for operators, who look and reset. Costs nothing.
struct ExactBucket {
  Key key;
  std::optional<Limit> limit{};  // its numbers; a reset needs none
  Time since = Time::max();      // as RateCharge::since
  std::optional<Quota> quota{};  // its numbers if it is a quota
};

// Whether the store decides: an Error if it does not. Never counted.
struct StoreProbe {};

struct Query {
  std::variant<NamedCharges, RequestFacts, Descriptors, OwnBucket, ExactBucket, StoreProbe> subject;
  Mode mode = Mode::spend;
};

}  // namespace weir
