// The JSON form in which servers share an answer: the service's reply, its limit, and when it was given.
//   {"service":"3f2a…","limit":"per-tenant","answered":1790000000000,"keep_stale":true,"average":100,"burst":50,…}
// `answered` is in milliseconds since 1970.
#pragma once

#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/external/answer_cache.h"

namespace weir::external {

std::string print_stored_answer(std::string_view limit, const KeptAnswer& answer, Now now);

// An answer that was just read, and how much longer it is kept.
struct StoredAnswer {
  std::string_view text;
  std::string_view limit;    // it must be of this limit
  std::string_view service;  //   and of this service
  Duration left{};           // until its copy expires
  bool stale = false;        // whether it is the stale copy
};
// Errors: it is damaged, or of another limit or service, or the store cannot hold its numbers (`window_max`, reply.h).
Result<KeptAnswer> parse_stored_answer(const StoredAnswer& stored, Duration window_max, Now now);

}  // namespace weir::external
