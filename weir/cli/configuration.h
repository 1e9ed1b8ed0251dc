// What every command that reads a configuration does first.
#pragma once

#include <optional>
#include <string>

#include "weir/cli/output.h"
#include "weir/policy/parse.h"

namespace weir::cli {

// The file with the process's environment on top; an empty path is the environment alone.
policy::Outcome load(const std::string& path);

// One line per problem on err, and a last one that counts them.
void complain(const policy::Problems& problems, const std::string& path, Console& console);

// load(), with complaints printed. Nothing if the configuration is refused.
std::optional<policy::Loaded> load_or_complain(const std::string& path, Console& console);

// "3 limits", "1 limit".
std::string counted(std::size_t n, const std::string& noun);

}  // namespace weir::cli
