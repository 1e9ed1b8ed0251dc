// Reads a limit's numbers from one section of a configuration. Accepts other systems' spellings: `average` and
// `capacity` for count and burst, `addTokenMs: 500` for one every 500 ms.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "weir/config/document.h"
#include "weir/core/limit.h"

namespace weir::config {

struct Written {
  // A number, and the node that gives it.
  template <class T>
  struct Given {
    std::optional<T> value;
    NodeId at = kNoNode;
    bool inherited = false;  // from another section
  };
  Given<Count> count;
  Given<Duration> period;
  Given<Count> burst;
  bool unlimited = false;      // `average: 0`
  Duration idle{};             // `maximumTimeBeforeTokenExpiry`
  bool has_refused = false;    // a number in the section was refused, so a missing number may not be an error
  NodeId inheritor = kNoNode;  // the section that inherits; problems with inherited numbers are reported there

  bool any() const noexcept { return count.value || period.value || burst.value; }
};

// Complains if two spellings give different values. Skips refused nodes. REQUIRES: the section was checked.
Written read_numbers(const Document& document, NodeId section, Complaints& complaints);

// Returns true if a refused key in the section is one of `words` or a likely misspelling of one.
bool has_refused_word(const Document& document, NodeId section, std::span<const std::string_view> words);

// Returns the numbers of `over`, which was read from the section `inheritor`, with missing ones taken from `under`. An
// absent burst defaults to the count.
Written inherit(const Written& under, const Written& over, NodeId inheritor);

// Returns nullopt if there are no numbers, or after a complaint about incomplete or invalid ones.
std::optional<Limit> make_limit(const Document& document, const Written& written, Complaints& complaints);

}  // namespace weir::config
