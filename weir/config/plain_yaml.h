// The everyday shape of YAML, read directly, because yaml-cpp takes ten seconds over a million overrides: a map of
// plain keys, each with a plain value, a flow map on the same line, or a block map one level below. Everything else
// (quotes, lists, anchors, deeper nesting, errors) is left to yaml-cpp.
#pragma once

#include <string_view>

#include "weir/config/yaml.h"

namespace weir::config {

// False if the text has any other shape: what the builder was given is then to be thrown away. Otherwise the nodes are
// those that yaml-cpp gives.
bool read_plain_yaml(std::string_view text, TreeBuilder& builder);

}  // namespace weir::config
