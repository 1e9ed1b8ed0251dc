// A limit's numbers as one section of a configuration writes them, other systems' spellings translated: `average` and
// `capacity` are count and burst, `addTokenMs: 500` is one every 500 ms.
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
  struct Said {
    std::optional<T> value;
    NodeId at = kNoNode;
    bool inherited = false;  // another section gave it
  };
  Said<Count> count;
  Said<Duration> period;
  Said<Count> burst;
  bool unlimited = false;    // `average: 0`
  Duration idle{};           // `maximumTimeBeforeTokenExpiry`
  bool has_refused = false;  // a number in the section was refused: what seems to be missing may be that
  NodeId heir = kNoNode;     // the section that inherits; problems with inherited numbers are reported there

  bool any() const noexcept { return count.value || period.value || burst.value; }
};

// Complains when one thing is said twice with different values. REQUIRES: the section was checked; what was
// refused is passed over.
Written read_numbers(const Document& document, NodeId section, Complaints& complaints);

// Whether something that was refused in the section is one of `words`, or was meant to be.
bool has_refused_word(const Document& document, NodeId section, std::span<const std::string_view> words);

// The numbers of `over`, read from the section `heir`, and those of `under` where it has none. A burst that was
// not given follows the count.
Written inherit(const Written& under, const Written& over, NodeId heir);

// Nothing when there are no numbers, or after a complaint about numbers that are incomplete or break a rule.
std::optional<Limit> make_limit(const Document& document, const Written& written, Complaints& complaints);

}  // namespace weir::config
