// Small operations on files that must survive a crash.
#pragma once

#include <string>

#include "weir/base/result.h"

namespace weir {

// Returns whether the path, following symbolic links, names the open file.
bool is_same_file(int fd, const std::string& path);

// Keeps a damaged file for inspection under the first free name of path.damaged-1 to path.damaged-9 (replacing the last
// if all are taken) and returns that name. The path still names it, unless the file system has no hard links.
Result<std::string> keep_aside(const std::string& path);

// Returns "PATH: cannot VERB it: <errno text>".
Error system_error(const std::string& path, const char* verb);

// Makes a rename in the file's directory durable across a power loss.
Result<void> sync_directory(const std::string& path);

}  // namespace weir
