// `jwt`: what makes tokens tell who asks, where a limit is keyed by a claim.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weir/config/document.h"
#include "weir/config/limits.h"
#include "weir/config/parse.h"
#include "weir/config/settings.h"
#include "weir/identify/jwt.h"

namespace weir::config {

// Null if no limit has a claim in its key. Reads the key file, from `directory` if its path is relative; one that
// cannot be used leaves the keys of Options::jwt_keys in force, with a warning, or is refused if there are none. Tells
// every claim its place.
std::shared_ptr<const JwtVerifier> read_jwt(const Options& options, const std::string& directory,
                                            const Document& document, NodeId root, const Settings& settings,
                                            Limits& limits, Complaints& complaints, Loaded& loaded);

// A garbage token has no claims: where every limit of a request is keyed by credentials and skips who has none, it is
// not limited at all.
void warn_of_bypass(const std::vector<NamedLimit>& limits, const std::vector<Route>& routes,
                    std::vector<std::string>& warnings);

}  // namespace weir::config
