// Builds the JWT verifier from the section `jwt`, for limits that are keyed by a claim.
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

// Returns null if no limit uses a claim. Reads the key file; a relative path is resolved against `directory`. If the
// file cannot be used, keeps Options::jwt_keys with a warning, or complains if there are none. Stores the index of each
// claim in the sources of `limits`.
std::shared_ptr<const JwtVerifier> read_jwt(const Options& options, const std::string& directory,
                                            const Document& document, NodeId root, const Settings& settings,
                                            Limits& limits, Complaints& complaints, Loaded& loaded);

// Warns if a request with an invalid token would not be limited at all, because every limit that applies is keyed by
// credentials and skips requests without them.
void warn_of_bypass(const std::vector<NamedLimit>& limits, const std::vector<Route>& routes,
                    std::vector<std::string>& warnings);

}  // namespace weir::config
