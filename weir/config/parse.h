// From files and environment to a Policy and Settings, or to everything that is wrong with them. Strict: an unknown
// key, a key written twice, a wrong type or a bad value refuses the whole configuration. The shape of the file is the
// table in fields.h; the schema (schema.h) comes from the same table.
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
    merge,    // {"limits": {NAME: {count, period, burst, …}}}: numbers of limits that there are
    replace,  // a policy in YAML instead of the file's: limits, names, overrides, routes, access, headers, …
  };
  Kind kind = Kind::merge;
  std::string text;
};

// What a configuration is made of besides its file. Precedence: defaults < file < environment < flags < amendments.
struct Options {
  Environment environment;  // as data: nothing here reads the process's own
  Environment flags;        // path to value, e.g. {"redis.mode", "cluster"}, {"listen[0].address", …}
  std::vector<Amendment> amendments;
  // The key of `hashed` limits where `hash_key` is empty: a server makes one and keeps it with its state.
  std::string made_hash_key;
  // The keys of tokens in force: they stay where the key file cannot be used.
  JwtKeys jwt_keys;
  std::shared_ptr<JwtCounts> jwt_counts;  // of rejected tokens; null: not counted
  // How files are read: `limits: defaults.yaml`, `file:/run/secrets/x`. Empty: from disk.
  std::function<Result<std::string>(const std::string& path)> read;
  // The names of the files in a directory, in any order; nothing: this is no directory. Empty: from disk.
  std::function<std::optional<std::vector<std::string>>(const std::string& path)> list;
  // Called with each path before it is read, whether it can be read or not.
  std::function<void(const std::string& path)> reading;
  // Those files that are empty in the configuration in force; absent: none is. At the start an empty file
  // is accepted; one that has become empty is being written, or was a pipe, and is refused.
  std::optional<std::vector<std::string>> empty_before;
  // How long to wait for a pipe: one without a writer would block a reload, and the end of the process, forever.
  Duration pipe_patience = std::chrono::seconds{10};
};

// One value in force, and where it came from.
struct Setting {
  std::string path;    // "redis.mode", "limits.per-ip.count"
  std::string value;   // as it would be written, a list as "[a, b]"; "(hidden)" for a secret that is set
  std::string origin;  // "default", "weir.yaml:12:3", "WEIR_REDIS_MODE", "--set", "api"
  bool is_list = false;
  std::vector<std::string> items = {};  // of a list
  // Two spellings mean the same if these are equal: 64KiB and 65536. Of a secret it tells two apart and holds neither.
  std::string meaning = {};
  bool is_default = false;  // leaving it out means the same
  // Part of a limit, a name, a route or an entry of an access list, which are compared as a whole (diff.h).
  bool is_part = false;
  bool is_live = true;  // a reload applies a change of it; otherwise it takes a restart
};

struct Loaded {
  std::shared_ptr<const Policy> policy;
  Settings settings;
  std::vector<Setting> origins;          // every value in force, in the order of the table, then limits and names
  std::vector<std::string> warnings;     // sentences: accepted, but probably not meant
  JwtKeys jwt_keys;                      // of tokens
  std::vector<std::string> empty_files;  // that were read and have nothing in them
};

using Outcome = std::variant<Loaded, Problems>;

// A configuration that was read and checked, and lacks only its policy: that needs the key of hashed limits, which a
// server has only after it has opened the state that the settings name.
struct Checked {
  Loaded loaded;  // without a policy
  Policy::Parts parts;
  std::vector<AccessEntry> access;  // with ids as written

  // `made_hash_key` as in Options.
  Loaded finish(std::string_view made_hash_key) &&;
};

// The file at `path`, and the files it names, each of them read once. An empty path: the environment alone
// (WEIR_RATE_LIMIT_*).
Outcome load(const std::string& path, const Options& options);
// The same up to the policy; Options::made_hash_key is not used.
std::variant<Checked, Problems> check(const std::string& path, const Options& options);

// The same for text already in memory; `name` is the file in positions, and relative paths start from its directory.
Outcome parse(std::string_view text, const std::string& name, const Options& options);

}  // namespace weir::config
