// Builds Settings from the checked tree, and lists the values in force with their origins.
#pragma once

#include <vector>

#include "weir/config/document.h"
#include "weir/config/parse.h"
#include "weir/config/settings.h"

namespace weir::config {

// Refused values get their defaults. REQUIRES: the tree was checked and its secrets resolved.
Settings read_settings(const Document& document, NodeId root);

// Returns every value in force, defaults included; items of lists and entries of `limits` and `names` as written. Omits
// overrides: there may be a million.
std::vector<Setting> list_origins(const Document& document, NodeId root, const Settings& settings,
                                  const std::vector<NamedLimit>& limits);

// Returns the idle timeout of a listener that sets none. Redis clients pool connections and expect Redis's default:
// idle connections stay open.
Duration default_idle_timeout(const std::vector<std::string>& speak);

// Returns the listeners of a configuration that has none.
std::vector<Listener> default_listeners();

// Returns true if the file has listeners. An empty `listen:` has none.
bool has_listeners(const Document& document, NodeId root);

// Complains about values that are valid alone but not together, and about values that prevent a server from starting
// (settings_check.cc).
void check_settings(const Document& document, NodeId root, const Settings& settings, Complaints& complaints);

}  // namespace weir::config
