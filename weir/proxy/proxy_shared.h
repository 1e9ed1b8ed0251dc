// What the proxy's requests share: Gateway, one per process, and ProxyLoop, one per event loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weir/base/log.h"
#include "weir/base/result.h"
#include "weir/config/parse.h"
#include "weir/http/client_pool.h"
#include "weir/identify/request.h"
#include "weir/observe/proxy_metrics.h"
#include "weir/observe/service_metrics.h"
#include "weir/proxy/access_log.h"
#include "weir/proxy/destination.h"
#include "weir/proxy/upstream.h"

namespace weir::proxy {

// Thread-safe. Outlives the loops.
struct Gateway {
  explicit Gateway(std::string folder) : tls(std::move(folder)) {}

  Upstreams upstreams;
  TlsClients tls;
  AccessLog access_log;
  std::atomic<std::int64_t> active{0};  // requests in progress
  std::function<void(LogLevel, std::string_view)> log = [](LogLevel, std::string_view) {};
};

// Belongs to its loop.
class ProxyLoop {
 public:
  // All must outlive it. Call configure() before the first request.
  ProxyLoop(Gateway& process, http::ClientPool& clients, ProxyMetrics& counters, ServiceMetrics& service_counters,
            std::uint64_t seed)
      : gateway(process), pool(clients), metrics(counters), services(service_counters), random_(seed) {}

  void configure(const config::Loaded& loaded) {
    destinations = std::make_shared<const Destinations>(loaded, gateway.upstreams, gateway.tls, metrics, gateway.log);
  }

  // 32 hexadecimal digits.
  std::string make_request_id();

  Gateway& gateway;
  http::ClientPool& pool;
  ProxyMetrics& metrics;
  ServiceMetrics& services;
  std::shared_ptr<const Destinations> destinations;
  Request request;  // scratch

 private:
  std::uint64_t next_random() noexcept;
  std::uint64_t random_;
};

}  // namespace weir::proxy
