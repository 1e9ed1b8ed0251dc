// Determines what a reload would change, as plain data for `config diff` and for the server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/config/parse.h"

namespace weir::config {

struct Change {
  enum class Kind : unsigned char { added, removed, changed };
  Kind kind = Kind::changed;
  // "limit per-ip", "override per-ip:10.0.0.2", "route signin", "access deny 10.0.0.2", "setting redis.mode"
  std::string what;
  std::string path;    // of a setting; otherwise empty
  std::string before;  // empty when added
  std::string after;   // empty when removed
  bool live = true;    // false: takes effect only after a restart

  std::string text() const;  // "changed limit per-ip: 100 per 1s, burst 20 -> 200 per 1s, burst 20"

  friend bool operator==(const Change&, const Change&) = default;
};

// Returns the changes; empty if a reload would change nothing. Compares meaning, not spelling. Limits come first, in
// the order of `before`, then of `after`; then overrides, routes, access lists and settings.
std::vector<Change> diff(const Loaded& before, const Loaded& after);
// Settings only: everything but limits, names, overrides, routes and entries of access lists.
std::vector<Change> diff_settings(const Loaded& before, const Loaded& after);

// Resets the settings in `next` that only a restart can change (fields.h) to their values in `running`.
void keep_fixed(Settings running, Settings& next);

}  // namespace weir::config
