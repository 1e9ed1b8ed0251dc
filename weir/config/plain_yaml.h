// A fast reader for the common subset of YAML, because yaml-cpp takes ten seconds for a million overrides. Reads a map
// of plain keys, each with a plain value, a flow map on the same line, or a block map one level deeper. Leaves
// everything else (quotes, lists, anchors, deeper nesting, errors) to yaml-cpp.
#pragma once

#include <string_view>

#include "weir/config/yaml.h"

namespace weir::config {

// Returns false if the text is outside the subset; discard what the builder was given then. Otherwise the nodes are the
// same as from yaml-cpp.
bool read_plain_yaml(std::string_view text, TreeBuilder& builder);

}  // namespace weir::config
