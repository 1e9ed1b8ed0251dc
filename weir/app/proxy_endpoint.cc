#include "weir/app/proxy_endpoint.h"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <utility>

#include "weir/app/random.h"
#include "weir/http/choose_session.h"
#include "weir/http/client_pool.h"
#include "weir/http/http_shared.h"
#include "weir/proxy/proxy_handler.h"

namespace weir::app {
namespace {

// Calls to one backend that wait for a connection, on one loop.
constexpr std::size_t kWaitingMax = 10'000;

// Where ids of requests begin. Unique, not secret.
std::uint64_t random_seed() {
  const Result<std::string> bytes = random_bytes(sizeof(std::uint64_t));
  std::uint64_t seed = 0;
  if (bytes) std::memcpy(&seed, bytes->data(), sizeof seed);
  return seed;
}

http::ClientPool::Options pool_options(const config::Proxy& settings) {
  const auto connections = static_cast<std::size_t>(settings.backend_connections);
  return {.connections_max = connections, .idle_max = connections, .waiting_max = kWaitingMax};
}

}  // namespace

// Declared in the order of use: requests end before the pool, and the pool before the sessions' memory.
struct ProxyParts {
  ProxyParts(Loop& loop, Pipeline& pipeline, Resolver& resolver, proxy::Gateway& gateway, const config::Proxy& settings)
      : http([&loop](std::function<void()> work) { loop.post(std::move(work)); }, [&loop] { return loop.reading(); }),
        pool(loop, resolver, pool_options(settings)),
        proxy(gateway, pool, pipeline.metrics().proxy, pipeline.metrics().services, random_seed()),
        handler(proxy),
        make_session(http::http_sessions(http, handler)) {}

  http::HttpShared http;
  http::ClientPool pool;
  proxy::ProxyLoop proxy;
  proxy::ProxyHandler handler;
  Sessions make_session;
};

ProxyServices::ProxyServices(std::string folder, std::function<void(LogLevel, std::string_view)> log)
    : gateway(folder),
      folder_(std::move(folder)),
      names_(clock_),
      resolver_([this](const Target& target) { return names_.find(target); }) {
  gateway.log = std::move(log);
}

ProxyServices::~ProxyServices() = default;

config::Log ProxyServices::beside(config::Log settings) const {
  if (!settings.access_file.empty()) {
    settings.access_file = (std::filesystem::path(folder_) / settings.access_file).string();
  }
  return settings;
}

void ProxyServices::apply(const config::Settings& settings) {
  if (const Result<void> opened = open_log(settings.log); !opened) gateway.log(LogLevel::error, opened.error().detail);
}

void ProxyServices::reopen() {
  if (const Result<void> opened = gateway.access_log.reopen(); !opened) {
    gateway.log(LogLevel::error, opened.error().detail);
  }
}

Result<void> ProxyServices::check(const config::Loaded& loaded) {
  const Forwarding& all = loaded.settings.forwarding;
  const auto try_all = [&](const Forwarding& own) -> Result<void> {
    const BackendTls tls = own.tls.value_or(all.tls.value_or(BackendTls{}));
    for (const std::string& url : own.backends.empty() ? all.backends : own.backends) {
      if (Result<proxy::Backend> backend = proxy::make_backend(url, tls, gateway.tls); !backend) return backend.error();
    }
    return {};
  };
  if (Result<void> tried = try_all(all); !tried) return tried;
  for (const Route& route : loaded.policy->routes()) {
    if (Result<void> tried = try_all(route.forwarding); !tried) return tried;
  }
  return proxy::AccessLog::check(beside(loaded.settings.log));
}

Sessions ProxyServices::sessions(Loop& loop, Pipeline& pipeline, const config::Proxy& settings) {
  std::weak_ptr<ProxyParts>& known = loops_[&loop];
  std::shared_ptr<ProxyParts> parts = known.lock();
  if (parts == nullptr) {
    parts = std::make_shared<ProxyParts>(loop, pipeline, resolver_, gateway, settings);
    known = parts;
    pipeline.on_configuration([weak = known](const config::Loaded& now) {
      const std::shared_ptr<ProxyParts> live = weak.lock();
      if (live == nullptr) return;
      live->http.limits = proxy_limits(now.settings.proxy);
      live->proxy.configure(now);
    });
  }
  return [parts](const NewConnection& connection) { return parts->make_session(connection); };
}

std::function<bool(std::string_view)> ProxyServices::trusts(Loop& loop) {
  return [weak = loops_[&loop]](std::string_view peer) {
    const std::shared_ptr<ProxyParts> parts = weak.lock();
    if (parts == nullptr) return false;
    const TrustedProxies& trusted = parts->proxy.destinations->policy().trusted();
    if (peer.empty()) return trusted.trusts_unix();
    const Result<IpAddress> address = IpAddress::parse(peer);
    return address && trusted.trusts(*address);
  };
}

HttpLimits proxy_limits(const config::Proxy& settings) {
  HttpLimits limits;
  limits.head_bytes_max = static_cast<std::size_t>(settings.header_max);
  limits.line_bytes_max = static_cast<std::size_t>(settings.request_line_max);
  limits.line_status = 414;
  limits.head_time_max = settings.header_timeout;
  limits.body_time_max = settings.body_timeout;
  limits.body_progress_bytes = 1;  // a slow client is served as long as something comes
  return limits;
}

}  // namespace weir::app
