// A verdict together with the names that describe it: what a protocol needs to write a reply and a metric to count it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/bounds.h"
#include "weir/base/inline_list.h"
#include "weir/base/time.h"
#include "weir/core/charge.h"
#include "weir/core/verdict.h"

namespace weir {

// Describes one bucket of a limit.
struct BucketLabel {
  std::string_view key;                  // in the store; empty: no bucket was used
  Duration window = Duration::zero();    // time from empty to full, or a quota's whole window
  Duration interval = Duration::zero();  // time to earn one token; zero: all tokens return at once, as in a quota
  Source source = Source::limit;         // where the numbers came from
};

// Describes one decision. Views are valid while the Answer is in use.
struct Label {
  std::string_view limit;  // its name; empty if the caller supplied the limit
  std::string_view id;     // canonical id or its keyed hash: safe to store, log and show
  std::string_view key;    // how clients are identified: ip, apikey, header, …; empty: callers supply the id
  BucketLabel rate{};      // only `source` is set if no bucket was used
  BucketLabel quota{};
  bool shadow = false;
  bool secret = false;                 // the id contains an API key; others see only a handle (identify/handle.h)
  std::string_view route = {};         // the limit's route; empty: none, or the caller named the limit
  std::string_view limiter_type = {};  // `key` for metrics; composite keys look like "ip+path"
  Count cost = 1;                      // charged to its buckets
  std::string_view tier = {};          // the client's, if the limit defines it; empty: none

  const BucketLabel& half(Kind kind) const noexcept { return kind == Kind::quota ? quota : rate; }
  // The bucket that lists show for a client: the rate's, or the quota's if there is no rate.
  std::string_view bucket() const noexcept { return rate.key.empty() ? quota.key : rate.key; }
};

// What the access lists decided before any limit was checked.
enum class Access : unsigned char {
  limited,       // no entry matched: the limits decide
  allow_listed,  // allowed; takes no tokens
  deny_listed,   // denied until the entry expires
};

// One label per decision, at the same index. Grows on first write; an index beyond it reads as an empty label.
class Labels {
 public:
  // REQUIRES: i < bounds::charges_max.
  Label& operator[](std::size_t i) noexcept {
    while (given_.size() <= i) given_.push_back({});
    return given_[i];
  }
  const Label& operator[](std::size_t i) const noexcept {
    static constexpr Label kNone{};
    return i < given_.size() ? given_[i] : kNone;
  }

 private:
  InlineList<Label, bounds::charges_max> given_;
};

// Which headers an HTTP response carries; `headers:` in the configuration.
struct HeaderFamilies {
  bool x_ratelimit = true;  // X-RateLimit-Limit, -Remaining, -Reset: of the reported decision
  bool ietf = true;  // RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers): of all enforcing limits
  bool reset_is_epoch = true;  // X-RateLimit-Reset is in seconds since 1970; otherwise from now
};

// The result for one descriptor of a query.
struct DescriptorAnswer {
  enum class Standing : unsigned char {
    unmatched,  // no rule applies, or another rule replaces it
    unlimited,  // nothing limits it
    decided,    // by a bucket
    blocked,    // always denied
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  Standing standing = Standing::unmatched;
  std::size_t decision = kNone;  // if `decided`: index into the verdict's decisions
  std::string_view name;         // the rule's, as written
  Count count = 0;               // its numbers
  Duration unit{};
  std::uint32_t multiplier = 1;
  bool shadow = false;
  bool alternative = false;
  std::string_view metadata;  // the rule's metadata, a JSON object; empty: none
};

// Another limit that counts an entry of a descriptor and was charged along with it, or denies its id.
struct DescriptorJoin {
  std::size_t descriptor = 0;  // the first descriptor that has the entry
  std::size_t decision = 0;    // index into the verdict's decisions; DescriptorAnswer::kNone: always denied
  std::string_view name;       // the limit's
  Count count = 0;             // its numbers
  Duration period{};
  bool shadow = false;
};

struct Answer {
  Verdict verdict;
  Access access = Access::limited;
  Labels labels;                 // one per decision, then those of limits not reached because of a denial
  std::size_t labelled = 0;      // number of labels set
  std::string_view route;        // the request's route; empty: none, or the caller named limits
  std::string_view hash_key;     // key of the hash in API key handles
  std::string_view backend_url;  // where the proxy sends this request; empty: the route's backend
  std::span<const std::string> backend_hosts{};     // hosts that backend_url may name although they are not public
  bool backend_unknown = false;                     // a limit requires a backend_url, and none is known
  Now now;                                          // the clock reading that the decisions used
  HeaderFamilies headers{};                         // from the policy that decided
  std::span<const DescriptorAnswer> descriptors{};  // one per descriptor of the query
  std::span<const DescriptorJoin> joins{};
};

}  // namespace weir
