// One limit of a policy: its name, its numbers, and what may change them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/time.h"
#include "weir/core/charge.h"
#include "weir/core/limit.h"

namespace weir {

// A limit's or a route's `mode`. Of two, the laxer wins.
enum class Enforcement : unsigned char {
  enforce,
  shadow,  // decided, charged and counted, never denies
  off,
};

// Where the numbers in force came from.
enum class Source : unsigned char { limit, schedule, override };

// What a request without the key gets.
enum class Missing : unsigned char {
  skip,    // this limit does not apply
  reject,  // the request is refused
};

// A server may take this many tokens of a shared bucket at once (store/redis).
struct Lease {
  Count tokens = 0;
  Count servers = 0;

  friend constexpr bool operator==(const Lease&, const Lease&) = default;
};

struct NamedLimit {
  std::string name;
  std::optional<std::uint32_t> number;  // bucket keys begin with it instead of the name
  std::vector<std::string> key;         // key sources as written; empty: callers name the limit and give the id
  std::string id_format;                // "regId:domain"; "ip" when ids are addresses counted by prefix
  std::optional<Limit> numbers;         // absent: unlimited, or only ids with an override are limited
  bool unlimited = false;               // `average: 0`
  Enforcement mode = Enforcement::enforce;
  bool hashed = false;
  bool per_route = false;
  Missing missing = Missing::skip;
  std::optional<FailurePolicy> failure_policy;  // absent: the top level's
  std::optional<int> failure_code;
  std::optional<Lease> lease;
  Duration idle_min{};  // idle buckets are kept at least this long
};

}  // namespace weir
