// A verdict with the words that go with its numbers: what a protocol needs to write a reply, a metric to count it.
#pragma once

#include <cstddef>
#include <string_view>

#include "weir/base/bounds.h"
#include "weir/base/inline_list.h"
#include "weir/base/time.h"
#include "weir/core/verdict.h"

namespace weir {

// What belongs to one decision. Views live as long as the Answer is being used.
struct Label {
  std::string_view limit;   // its name; empty where the caller brought the numbers
  std::string_view id;      // canonical, or its keyed hash: what may be stored, logged and shown
  std::string_view bucket;  // the bucket's key
  std::string_view source;  // where the numbers came from: limit, schedule, override, …
  std::string_view key;     // what kind of client it counts: ip, apikey, header, …; empty: ids that callers name
  bool shadow = false;
  bool secret = false;                   // the id holds an API key: others see a handle (identify/handle.h)
  Duration window = Duration::zero();    // from empty to full, or a quota's whole window
  Duration interval = Duration::zero();  // one token's time; zero: everything comes back at once, as a quota does
  std::string_view route = {};           // whose limit this is; empty: none, or the limit was named
  std::string_view limiter_type = {};    // `key` for metrics; of several parts "ip+path"
};

// What the access lists said before any limit was asked.
enum class Access : unsigned char {
  limited,       // nothing: the limits decide
  allow_listed,  // passes, takes no token
  deny_listed,   // denied until the entry ends
};

// One for each decision, at the same index. There as soon as somebody writes to it; until then empty.
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

struct Answer {
  Verdict verdict;
  Access access = Access::limited;
  Labels labels;              // behind those of decisions, limits that apply but were not asked: an earlier one denied
  std::size_t labelled = 0;   // labels that mean something
  std::string_view route;     // that the request took; empty: none, or limits were named
  std::string_view hash_key;  // of handles of API keys
  Now now;                    // the reading the decisions used
  HeaderFamilies headers{};   // as the policy says that decided
};

// A limit with numbers and a quota has two decisions, side by side: the stricter one is the limit's answer.
inline bool speaks_for_its_limit(const Answer& answer, std::size_t i) noexcept {
  const auto& all = answer.verdict.all;
  const auto of_one = [&](std::size_t a, std::size_t b) {
    const Label& first = answer.labels[a];
    return !first.limit.empty() && first.limit == answer.labels[b].limit && first.id == answer.labels[b].id;
  };
  const bool second = i > 0 && of_one(i - 1, i);
  if (!second && (i + 1 >= all.size() || !of_one(i, i + 1))) return true;
  const std::size_t other = second ? i - 1 : i + 1;
  if (i == answer.verdict.strictest || other == answer.verdict.strictest) return i == answer.verdict.strictest;
  return second ? stricter(all[i], all[other]) : !stricter(all[other], all[i]);
}

}  // namespace weir
