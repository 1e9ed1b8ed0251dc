#include "weir/server/server.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/server/proxy_intake.h"

namespace weir {
namespace {

// How often deadlines are checked, so how late a timeout can be noticed.
constexpr Duration kDeadlineEvery = std::chrono::seconds{1};
// More connections than this are checked in slices, kSlices per second.
constexpr std::size_t kChecksAtOnce = 512;
constexpr int kSlices = 20;
// Pause of a listener when no descriptors are left.
constexpr Duration kAcceptPause = std::chrono::milliseconds{100};
// Connections accepted from one listener in one turn.
constexpr int kAcceptMax = 64;
// A connection must be silent this long before it is closed for a new one: the first request of a new connection may be
// on its way.
constexpr Duration kSilenceMin = std::chrono::milliseconds{100};
// Connections checked to find an idle one, and how often a full endpoint is logged.
constexpr int kIdleChecksMax = 64;
constexpr Duration kFullLogEvery = std::chrono::minutes{1};

}  // namespace

// One loop and its thread.
class Server::Worker {
 public:
  Worker(Server& server, std::unique_ptr<Loop> loop, std::unique_ptr<Store> store,
         const Published<config::Loaded>& configuration, const Published<Known>& known)
      : server_(server),
        loop_(std::move(loop)),
        store_(std::move(store)),
        metrics_(server.options_.events),
        services_(server.options_.services ? server.options_.services(*loop_, metrics_.services) : nullptr),
        pipeline_(configuration, known, *store_, metrics_, server.clock_, server.options_.watch,
                  server.options_.requests, services_.get()) {
    shared_.ended = [this](Connection& connection) { remove(connection); };
    loop_->on_end_of_turn([this] { end_turn(); });
  }

  // `file` is the file of a UNIX socket that this process has bound, shared by all loops, or null.
  Result<void> listen(Socket socket, std::shared_ptr<SocketFile> file, const Endpoint& endpoint, bool shared) {
    groups_.push_back(std::make_unique<ConnectionGroup>());
    ConnectionGroup& group = *groups_.back();
    group.sessions = endpoint.sessions(*loop_, pipeline_);
    group.protocol = endpoint.protocol;
    if (endpoint.times) {
      pipeline_.on_configuration(
          [&group, times = endpoint.times](const config::Loaded& now) { group.times = times(now); });
    }
    group.address = endpoint.address.print();
    group.transport.open_timeout = bounds::tls_handshake_time_max;
    // A session consumes whole commands; only RESP's are large.
    if (group.protocol == Protocol::resp) group.transport.unread_bytes_max += bounds::resp_command_bytes_max;
    listeners_.push_back(std::make_unique<Listener>(*this, std::move(socket), *groups_.back(), endpoint));
    Listener& listener = *listeners_.back();
    if (endpoint.proxy_header) {
      listener.intake = std::make_unique<ProxyIntake>(
          *loop_, ProxyIntake::Events{endpoint.proxy_header(*loop_),
                                      [this, &listener](Accepted accepted) { open(listener, std::move(accepted)); },
                                      [this] { metrics_.proxy.refused_headers.add(); }});
    }
    listener.file = std::move(file);
    listener.events = shared ? EPOLLIN | EPOLLEXCLUSIVE : EPOLLIN;
    return loop_->watch(listener.socket.fd(), listener.events, listener);
  }

  void run() {
    check_deadlines();
    loop_->run();
    connections_.clear();
  }

  // Thread-safe. Admin connections are served until finish().
  void drain(Duration timeout) {
    loop_->post([this, timeout] {
      draining_ = true;
      // A successor cannot bind the path of a UNIX socket while this process listens on it.
      close_listeners([](const Listener& one) { return one.group.protocol != Protocol::admin || one.file != nullptr; });
      for (const auto& connection : connections_) {
        if (connection->group().protocol != Protocol::admin) connection->drain();
      }
      // In the next turn what was read is answered.
      loop_->at(loop_->now().time, [this] {
        if (!std::exchange(drain_counted_, true)) ++server_.draining_loops_;
      });
      loop_->at(loop_->now().time + timeout, [this] { loop_->stop(); });
    });
  }
  // Called when every loop has drained. Thread-safe.
  void finish() {
    loop_->post([this] {
      finishing_ = true;
      close_listeners([](const Listener&) { return true; });
      for (const auto& connection : connections_) connection->drain();
    });
  }
  const LoopMetrics& metrics() const noexcept { return metrics_; }

