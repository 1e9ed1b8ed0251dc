// Reads the configuration for a command (file, environment, --set), and prints its problems and warnings.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/base/result.h"
#include "weir/cli/command.h"
#include "weir/cli/output.h"
#include "weir/config/parse.h"
#include "weir/net/watched_files.h"

namespace weir::cli {

// Hashed limits need a key even when nothing is stored. A fixed one makes two runs print the same ids; it protects
// nothing, because nothing leaves an offline command that its input did not already say. A server has its own.
inline constexpr std::string_view kOfflineHashKey = "weir offline";

// The values of `--set PATH=VALUE`, by path. The Error is a sentence about one that cannot be read.
using Flags = config::Environment;
Result<Flags> read_flags(const Arguments& arguments);

// Loads the file, with the process's environment and then the flags on top. An empty path means no file.
config::Outcome load(const std::string& path, const Flags& flags);

// What a server starts from. Its files are read once: it opens its state, which has the key of hashed limits, between
// Checked and its policy.
struct ServerStart {
  config::Checked checked;
  std::vector<SeenFile> files;  // as they looked before they were read
  std::string path;             // of the file to read at a reload; empty: only the environment
  Flags flags;                  // applied at every load
  std::shared_ptr<JwtCounts> jwt_counts;
};

// Reads a configuration for a server to start with or to reload. The environment is the process's own, not that of
// `options`.
std::variant<config::Checked, config::Problems> check_to_serve(const std::string& path, config::Options options);

// Returns warnings about certificates of listeners, of backends and of the Redis store with which a server could not
// start here. Not errors, because a file may be checked on a machine that does not have them.
std::vector<std::string> doubt_certificates(const config::Loaded& loaded, const std::string& path);

// Returns warnings about decision listeners that other machines can reach without a secret or a client certificate.
std::vector<std::string> doubt_listeners(const config::Loaded& loaded);

// Returns warnings about a Redis that is configured and has no effect. `limits` are those of `loaded`.
std::vector<std::string> doubt_redis(const config::Loaded& loaded, std::span<const NamedLimit> limits);

// Prints a line per problem on err, and a last one that counts them.
void print_error(const config::Problems& problems, const std::string& path, Console& console);

// Prints a line per warning on err, each warning once.
void warn(std::vector<std::string> warnings, Console& console);

// Calls load() with the flags of the command line. Prints problems; returns nothing if there are any.
std::optional<config::Loaded> load_or_explain(const std::string& path, const Arguments& arguments, Console& console);

// How long buckets are kept after they are full: the table has one time for all, the longest that any limit asks for.
Duration longest_idle(const Policy& policy);

// "3 limits", "1 limit".
std::string counted(std::size_t n, const std::string& noun);

}  // namespace weir::cli
