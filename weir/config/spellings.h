// One number of a limit has several spellings: `rate: 10/s` is a count and a period, `capacity` a burst. Where a source
// that counts more says one of them, what other sources say about it in any spelling goes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weir/config/document.h"

namespace weir::config {

// For somebody who is about to give `limit` these keys: takes away what they stand instead of. A rate of which only the
// count or the period goes is spelled out, and keeps its place.
void make_room(Document& document, NodeId limit, std::span<const std::string> keys);

// Takes every entry of that key out of a map.
void drop(Document& document, NodeId section, std::string_view key);

}  // namespace weir::config
