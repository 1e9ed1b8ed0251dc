// Makes calls to limits services. One per loop.
#pragma once

#include <functional>
#include <memory>

#include "weir/base/result.h"
#include "weir/external/freshness.h"
#include "weir/external/question.h"
#include "weir/external/reply.h"
#include "weir/policy/limits_service.h"

namespace weir::external {

struct CallOutcome {
  Result<ServiceReply> reply;  // an Error's word is the reason, as in reply.h; also timeout, unavailable, bad_status
  Freshness freshness;         // of a reply
};

class Caller {
 public:
  virtual ~Caller() = default;

  // Calls `done` exactly once on this loop's thread, in a later turn, within the service's timeout. If the caller is
  // destroyed first, does not call it.
  using Done = std::function<void(CallOutcome outcome)>;
  virtual void call(std::shared_ptr<const LimitsService> service, const ServiceQuestion& question, Done done) = 0;
};

}  // namespace weir::external
