// Reads unmodified configuration files of envoyproxy/ratelimit, named by `envoy`, into limits and the descriptor table.
// Rejects what that service rejects, with file and line.
#pragma once

#include <string>
#include <vector>

#include "weir/config/document.h"
#include "weir/config/limits.h"
#include "weir/config/parse.h"
#include "weir/policy/descriptors.h"

namespace weir::config {

// `root` is the node of the whole file; relative paths are resolved against `directory`. Of a directory, reads *.yaml
// and *.yml, but no subdirectories and no names that start with '.', because Kubernetes keeps a second copy of a
// ConfigMap's files in `..data`. Adds a limit for every rule that counts, and one for each domain, which names the
// buckets of callers' own numbers.
DescriptorTable read_envoy(const Options& options, const std::string& directory, Document& document, NodeId root,
                           Limits& limits, Complaints& complaints, Loaded& loaded);

}  // namespace weir::config
