// What the admin API can see and do: the program around it, as references. One per loop, shared by its sessions; filled
// where the server is built.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "weir/admin/background_tasks.h"
#include "weir/base/clock.h"
#include "weir/known/known_keeper.h"
#include "weir/observe/audit.h"
#include "weir/observe/events.h"
#include "weir/observe/metrics.h"
#include "weir/protocol/http/http_session.h"
#include "weir/server/reload.h"
#include "weir/store/bucket_scan.h"
#include "weir/wire/http1.h"
#include "weir/wire/json.h"

namespace weir::admin {

// Outlives the sessions.
struct AdminShared {
  Reloader& reloader;       // the policy and every setting in force, tokens among them
  KnownKeeper& keeper;      // adjustments and access lists
  BucketScan& bucket_scan;  // this loop's
  Events& events;
  BackgroundTasks& background_tasks;
  const Health& health;
  const Clock& clock;
  std::function<std::vector<const LoopMetrics*>()> loops;
  std::function<Gauges()> gauges;
  std::function<void(const AuditEntry&)> log;  // written at every level
  bool loopback = true;                        // the listener can be reached from this machine only

  // The sessions' workbench: nothing on it survives a call.
  RequestHead head{};
  JsonReader json{};
};

}  // namespace weir::admin
