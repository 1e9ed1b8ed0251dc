// The objects that the admin API reads and changes. One per loop; filled where the server is built.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/admin/background_tasks.h"
#include "weir/admin/live.h"
#include "weir/base/clock.h"
#include "weir/external/services.h"
#include "weir/known/known_keeper.h"
#include "weir/observe/audit.h"
#include "weir/observe/events.h"
#include "weir/observe/metrics.h"
#include "weir/protocol/http/health.h"
#include "weir/server/reload.h"
#include "weir/store/bucket_scan.h"
#include "weir/wire/json.h"

namespace weir::admin {

// Must outlive the handler.
struct AdminShared {
  Reloader& reloader;       // the policy and all settings in force, including tokens
  KnownKeeper& keeper;      // adjustments and access lists
  BucketScan& bucket_scan;  // of this loop
  Events& events;
  LiveNumbers& live;
  BackgroundTasks& background_tasks;
  const Health& health;
  const Clock& clock;
  std::function<std::vector<const LoopMetrics*>()> loops;
  std::function<Gauges()> gauges;
  std::function<void(const AuditEntry&)> log;  // written at every log level
  std::string server_name = {};                // for people who watch several servers
  external::Services* services = nullptr;      // of limits that have one; null: none is asked
  bool loopback = true;                        // the listener is reachable from this machine only

  JsonReader json{};  // scratch: nothing in it outlives a call
};

}  // namespace weir::admin
