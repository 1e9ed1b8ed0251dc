// Small operations on files that must survive a crash.
#pragma once

#include <string>

#include "weir/base/result.h"

namespace weir {

// Whether the path, symbolic links followed, names the open file.
bool is_same_file(int fd, const std::string& path);

// Gives the file the first free of the names path.damaged-1 to path.damaged-9 (the last is used again when all are
// taken) and returns it. The path keeps its file as well, until something takes its place.
Result<std::string> keep_aside(const std::string& path);

// "PATH: cannot VERB it: <what the system says>".
Error system_error(const std::string& path, const char* verb);

// Makes a rename in the file's directory last through a power loss.
Result<void> sync_directory(const std::string& path);

}  // namespace weir
