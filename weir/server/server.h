// The decision server: one event loop per thread. Each loop has its own listening sockets, connections, pipeline and
// counters. Loops share only the table behind their stores, the policy and the run-time state (Known).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/clock.h"
#include "weir/base/published.h"
#include "weir/base/result.h"
#include "weir/external/services.h"
#include "weir/known/known.h"
#include "weir/net/loop.h"
#include "weir/net/socket.h"
#include "weir/net/tls.h"
#include "weir/observe/metrics.h"
#include "weir/policy/policy.h"
#include "weir/server/connection.h"
#include "weir/server/denial_watch.h"
#include "weir/server/pipeline.h"
#include "weir/store/store.h"

namespace weir {

// One address to listen on and its protocol.
struct Endpoint {
  Address address;
  Protocol protocol = Protocol::http;
  // Called once per loop, before the loop runs. The result is called on that loop's thread. Sessions learn of a new
  // configuration through Pipeline::on_configuration().
  std::function<Sessions(Loop& loop, Pipeline& pipeline)> sessions;
  // Null means no TLS.
  std::shared_ptr<TlsServer> tls;
  // A socket passed by systemd, or -1.
  int inherited_fd = -1;
  // Called on each loop for each configuration. Empty: no bounds.
  std::function<ConnectionTimes(const config::Loaded&)> times;
  // Called once per loop, after `sessions`. Set: every connection begins with a PROXY header, from peers that the
  // result trusts (server/proxy_intake.h).
  std::function<std::function<bool(std::string_view peer)>(Loop& loop)> proxy_header;
};

class Server {
 public:
  struct Options {
    unsigned threads = 1;
    // Creates the store of one loop before the loop runs. The store answers on that loop.
    std::function<std::unique_ptr<Store>(Loop&)> store;
    // Creates what one loop asks services with, before the loop runs. Empty: limits have their own numbers.
    std::function<std::unique_ptr<external::LoopServices>(Loop&, ServiceMetrics&)> services = {};
    // Counts denials to block clients that are denied often. May be null. Must outlive the server.
    DenialWatch* watch = nullptr;
    // Writes one log message.
    std::function<void(std::string_view)> log;
    // Logs denials at level debug. May be null. Must outlive the server.
    Log* requests = nullptr;
    // Records every decision. May be null. Must outlive the server.
    Events* events = nullptr;
    // Limits on the connections of one endpoint on one loop, and of the whole server. When a limit is reached, the
    // longest idle connection is closed for a new one: in the same endpoint, or in the endpoint with the most
    // connections. If none is idle, the new connection is refused. So a full endpoint does not lock out the others.
    std::size_t endpoint_connections_max = bounds::connections_max;
    std::size_t connections_max = SIZE_MAX;
    // True if this server replaces one that is draining and still serves its admin endpoints: shares the admin ports
    // with it.
    bool takes_over = false;
  };

  // Configuration, Known and clock must outlive the server. A published value applies to every request that is read
  // afterwards.
  static Result<std::unique_ptr<Server>> make(Options options, std::vector<Endpoint> endpoints,
                                              const Published<config::Loaded>& configuration,
                                              const Published<Known>& known, const Clock& clock);
  ~Server();

  // The addresses it listens on, with real ports instead of 0, in the order of the endpoints.
  const std::vector<Address>& addresses() const noexcept { return addresses_; }
  std::vector<const LoopMetrics*> metrics() const;

  // Serves until stop(), then drains: accepts no connections, answers requests that were read, closes idle connections.
  // Admin endpoints on TCP keep serving until all others are done, so that probes and metrics show the drain.
  void run();
  // True once every loop has stopped accepting connections and has answered what it had read. Thread-safe.
  bool is_draining() const noexcept { return draining_loops_.load() == workers_.size(); }
  // Starts the drain, which takes at most `drain_timeout`; a second call with a shorter one shortens it. Thread-safe,
  // but not async-signal-safe.
  void stop(Duration drain_timeout) noexcept;
  // Reloads certificates whose files have changed, for new connections. Call it often, on a thread that may block on
  // disk I/O.
  void reload_changed_certificates(Time now);
  // Reloads the certificates of all endpoints. Logs those that cannot be used and keeps the previous ones. Call it on a
  // thread that may block on disk I/O.
  void reload_certificates();

 private:
  class Worker;

  Server(Options options, std::vector<Endpoint> endpoints, const Clock& clock);
  void loop_drained();
  Result<void> listen(const Published<config::Loaded>& configuration, const Published<Known>& known);

  Options options_;
  std::vector<Endpoint> endpoints_;
  const Clock& clock_;
  std::vector<Address> addresses_;
  std::atomic<std::size_t> draining_loops_{0};
  std::vector<std::unique_ptr<Worker>> workers_;
  // Relaxed everywhere: a counter, through which nothing is published.
  std::atomic<std::size_t> connections_{0};
  std::atomic<std::size_t> drained_{0};  // loops
};

}  // namespace weir
