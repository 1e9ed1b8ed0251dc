// Secrets that a configuration only points to: `env:NAME` and `file:/path`. They are looked up after the check and
// replace the pointer in the tree; nothing here or later puts one into a sentence.
#pragma once

#include <span>

#include "weir/config/document.h"
#include "weir/config/fields.h"
#include "weir/config/parse.h"

namespace weir::config {

void resolve_secrets(const Options& options, Document& document, NodeId section, std::span<const Field> fields,
                     Complaints& complaints);

// A file's bytes, by Options::read or from disk. The Error names the path.
Result<std::string> read_file(const Options& options, const std::string& path, std::size_t bytes_max);

}  // namespace weir::config
