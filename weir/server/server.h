// The decision server: one event loop per thread, every loop with its own listening sockets, connections, pipeline and
// counters. Loops share the table behind their stores, the policy, what is known, and nothing else.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/clock.h"
#include "weir/base/published.h"
#include "weir/base/result.h"
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

// Makes the sessions of one loop's connections on one address; `peer` is the other side's. It owns what these sessions
// share, and outlives them.
using Sessions = std::function<std::unique_ptr<Session>(std::string_view peer)>;

// One address to listen on and what is spoken there.
struct Endpoint {
  Address address;
  Protocol protocol = Protocol::http;
  // Called once for every loop, before it runs. What it returns is called in that loop's thread. What the sessions
  // need of the configuration they are told by Pipeline::on_configuration().
  std::function<Sessions(Loop& loop, Pipeline& pipeline)> sessions;
  // Null where the endpoint speaks in the clear.
  std::shared_ptr<TlsServer> tls;
  // A socket that systemd opened for us; otherwise -1.
  int inherited_fd = -1;
  // A connection that is idle for longer is closed; zero: none is. See Connection::idle().
  Duration idle_timeout{};
};

class Server {
 public:
  struct Options {
    unsigned threads = 1;
    // Makes the store of one loop, which may answer on that loop; before the loop runs.
    std::function<std::unique_ptr<Store>(Loop&)> store;
    // Told of every denial, to block those who are denied often; null: nobody is. Must outlive the server.
    DenialWatch* watch = nullptr;
    // Told what an operator should know, one sentence each.
    std::function<void(std::string_view)> log;
    // Gets denials, at debug; must outlive the server. Null: nobody does.
    Log* requests = nullptr;
    // Told every decision; must outlive the server. Null: nobody is.
    Events* events = nullptr;
    // Connections of one endpoint on one loop, and of the whole server. When one of the two is reached, the connection
    // that is idle for the longest time makes room for a newcomer: in the same endpoint, or in the one with the most
    // connections. Where none is idle the newcomer is refused. So nobody can fill one endpoint and shut out another.
    std::size_t endpoint_connections_max = bounds::connections_max;
    std::size_t connections_max = SIZE_MAX;
    // The server before this one is draining and serves operators until it ends: its admin ports are shared with it.
    bool takes_over = false;
  };

  // The configuration in force, what is known, and the clock must outlive the server. What is published there is in
  // force for every request that is read afterwards.
  static Result<std::unique_ptr<Server>> make(Options options, std::vector<Endpoint> endpoints,
                                              const Published<config::Loaded>& configuration,
                                              const Published<Known>& known, const Clock& clock);
  ~Server();

  // Where it listens, with the ports that 0 became, in the order of the endpoints.
  const std::vector<Address>& addresses() const noexcept { return addresses_; }
  std::vector<const LoopMetrics*> metrics() const;

  // Serves until stop(), then drains: no new connections, questions already read are answered, idle connections close.
  // Admin endpoints on TCP serve until everybody else is done, so that probes and metrics tell of the drain.
  void run();
  // From any thread. True once every loop has stopped accepting connections and has answered what it had read.
  bool is_draining() const noexcept { return draining_loops_.load() == workers_.size(); }
  // From any thread, but not from a signal handler. Draining takes no longer than `drain_timeout`; a second call with a
  // shorter one shortens it.
  void stop(Duration drain_timeout) noexcept;
  // Often, in a thread that may wait for a disk: certificates whose files have changed are for new connections.
  void look_at_certificates(Time now);
  // From a thread that may wait for a disk: reads the certificates of all endpoints now. Those that cannot be used are
  // logged and change nothing.
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
  // Relaxed everywhere: a count, nothing is published through it.
  std::atomic<std::size_t> connections_{0};
  std::atomic<std::size_t> drained_{0};  // loops
};

}  // namespace weir
