// Which limits apply, with which numbers. A Policy is made once from a configuration (parse.h) and never changes; a
// reload makes another and swaps the pointer. In: a Query. Out: the charges for a store, every number decided, every
// key written out. Pure: time is an argument, nothing is remembered between two calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/core/charge.h"
#include "weir/core/limit.h"
#include "weir/core/query.h"
#include "weir/policy/named_limit.h"

namespace weir {

// What became of one limit that a query names.
enum class Standing : unsigned char {
  charged,    // its bucket, its quota, or both are among the charges
  unlimited,  // nothing to charge: an override, `average: 0`, or a limit without numbers and no override for this id
  blocked,    // an override says `blocked: true`
  off,        // the limit's mode is off
};

std::string_view print(Standing standing) noexcept;

inline constexpr std::size_t kNoCharge = static_cast<std::size_t>(-1);

// One entry of Query::charges, at the same index.
struct Part {
  const NamedLimit* limit = nullptr;  // the policy's; lives as long as it does
  std::string_view id;                // canonical, or its keyed hash: what may be stored, logged and shown
  Standing standing = Standing::charged;
  Source source = Source::limit;   // where the bucket's numbers, or the standing, came from
  std::size_t bucket = kNoCharge;  // index into Resolved::charges() of its bucket
  std::size_t quota = kNoCharge;   // index into Resolved::charges() of its quota
};

// A query's charges and the text their keys point to. Meant to be used again and again: after a few queries it
// allocates nothing. Filled by Policy::resolve() only.
class Resolved {
 public:
  Resolved();
  Resolved(const Resolved&) = delete;  // charges point into the text
  Resolved& operator=(const Resolved&) = delete;

  // What to charge, in the order asked. Empty when nothing limits the query, or when it is blocked() and charged
  // together. With Order::in_order these are the charges before the blocked limit: charge them, then deny.
  std::span<const Charge> charges() const noexcept { return {charges_.data(), charges_size_}; }

  // One per entry of Query::charges.
  std::span<const Part> parts() const noexcept { return {parts_.data(), parts_size_}; }

  // The first part whose limit enforces and whose id is blocked: the query is denied, no wait helps. Null otherwise.
  const Part* blocked() const noexcept { return blocked_ == kNoCharge ? nullptr : &parts_[blocked_]; }

 private:
  friend class Policy;

  void clear();
  std::size_t add(const Charge& charge);  // its index, or that of the same bucket; kNoCharge when full

  std::array<Charge, bounds::charges_max> charges_{};
  std::array<Part, bounds::charges_max> parts_{};
  std::size_t charges_size_ = 0;
  std::size_t parts_size_ = 0;
  std::size_t blocked_ = kNoCharge;
  std::string text_;  // the keys, one after another
};

class Policy {
 public:
  // Everything but the checks: parse.h makes one of these from files, and refuses what does not fit together.
  // REQUIRES: names, numbers and overrides were checked.
  struct Parts {
    std::vector<NamedLimit> limits;  // in the order written
    std::string hash_key;            // of `hashed`; empty: none is known
    int ipv6_prefix = 64;
    FailurePolicy failure_policy = FailurePolicy::pass_through;
    std::string overrides_file;  // where overrides were written, for people
  };
  explicit Policy(Parts parts);

  // The charges of a query that names its limits. Errors: unknown (no such limit), invalid (an id that breaks its
  // format, a negative cost), too_large (more than bounds::charges_max buckets), internal (a hashed limit and no key).
  // The same bucket twice is charged once, with the summed cost.
  Result<void> resolve(const Query& query, Now now, Resolved& out) const;

  std::span<const NamedLimit> limits() const noexcept { return parts_.limits; }
  const NamedLimit* find(std::string_view name) const noexcept;  // null if there is none
  std::size_t override_count() const noexcept { return override_count_; }
  const std::string& overrides_file() const noexcept { return parts_.overrides_file; }
  FailurePolicy failure_policy() const noexcept { return parts_.failure_policy; }
  int ipv6_prefix() const noexcept { return parts_.ipv6_prefix; }

  // Some limit is `hashed` and there is no key to hash with: give Options::made_hash_key (parse.h).
  bool lacks_hash_key() const noexcept;

 private:
  struct Numbers;  // what applies to one id of one limit
  static Numbers choose(const NamedLimit& limit, const Override* found, Wall wall) noexcept;
  Result<void> resolve_one(const NamedCharge& asked, const Query& query, Now now, Resolved& out) const;
  Result<std::string_view> write_key(const NamedLimit& limit, const std::string& id, std::string& text) const;
  Result<void> charge(const Numbers& numbers, std::string_view key, Count cost, Wall wall, Part& part,
                      Resolved& out) const;

  Parts parts_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::size_t override_count_ = 0;
};

}  // namespace weir