 private:
  struct Listener final : Loop::Handler {
    Listener(Worker& owner, Socket listening, ConnectionGroup& of, const Endpoint& endpoint)
        : worker(owner), socket(std::move(listening)), group(of), tls(endpoint.tls.get()) {}
    void ready(std::uint32_t) override { worker.accept(*this); }

    Worker& worker;
    Socket socket;
    std::shared_ptr<SocketFile>
        file;  // declared after the socket, so that the last loop removes the file while its socket is open
    ConnectionGroup& group;
    TlsServer* tls;
    std::unique_ptr<ProxyIntake> intake;  // null: connections begin with their own bytes
    std::uint32_t events = EPOLLIN;
    bool pause_logged = false;
    bool resume_failure_logged = false;
  };

  void accept(Listener& listener) {
    for (int i = 0; i < kAcceptMax; ++i) {
      auto accepted = accept_from(listener.socket);
      if (!accepted) {
        if (make_room(largest_group())) continue;
        pause_accepting(listener, accepted.error());
        return;
      }
      if (!accepted->socket) return;
      listener.pause_logged = false;
      if (listener.intake != nullptr) {
        listener.intake->add(std::move(*accepted));
      } else {
        open(listener, std::move(*accepted));
      }
    }
  }

  void open(Listener& listener, Accepted accepted) {
    ConnectionGroup& group = listener.group;
    if (!has_room(group)) return;  // closes the new connection
    auto channel = listener.tls != nullptr ? listener.tls->accept() : nullptr;
    connections_.push_back(std::make_unique<Connection>(shared_, group, std::move(accepted), std::move(channel)));
    Connection& connection = *connections_.back();
    connection.index = connections_.size() - 1;
    connection.move_before(group.by_activity);
    ++group.size;
    server_.connections_.fetch_add(1, std::memory_order_relaxed);
  }

  // Returns whether there is room for one more connection, closing an idle one if necessary.
  bool has_room(ConnectionGroup& group) {
    if (group.size >= server_.options_.endpoint_connections_max) return make_room(group);
    if (server_.connections_.load(std::memory_order_relaxed) < server_.options_.connections_max) return true;
    return make_room(largest_group());
  }

  ConnectionGroup& largest_group() {
    const auto size = [](const auto& group) { return group->size; };
    return **std::ranges::max_element(groups_, {}, size);
  }

  // Closes the longest idle connection. Returns false if none has been idle long enough.
  bool make_room(ConnectionGroup& group) {
    const Time now = loop_->now().time;
    if (now - full_logged_at_ >= kFullLogEvery) {
      full_logged_at_ = now;
      server_.options_.log("connection limit reached on " + group.address +
                           ", closing the longest idle connections: open_on_loop=" + std::to_string(group.size));
    }
    ActivityLink* link = group.by_activity.next;
    for (int checks = 0; checks < kIdleChecksMax && link != &group.by_activity; ++checks, link = link->next) {
      Connection& connection = static_cast<Connection&>(*link);
      if (now - connection.last_active() < kSilenceMin) return false;
      if (!connection.idle()) continue;
      connection.close();
      return true;
    }
    return false;
  }

  // A connection is over. Destroyed later: it may be in one of its own calls.
  void remove(Connection& connection) {
    connection.unlink();
    --connection.group().size;
    std::unique_ptr<Connection> gone = std::move(connections_[connection.index]);
    // The last one takes its place. Deadlines are checked from the end, so this skips none.
    if (connection.index + 1 < connections_.size()) {
      connections_[connection.index] = std::move(connections_.back());
      connections_[connection.index]->index = connection.index;
    }
    connections_.pop_back();
    loop_->retire(std::move(gone));
    server_.connections_.fetch_sub(1, std::memory_order_relaxed);
  }

