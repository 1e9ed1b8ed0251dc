// The edge proxy on one loop: its handler, its calls to backends and what they share.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "weir/base/clock.h"
#include "weir/base/log.h"
#include "weir/config/settings.h"
#include "weir/net/loop.h"
#include "weir/net/name_cache.h"
#include "weir/net/resolve.h"
#include "weir/protocol/session.h"
#include "weir/proxy/proxy_shared.h"
#include "weir/server/pipeline.h"

namespace weir::app {

struct ProxyParts;

// What all proxy listeners of the process share. Outlives the server.
class ProxyServices {
 public:
  ProxyServices(std::string folder, const Clock& clock, std::function<void(LogLevel, std::string_view)> log);
  ~ProxyServices();

  // Fails if a backend cannot be used: a certificate that cannot be read, an access log that cannot be written.
  Result<void> check(const config::Loaded& loaded);

  // The sessions of one listener on one loop; its listeners share the connections to backends.
  Sessions sessions(Loop& loop, Pipeline& pipeline, const config::Proxy& settings);

  proxy::Gateway gateway;

 private:
  NameCache names_;
  Resolver resolver_;
  std::map<const Loop*, std::weak_ptr<ProxyParts>> loops_;
};

// What the sessions of a proxy listener accept.
HttpLimits proxy_limits(const config::Proxy& settings);

}  // namespace weir::app
