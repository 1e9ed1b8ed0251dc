// A verdict with the words that go with its numbers: what a protocol needs to write a reply, a metric to count it.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "weir/base/bounds.h"
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
  bool secret = false;                   // the id holds an API key: only its owner sees it in full
  Duration window = Duration::zero();    // from empty to full, or a quota's whole window
  Duration interval = Duration::zero();  // one token's time; zero: everything comes back at once, as a quota does
  std::string_view route = {};           // whose limit this is; empty: none, or the limit was named
};

// What the access lists said before any limit was asked.
enum class Access : unsigned char {
  limited,       // nothing: the limits decide
  allow_listed,  // passes, takes no token
  deny_listed,   // denied until the entry ends
};

struct Answer {
  Verdict verdict;
  Access access = Access::limited;
  // One per decision of the verdict, at the same index; behind them, limits that apply but were not asked because an
  // earlier one denied.
  std::array<Label, bounds::charges_max> labels{};
  std::size_t labelled = 0;  // labels that mean something
  std::string_view route;    // that the request took; empty: none, or limits were named
  Now now;                   // the reading the decisions used
};

}  // namespace weir
