// The edge proxy on one loop: its handler, its calls to backends and what they share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

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
  // Relative paths start at `folder`.
  ProxyServices(std::string folder, std::function<void(LogLevel, std::string_view)> log);
  ~ProxyServices();

  // Fails if something cannot be used: a certificate that cannot be read, an access log that cannot be written.
  Result<void> check(const config::Loaded& loaded);
  // REQUIRES: check() found nothing.
  Result<void> start(const config::Loaded& loaded) { return open_log(loaded.settings.log); }
  // Applies the settings that all loops share. What fails is logged, and what was there before stays.
  void apply(const config::Settings& settings);
  // The files of the access log were rotated.
  void reopen();

  // The sessions of one listener on one loop; its listeners share the connections to backends.
  Sessions sessions(Loop& loop, Pipeline& pipeline, const config::Proxy& settings);
  // Whether PROXY headers of this peer count on this loop. Call it after sessions().
  std::function<bool(std::string_view peer)> trusts(Loop& loop);

  proxy::Gateway gateway;

 private:
  config::Log beside(config::Log settings) const;
  Result<void> open_log(const config::Log& settings) { return gateway.access_log.configure(beside(settings)); }

  std::string folder_;
  BootClock clock_;
  NameCache names_;
  Resolver resolver_;
  std::map<const Loop*, std::weak_ptr<ProxyParts>> loops_;
};

// What the sessions of a proxy listener accept.
HttpLimits proxy_limits(const config::Proxy& settings);

}  // namespace weir::app
