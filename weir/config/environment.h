// Variables and flags, laid over the tree before it is checked: so a bad one is a problem like any other, and what is
// in force knows where it came from. A variable is WEIR_ and the path in upper case, '.' and '-' as '_'; a list of
// single values is separated by commas.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/config/document.h"
#include "weir/config/parse.h"

namespace weir::config {

// The variables of a configuration without a file.
namespace six {
inline constexpr std::string_view kEnabled = "WEIR_RATE_LIMIT_ENABLED";
inline constexpr std::string_view kPerSecond = "WEIR_RATE_LIMIT_REQUESTS_PER_SEC";
inline constexpr std::string_view kBurst = "WEIR_RATE_LIMIT_BURST";
inline constexpr std::string_view kByIp = "WEIR_RATE_LIMIT_BY_IP";
inline constexpr std::string_view kByApikey = "WEIR_RATE_LIMIT_BY_APIKEY";
inline constexpr std::string_view kCleanup = "WEIR_RATE_LIMIT_CLEANUP";
}  // namespace six

// "limits.per-ip.count" is WEIR_LIMITS_PER_IP_COUNT.
std::string variable_name(std::string_view path);

// Lays `limits`, `names` and `overrides` themselves, as paths of files.
void lay_paths(const Options& options, Document& document, NodeId root);

// Lays everything else. Entries of `limits` and `names`, and by flags those of lists, can be changed, not added. A
// variable that begins like one of our settings and is none is a problem; any other one with our prefix is a warning.
void lay_values(const Options& options, Document& document, NodeId root, Complaints& complaints,
                std::vector<std::string>& warnings);

// What the name of a flag's place begins with: "--set redis.mode".
inline constexpr std::string_view kFlag = "--set ";

// What stands for a place in a configuration from the environment alone where no variable said anything.
inline constexpr std::string_view kNoVariable = "environment";

// A whole configuration from the six variables WEIR_RATE_LIMIT_*, as if it had been written.
NodeId environment_alone(const Environment& environment, Document& document, Complaints& complaints);

}  // namespace weir::config
