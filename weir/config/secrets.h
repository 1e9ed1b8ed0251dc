// Resolves references to secrets: `env:NAME` and `file:/path`. Runs after the check and replaces each reference in the
// tree with the secret. No message ever contains a secret.
#pragma once

#include <span>

#include "weir/config/document.h"
#include "weir/config/fields.h"
#include "weir/config/parse.h"

namespace weir::config {

void resolve_secrets(const Options& options, Document& document, NodeId section, std::span<const Field> fields,
                     Complaints& complaints);

// Reads a file with Options::read or from disk. The Error names the path.
Result<std::string> read_file(const Options& options, const std::string& path, std::size_t bytes_max);

}  // namespace weir::config