  template <class Closes>
  void close_listeners(Closes closes) {
    std::erase_if(listeners_, [&](const std::unique_ptr<Listener>& listener) {
      if (!closes(*listener)) return false;
      accept(*listener);  // connections already in the backlog are served too
      loop_->forget(listener->socket.fd(), *listener);
      return true;
    });
  }

  // Out of descriptors: existing connections continue, new ones wait in the kernel's queue.
  void pause_accepting(Listener& listener, const Error& error) {
    if (!listener.pause_logged)
      server_.options_.log("paused accepting connections on " + listener.group.address + ": " + error.detail);
    listener.pause_logged = true;
    loop_->forget(listener.socket.fd(), listener);
    loop_->at(loop_->now().time + kAcceptPause, [this, &listener] {
      const bool open = std::ranges::any_of(listeners_, [&](const auto& other) { return other.get() == &listener; });
      if (!open) return;
      const auto watching = loop_->watch(listener.socket.fd(), listener.events, listener);
      if (watching) {
        listener.resume_failure_logged = false;
        return;
      }
      if (!listener.resume_failure_logged)
        server_.options_.log("cannot resume accepting connections on " + listener.group.address + ": " +
                             watching.error().detail);
      listener.resume_failure_logged = true;
      pause_accepting(listener, watching.error());
    });
  }

  void end_turn() {
    if (pipeline_.has_work()) pipeline_.flush(loop_->now());
    wake_for(pipeline_.wake_at());
    if (draining_ && !drained_ && is_drained()) {
      drained_ = true;
      server_.loop_drained();
    }
    if (finishing_ && connections_.empty()) loop_->stop();
  }

  bool is_drained() const {
    return std::ranges::all_of(
        groups_, [](const auto& group) { return group->protocol == Protocol::admin || group->size == 0; });
  }

  // Makes sure that a turn runs at that time: its end flushes the pipeline.
  void wake_for(Time when) {
    if (when >= wake_time_) return;
    loop_->cancel(wake_timer_);
    wake_time_ = when;
    wake_timer_ = loop_->at(when, [this] {
      wake_timer_ = 0;
      wake_time_ = Time::max();
    });
  }

  // From the last connection to the first; new ones are added behind.
  void check_deadlines() {
    pipeline_.refresh();  // idle connections learn of a new timeout too
    const Time now = loop_->now().time;
    const std::size_t count = connections_.size();
    const bool few = count <= kChecksAtOnce;
    for (std::size_t left = few ? count : std::max(kChecksAtOnce, count / kSlices + 1); left > 0; --left) {
      if (next_check_ == 0 || next_check_ > count) next_check_ = count;
      connections_[--next_check_]->check_deadline(now);
    }
    loop_->at(now + (few ? kDeadlineEvery : kDeadlineEvery / kSlices), [this] { check_deadlines(); });
  }

