// Translates a configuration of EdgeQuota, an edge proxy with distributed limits, to Weir's. Accepts its flat schema
// (rate_limit.average) and the nested one (rate_limit.static.average).
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/config/problem.h"

namespace weir::config {

struct Imported {
  std::string yaml;                // a complete configuration
  std::vector<std::string> notes;  // "edge.yaml:7:3: events has no counterpart and is left out"
};

// `name` is the file name for messages. Returns Problems if the text is not YAML or a value cannot be translated.
std::variant<Imported, Problems> import_edgequota(std::string_view text, const std::string& name);

}  // namespace weir::config
