// Applies environment variables and flags to the tree before it is checked, so that bad ones are reported like any
// other problem and every value keeps its origin. A variable's name is WEIR_ and the path in upper case, with '_' for
// '.' and '-'. The items of a list are separated by commas.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/config/document.h"
#include "weir/config/parse.h"

namespace weir::config {

// The variables that configure a server without a file.
namespace alone {
inline constexpr std::string_view kEnabled = "WEIR_RATE_LIMIT_ENABLED";
inline constexpr std::string_view kPerSecond = "WEIR_RATE_LIMIT_REQUESTS_PER_SEC";
inline constexpr std::string_view kBurst = "WEIR_RATE_LIMIT_BURST";
inline constexpr std::string_view kByIp = "WEIR_RATE_LIMIT_BY_IP";
inline constexpr std::string_view kByApikey = "WEIR_RATE_LIMIT_BY_APIKEY";
inline constexpr std::string_view kCleanup = "WEIR_RATE_LIMIT_CLEANUP";
}  // namespace alone

// "limits.per-ip.count" is WEIR_LIMITS_PER_IP_COUNT.
std::string variable_name(std::string_view path);

// Applies the paths of `limits`, `names` and `overrides`.
void overlay_paths(const Options& options, Document& document, NodeId root);

// Applies everything else. Can change entries of `limits` and `names` but not add any; only flags can change items of
// lists. An unknown variable that starts like a setting is a problem; any other unknown WEIR_ variable gets a warning.
void overlay_values(const Options& options, Document& document, NodeId root, Complaints& complaints,
                    std::vector<std::string>& warnings);

// The prefix of a flag's name in positions: "--set redis.mode".
inline constexpr std::string_view kFlag = "--set ";

// The origin of values that no variable sets, in a configuration without a file.
inline constexpr std::string_view kNoVariable = "environment";

// Builds a whole configuration from the variables WEIR_RATE_LIMIT_*, for a server without a file.
NodeId environment_alone(const Environment& environment, Document& document, Complaints& complaints);

}  // namespace weir::config
