// What a policy needs from a log, and what the log lacks. Nothing is guessed: a limit is not judged if the log lacks
// its key, nor is a request if its route depends on something that the log does not contain.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weir/policy/policy.h"

namespace weir::simulate {

// What the sampled lines of a log contain, known before the replay.
struct Sight {
  std::set<std::string, std::less<>> fields;   // present in some line (LogReader::fields)
  bool has_queries = false;                    // some path has a query
  bool is_own = false;                         // written by Weir: lines show what was counted
  std::set<std::string, std::less<>> counted;  // limits named in some line
};

// Returns the fields that this policy uses to decide.
std::set<std::string, std::less<>> wanted_fields(const Policy& policy);

// Something in the policy that the log cannot decide.
struct Lack {
  enum class What : unsigned char {
    limit,        // the limit's key or tier: it is not judged
    counted,      // the same, but the id is known where a line written by Weir names the limit
    route,        // what a route matches on: requests that may take it are not judged
    cost,         // the header with the cost of requests on a route: they are not judged
    access_list,  // API keys of access entries: those entries match no client
  };
  What what;
  std::string name;                  // of the limit or route; "access" for the lists
  std::vector<std::string> sources;  // "header:x-tenant-id"
};

std::vector<Lack> find_lacks(const Policy& policy, const Sight& sight);

// Returns e.g. "cannot judge limit per-tenant: the log has no header:x-tenant-id".
std::string sentence(const Lack& lack);

}  // namespace weir::simulate
