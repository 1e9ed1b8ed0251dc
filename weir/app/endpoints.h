// Turns the `listen` list of the configuration into the server's endpoints: which sessions each address makes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/admin/admin_shared.h"
#include "weir/app/proxy_endpoint.h"
#include "weir/base/log.h"
#include "weir/base/result.h"
#include "weir/config/parse.h"
#include "weir/config/settings.h"
#include "weir/protocol/http/health.h"
#include "weir/server/server.h"

namespace weir::app {

// What sessions need from the process. Outlives the server.
struct ServerServices {
  const Health& health;
  // The folder of the configuration: relative paths in it start here.
  std::string folder;
  // One sentence for an operator. Called in any thread.
  std::function<void(LogLevel, std::string_view)> log;
  // What the admin API of one loop can see and do.
  std::function<std::shared_ptr<admin::AdminShared>(Loop& loop)> admin;
  std::atomic<std::uint64_t> next_client{1};  // CLIENT ID of RESP connections
  Log* requests = nullptr;                    // gets bad requests, at debug
  ProxyServices* proxy = nullptr;             // required for listeners that speak proxy
};

// In the order of the listeners. The Error names the address and what is wrong with it.
Result<std::vector<Endpoint>> make_endpoints(const config::Settings& settings, ServerServices& around);

}  // namespace weir::app
