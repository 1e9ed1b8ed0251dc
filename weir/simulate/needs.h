// What a policy needs of a log, and what a log lacks. A limit whose key the log lacks cannot be judged, and neither can
// a request whose route depends on something that the log does not say: nothing is guessed.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weir/policy/policy.h"

namespace weir::simulate {

// What the lines of a log say about requests, as far as they were read before the replay.
struct Sight {
  std::set<std::string, std::less<>> fields;   // that some line has (LogReader::fields)
  bool has_queries = false;                    // some path has a query
  bool is_own = false;                         // written by Weir: lines say what was counted
  std::set<std::string, std::less<>> counted;  // limits that some line names
};

// The fields that decide about a request under this policy.
std::set<std::string, std::less<>> wanted_fields(const Policy& policy);

// Something of the policy that a log cannot decide.
struct Lack {
  enum class What : unsigned char {
    limit,        // the limit's key or tier: it is not judged
    counted,      // the same, but where a line of Weir names the limit, its id is known
    route,        // what a route matches on: requests that may take it are not judged
    cost,         // the header that says what requests on a route cost: they are not judged
    access_list,  // API keys that a list is about: those entries match nobody
  };
  What what;
  std::string name;                  // of the limit or route; "access" of the lists
  std::vector<std::string> sources;  // "header:x-tenant-id"
};

std::vector<Lack> find_lacks(const Policy& policy, const Sight& sight);

// "cannot judge limit per-tenant: the log has no header:x-tenant-id".
std::string sentence(const Lack& lack);

}  // namespace weir::simulate
