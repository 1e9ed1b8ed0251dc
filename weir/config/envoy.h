// Reads the files of envoyproxy/ratelimit that `envoy` names, as they are, into limits and the table of descriptors.
// What that service refuses is refused here too, with file and line.
#pragma once

#include <string>
#include <vector>

#include "weir/config/document.h"
#include "weir/config/limits.h"
#include "weir/config/parse.h"
#include "weir/policy/descriptors.h"

namespace weir::config {

// `root` is the whole file's node; relative paths start from `directory`. A directory means its *.yaml and *.yml, but
// not names that begin with '.' (Kubernetes keeps a ConfigMap's files a second time in `..data`), and no subfolders.
// Adds a limit for every rule that counts, and one for each domain, which names the buckets of callers' own numbers.
DescriptorTable read_envoy(const Options& options, const std::string& directory, Document& document, NodeId root,
                           Limits& limits, Complaints& complaints, Loaded& loaded);

}  // namespace weir::config
