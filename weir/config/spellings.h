// One number of a limit has several spellings: `rate: 10/s` is a count and a period, `capacity` a burst. A value from
// a source of higher rank replaces every spelling of the same number from other sources.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weir/config/document.h"

namespace weir::config {

// Removes from `limit` what these keys are about to replace, in any spelling. A rate of which only the
// count or the period goes is spelled out, and keeps its place.
void remove_replaced(Document& document, NodeId limit, std::span<const std::string> keys);

// Takes every entry of that key out of a map.
void drop(Document& document, NodeId section, std::string_view key);

}  // namespace weir::config
