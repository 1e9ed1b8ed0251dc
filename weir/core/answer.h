// A verdict with the words that go with its numbers: what a protocol needs to write a reply, a metric to count it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/base/bounds.h"
#include "weir/base/inline_list.h"
#include "weir/base/time.h"
#include "weir/core/charge.h"
#include "weir/core/verdict.h"

namespace weir {

// What belongs to one bucket of a limit.
struct BucketLabel {
  std::string_view key;                  // in the store; empty: no bucket was asked
  Duration window = Duration::zero();    // from empty to full, or a quota's whole window
  Duration interval = Duration::zero();  // one token's time; zero: everything comes back at once, as a quota does
  Source source = Source::limit;         // where the numbers came from
};

// What belongs to one decision. Views live as long as the Answer is being used.
struct Label {
  std::string_view limit;  // its name; empty where the caller brought the numbers
  std::string_view id;     // canonical, or its keyed hash: what may be stored, logged and shown
  std::string_view key;    // what kind of client it counts: ip, apikey, header, …; empty: ids that callers name
  BucketLabel rate{};      // of a limit that asked no bucket, where that came from
  BucketLabel quota{};
  bool shadow = false;
  bool secret = false;                 // the id holds an API key: others see a handle (identify/handle.h)
  std::string_view route = {};         // whose limit this is; empty: none, or the limit was named
  std::string_view limiter_type = {};  // `key` for metrics; of several parts "ip+path"

  const BucketLabel& half(Kind kind) const noexcept { return kind == Kind::quota ? quota : rate; }
  // The bucket that a client is listed by: its rate's, or the quota's where that is all there is.
  std::string_view bucket() const noexcept { return rate.key.empty() ? quota.key : rate.key; }
};

// What the access lists said before any limit was asked.
enum class Access : unsigned char {
  limited,       // nothing: the limits decide
  allow_listed,  // passes, takes no token
  deny_listed,   // denied until the entry ends
};

// One for each decision, at the same index. Grows on first write; an index beyond it reads as an empty label.
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

// Which headers an HTTP answer has: `headers:` of the configuration.
struct HeaderFamilies {
  bool x_ratelimit = true;  // X-RateLimit-Limit, -Remaining, -Reset: of the decision that speaks
  bool ietf = true;  // RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers): of all that enforce
  bool reset_is_epoch = true;  // X-RateLimit-Reset: seconds since 1970, or from now
};

// What became of one descriptor of a query.
struct DescriptorAnswer {
  enum class Standing : unsigned char {
    unmatched,  // no rule applies, or one that another replaces
    unlimited,  // nothing limits it
    decided,    // by a bucket
    blocked,    // always denied
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  Standing standing = Standing::unmatched;
  std::size_t decision = kNone;  // of `decided`: index into the verdict's
  std::string_view name;         // the rule's, as written
  Count count = 0;               // its numbers
  Duration unit{};
  std::uint32_t multiplier = 1;
  bool shadow = false;
  bool alternative = false;
  std::string_view metadata;  // the rule's, a JSON object; empty: none
};

// Another limit that counts an entry of a descriptor and was charged with it.
struct DescriptorJoin {
  std::size_t descriptor = 0;  // the first that has the entry
  std::size_t decision = 0;    // index into the verdict's
  std::string_view name;       // the limit's
  Count count = 0;             // its numbers
  Duration period{};
  bool shadow = false;
};

struct Answer {
  Verdict verdict;
  Access access = Access::limited;
  Labels labels;              // behind those of decisions, limits that apply but were not asked: an earlier one denied
  std::size_t labelled = 0;   // labels that mean something
  std::string_view route;     // that the request took; empty: none, or limits were named
  std::string_view hash_key;  // of handles of API keys
  std::string_view backend_url;                     // where the proxy sends this request; empty: where its route says
  Now now;                                          // the reading the decisions used
  HeaderFamilies headers{};                         // as the policy says that decided
  std::span<const DescriptorAnswer> descriptors{};  // of a query of descriptors: one for each
  std::span<const DescriptorJoin> joins{};
};

}  // namespace weir
