// Handles the spellings of a limit's numbers: `rate: 10/s` is a count and a period, `capacity` is a burst. A value from
// a source of higher precedence replaces every spelling of the same number from other sources.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weir/config/document.h"

namespace weir::config {

// Removes from `limit` the numbers that these keys will replace, in any spelling. If only the count or only the period
// of a rate is replaced, the rate is first split into both, with its position.
void remove_replaced(Document& document, NodeId limit, std::span<const std::string> keys);

// Removes every entry with that key from a map.
void drop(Document& document, NodeId section, std::string_view key);

}  // namespace weir::config