  Server& server_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Store> store_;
  LoopMetrics metrics_;
  std::unique_ptr<external::LoopServices> services_;
  Pipeline pipeline_;
  ConnectionShared shared_{*loop_, pipeline_, metrics_, {}, {}};
  std::vector<std::unique_ptr<ConnectionGroup>> groups_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::size_t next_check_ = 0;  // deadlines are checked of those before it
  Time full_logged_at_ = loop_->now().time - kFullLogEvery;
  Loop::TimerId wake_timer_ = 0;
  Time wake_time_ = Time::max();
  bool draining_ = false;
  bool drain_counted_ = false;
  bool drained_ = false;    // reported to the server
  bool finishing_ = false;  // admin connections drain too
};

Server::Server(Options options, std::vector<Endpoint> endpoints, const Clock& clock)
    : options_(std::move(options)), endpoints_(std::move(endpoints)), clock_(clock) {
  if (!options_.log) options_.log = [](std::string_view) {};
}

Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::make(Options options, std::vector<Endpoint> endpoints,
                                             const Published<config::Loaded>& configuration,
                                             const Published<Known>& known, const Clock& clock) {
  std::unique_ptr<Server> server(new Server(std::move(options), std::move(endpoints), clock));
  if (auto listening = server->listen(configuration, known); !listening) return listening.error();
  return server;
}

Result<void> Server::listen(const Published<config::Loaded>& configuration, const Published<Known>& known) {
  for (unsigned i = 0; i < options_.threads; ++i) {
    auto loop = Loop::make(clock_);
    if (!loop) return loop.error();
    auto store = options_.store(**loop);
    workers_.push_back(std::make_unique<Worker>(*this, std::move(*loop), std::move(store), configuration, known));
  }
  for (const Endpoint& endpoint : endpoints_) {
    Address address = endpoint.address;
    const bool shares = options_.takes_over && endpoint.protocol == Protocol::admin;
    if (endpoint.inherited_fd < 0 && !shares) {
      if (auto free = check_free(address); !free) return free.error();
    }
    Socket first;
    std::shared_ptr<SocketFile> file;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      // A UNIX socket or an inherited socket is shared by all loops; a TCP port has one socket per loop.
      const bool shared = address.is_unix() || endpoint.inherited_fd >= 0;
      Socket socket;
      if (shared && i > 0) {
        socket = Socket(fcntl(first.fd(), F_DUPFD_CLOEXEC, 0));
      } else if (endpoint.inherited_fd >= 0) {
        socket = Socket(endpoint.inherited_fd);
        // systemd passes blocking sockets; an accept() without a pending connection would block the loop.
        const int flags = fcntl(socket.fd(), F_GETFL);
        if (flags < 0 || fcntl(socket.fd(), F_SETFL, flags | O_NONBLOCK) != 0 ||
            fcntl(socket.fd(), F_SETFD, FD_CLOEXEC) != 0) {
          return Error{Fault::invalid, "LISTEN_FDS names a descriptor that is not open"};
        }
      } else {
        auto listening = listen_on(address);
        if (!listening) return listening.error();
        socket = std::move(*listening);
        if (address.is_unix()) file = std::make_shared<SocketFile>(address.path);
      }
      if (i == 0) {
        const auto bound = bound_address(socket);
        if (!bound) return bound.error();
        address = address.is_unix() ? address : *bound;
        addresses_.push_back(address);
        first = Socket(fcntl(socket.fd(), F_DUPFD_CLOEXEC, 0));
      }
      auto watching = workers_[i]->listen(std::move(socket), file, endpoint, shared);
      if (!watching) return watching.error();
    }
  }
  return {};
}

std::vector<const LoopMetrics*> Server::metrics() const {
  std::vector<const LoopMetrics*> all;
  for (const auto& worker : workers_) all.push_back(&worker->metrics());
  return all;
}

void Server::run() {
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < workers_.size(); ++i) threads.emplace_back([this, i] { workers_[i]->run(); });
  workers_[0]->run();
  for (std::thread& thread : threads) thread.join();
}

void Server::loop_drained() {
  if (drained_.fetch_add(1) + 1 != workers_.size()) return;
  for (const auto& worker : workers_) worker->finish();
}

void Server::stop(Duration drain_timeout) noexcept {
  for (const auto& worker : workers_) worker->drain(drain_timeout);
}

void Server::reload_changed_certificates(Time now) {
  for (const Endpoint& endpoint : endpoints_) {
    if (endpoint.tls != nullptr) endpoint.tls->reload_if_changed(now);
  }
}

void Server::reload_certificates() {
  for (const Endpoint& endpoint : endpoints_) {
    if (endpoint.tls == nullptr) continue;
    if (const auto read = endpoint.tls->reload(); !read)
      options_.log("TLS certificate not reloaded, keeping the previous one: " + read.error().detail);
  }
}

}  // namespace weir
