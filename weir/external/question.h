// What Weir asks a limits service: the key and, for a request, its method, path and the headers that the filter allows.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/core/query.h"
#include "weir/policy/limits_service.h"

namespace weir::external {

// Owns its text: the request may be gone when the service is asked.
struct ServiceQuestion {
  std::string key;
  std::string method;                                        // this and the following are empty without a request
  std::string path;                                          // as the client sent it, without the query
  std::vector<std::pair<std::string, std::string>> headers;  // one value per name
};

// `attributes` are those of RequestFacts ({"header:x-plan", "pro"}, {"method", …}, {"path", …}, identify/request.h);
// empty: no request. With an allow_list, sends exactly those headers, spelled as in the list; otherwise all except the
// deny_list and those that carry secrets, spelled like "X-Tenant-Id". Joins repeated headers with ", ".
ServiceQuestion make_question(const LimitsService& service, std::string_view key,
                              std::span<const Attribute> attributes);

// Appends {"key","headers","method","path"}.
void write_json(const ServiceQuestion& question, std::string& out);
// Appends a weir.limits.v1.GetLimitsRequest.
void write_protobuf(const ServiceQuestion& question, std::string& out);

}  // namespace weir::external
