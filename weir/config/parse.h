// Loads a configuration. In: a file, the files it names, environment variables and flags. Out: a Policy and Settings,
// or the complete list of problems. Strict: one unknown key, duplicate key, wrong type or bad value rejects the whole
// configuration. The table in fields.h defines the file's structure; the schema (schema.h) is generated from it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/base/result.h"
#include "weir/config/problem.h"
#include "weir/config/settings.h"
#include "weir/identify/jwt.h"
#include "weir/policy/policy.h"

namespace weir::config {

using Environment = std::map<std::string, std::string, std::less<>>;

// What the admin API changes at run time, on top of everything else (amend.h).
struct Amendment {
  enum class Kind : unsigned char {
    merge,    // {"limits": {NAME: {count, period, burst, …}}}: numbers of existing limits
    replace,  // a policy in YAML instead of the file's: limits, names, overrides, routes, access, headers, …
  };
  Kind kind = Kind::merge;
  std::string text;
};

// The inputs of a configuration besides its file. Precedence: defaults < file < environment < flags < amendments.
struct Options {
  Environment environment;  // passed in: nothing here reads the process's own environment
  Environment flags;        // path to value, e.g. {"redis.mode", "cluster"}, {"listen[0].address", …}
  std::vector<Amendment> amendments;
  // The key of `hashed` limits if `hash_key` is empty: a server generates one and keeps it with its state.
  std::string made_hash_key;
  // The JWT keys in force. They are kept if the key file cannot be used.
  JwtKeys jwt_keys;
  std::shared_ptr<JwtCounts> jwt_counts;  // of rejected tokens; null: not counted
  // How files are read: `limits: defaults.yaml`, `file:/run/secrets/x`. Empty: from disk.
  std::function<Result<std::string>(const std::string& path)> read;
  // Returns the names of the files in a directory, in any order; nullopt if the path is not a directory. Empty: from
  // disk.
  std::function<std::optional<std::vector<std::string>>(const std::string& path)> list;
  // Called with each path before it is read, whether it can be read or not.
  std::function<void(const std::string& path)> reading;
  // For a reload: the files that were empty in the configuration in force. Any other empty file is probably being
  // written, or was a pipe, and is rejected. Absent at startup: empty files are accepted.
  std::optional<std::vector<std::string>> empty_before;
  // How long to wait for data from a pipe. Without a bound, a pipe without a writer would block a reload, and shutdown,
  // indefinitely.
  Duration pipe_patience = std::chrono::seconds{10};
};

// One value in force, and where it came from.
struct Setting {
  std::string path;    // "redis.mode", "limits.per-ip.count"
  std::string value;   // in the syntax of the file; a list as "[a, b]"; "(hidden)" for a secret that is set
  std::string origin;  // "default", "weir.yaml:12:3", "WEIR_REDIS_MODE", "--set", "api"
  bool is_list = false;
  std::vector<std::string> items = {};  // of a list
  // A canonical form: equal for different spellings of the same value, such as 64KiB and 65536. For a secret it is a
  // hash.
  std::string meaning = {};
  bool is_default = false;  // omitting it has the same effect
  // True for parts of limits, names, routes and access list entries, which diff.h compares as a whole.
  bool is_part = false;
  bool is_live = true;  // a reload applies a change; false: only a restart does
};

struct Loaded {
  std::shared_ptr<const Policy> policy;
  Settings settings;
  std::vector<Setting> origins;          // every value in force, in the order of the table, then limits and names
  std::vector<std::string> warnings;     // sentences: accepted, but probably a mistake
  JwtKeys jwt_keys;                      // of tokens
  std::vector<std::string> empty_files;  // files that were read and are empty
};

using Outcome = std::variant<Loaded, Problems>;

// A configuration that was read and checked but has no policy yet. The policy needs the hash key, and a server has that
// only after opening the state files that the settings name.
struct Checked {
  Loaded loaded;  // without a policy
  Policy::Parts parts;
  std::vector<AccessEntry> access;  // with ids as written

  // `made_hash_key` as in Options.
  Loaded finish(std::string_view made_hash_key) &&;
};

// Loads the file at `path` and the files it names; reads each once. An empty path: the environment only
// (WEIR_RATE_LIMIT_*).
Outcome load(const std::string& path, const Options& options);
// The same up to the policy; Options::made_hash_key is not used.
std::variant<Checked, Problems> check(const std::string& path, const Options& options);

// The same for text in memory. `name` is the file name in positions; relative paths are resolved against its directory.
Outcome parse(std::string_view text, const std::string& name, const Options& options);

}  // namespace weir::config
