// From the checked tree to Settings, and to the list of values in force with where each came from.
#pragma once

#include <vector>

#include "weir/config/document.h"
#include "weir/config/parse.h"
#include "weir/config/settings.h"

namespace weir::config {

// Values that were refused have their defaults. REQUIRES: the tree was checked and its secrets resolved.
Settings read_settings(const Document& document, NodeId root);

// Every value of the table in force, defaults included; entries of lists, `limits` and `names` as written. Overrides
// are left out: there may be a million.
std::vector<Setting> list_origins(const Document& document, NodeId root, const Settings& settings,
                                  const std::vector<NamedLimit>& limits);

// How long a connection may be idle where the listener does not say. Redis clients keep connections in pools and expect
// Redis's own default: an idle one stays open.
Duration default_idle_timeout(const std::vector<std::string>& speak);

// Where a server listens by default.
std::vector<Listener> default_listeners();

// Whether the file says where to listen; `listen:` with nothing behind it does not.
bool has_listeners(const Document& document, NodeId root);

// Values that are valid one by one but not together, and values that no server could start with (settings_check.cc).
void check_settings(const Document& document, NodeId root, const Settings& settings, Complaints& complaints);

}  // namespace weir::config
