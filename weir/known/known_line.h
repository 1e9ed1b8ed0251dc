// One adjustment or access entry as one line of text, without the line feed: the format of the file (known_file.h) and
// of the data that servers share (known_share.h).
//
//   adjust limit=orders id=7 burst=50 expires=1767225600000000000 by=token:4f2a
//   deny ip=203.0.113.0/24 reason=abuse%20of%20search expires=1798761600000000000 by=
//   block ip=203.0.113.9 reason=denied%20often expires=1798761600000000000 by=
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "weir/base/result.h"
#include "weir/known/known.h"

namespace weir {

struct KnownLine {
  std::variant<Adjustment, AccessEntry> what;
  bool block = false;  // an automatic block: an entry of the deny list
};

std::string print_line(const Adjustment& adjustment);
std::string print_line(const AccessEntry& entry, bool block = false);

// Strict: fails for any line that print_line() would not write.
Result<KnownLine> parse_line(std::string_view line);

}  // namespace weir
