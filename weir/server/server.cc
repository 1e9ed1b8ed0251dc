#include "weir/server/server.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "weir/base/bounds.h"

namespace weir {
namespace {

// How often deadlines are looked at: peers may take that much longer than they should.
constexpr Duration kDeadlineEvery = std::chrono::seconds{1};
// How long a listener rests when there are no descriptors left.
constexpr Duration kAcceptPause = std::chrono::milliseconds{100};
// Connections accepted in one turn from one listener.
constexpr int kAcceptMax = 64;

}  // namespace

// One loop with its thread.
class Server::Worker {
 public:
  Worker(Server& server, std::unique_ptr<Loop> loop, std::unique_ptr<Store> store, const Published<Policy>& policy,
         const Published<Known>& known)
      : server_(server),
        loop_(std::move(loop)),
        store_(std::move(store)),
        metrics_(server.options_.events),
        pipeline_(policy, known, *store_, metrics_, server.clock_, server.options_.watch) {
    loop_->on_end_of_turn([this] { end_turn(); });
  }

  // `file`: of a UNIX socket that this process has bound, shared by all loops; otherwise null.
  Result<void> listen(Socket socket, std::shared_ptr<SocketFile> file, const Endpoint& endpoint, bool shared) {
    sessions_.push_back(std::make_unique<Sessions>(endpoint.sessions(*loop_)));
    listeners_.push_back(std::make_unique<Listener>(*this, std::move(socket), *sessions_.back(), endpoint));
    Listener& listener = *listeners_.back();
    listener.file = std::move(file);
    listener.events = shared ? EPOLLIN | EPOLLEXCLUSIVE : EPOLLIN;
    return loop_->watch(listener.socket.fd(), listener.events, listener);
  }

  void run() {
    check_deadlines();
    loop_->run();
    connections_.clear();
  }

  // Any thread.
  void drain(Duration timeout) {
    loop_->post([this, timeout] {
      for (const auto& listener : listeners_) {
        accept(*listener);  // those who are connected already are answered too
        loop_->forget(listener->socket.fd(), *listener);
      }
      draining_ = true;
      listeners_.clear();
      for (const auto& [id, connection] : connections_) connection->drain();
      loop_->at(loop_->now().time + timeout, [this] { loop_->stop(); });
    });
  }
  const LoopMetrics& metrics() const noexcept { return metrics_; }

 private:
  struct Listener final : Loop::Handler {
    Listener(Worker& owner, Socket listening, const Sessions& made, const Endpoint& endpoint)
        : worker(owner), socket(std::move(listening)), sessions(made), speak(endpoint.speak), tls(endpoint.tls.get()) {}
    void ready(std::uint32_t) override { worker.accept(*this); }

    Worker& worker;
    Socket socket;
    std::shared_ptr<SocketFile> file;  // after the socket: the last loop removes it while the socket is open
    const Sessions& sessions;
    Speak speak;
    TlsServer* tls;
    std::uint32_t events = EPOLLIN;
    bool complained = false;
    bool unwatched = false;  // and it was said
  };

  void accept(Listener& listener) {
    for (int i = 0; i < kAcceptMax; ++i) {
      auto accepted = accept_from(listener.socket);
      if (!accepted) {
        rest(listener, accepted.error());
        return;
      }
      if (!accepted->socket) return;
      listener.complained = false;
      if (connections_.size() >= bounds::connections_max) continue;  // closed at once: the others go on
      const std::uint64_t id = next_id_++;
      auto channel = listener.tls != nullptr ? listener.tls->accept(loop_->now().time) : nullptr;
      connections_.emplace(id, std::make_unique<Connection>(id, turn_, std::move(accepted->socket), std::move(channel),
                                                            listener.sessions(accepted->peer), listener.speak));
    }
  }

  // Out of descriptors: those who are connected go on, newcomers wait in the kernel's queue.
  void rest(Listener& listener, const Error& error) {
    if (!listener.complained) server_.options_.log(error.detail + "; new connections wait");
    listener.complained = true;
    loop_->forget(listener.socket.fd(), listener);
    loop_->at(loop_->now().time + kAcceptPause, [this, &listener] {
      if (draining_) return;
      const auto watching = loop_->watch(listener.socket.fd(), listener.events, listener);
      if (watching) {
        listener.unwatched = false;
        return;
      }
      if (!listener.unwatched)
        server_.options_.log("a listener rests longer than it should: " + watching.error().detail);
      listener.unwatched = true;
      rest(listener, watching.error());
    });
  }

  void end_turn() {
    pipeline_.flush(loop_->now());
    // Settling may touch a connection again: it has its next chance in this same pass, a bounded number of times.
    for (int pass = 0; pass < 4 && !turn_.dirty.empty(); ++pass) {
      settling_.clear();
      settling_.swap(turn_.dirty);
      for (const std::uint64_t id : settling_) {
        const auto found = connections_.find(id);
        if (found != connections_.end() && !found->second->settle()) connections_.erase(found);
      }
      pipeline_.flush(loop_->reading());
    }
    if (!turn_.dirty.empty()) loop_->post([] {});
    if (draining_ && !std::exchange(drain_counted_, true)) ++server_.draining_loops_;
    if (draining_ && connections_.empty()) loop_->stop();
  }

  void check_deadlines() {
    const Time now = loop_->now().time;
    for (const auto& [id, connection] : connections_) connection->check_deadline(now);
    loop_->at(now + kDeadlineEvery, [this] { check_deadlines(); });
  }

  Server& server_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Store> store_;
  LoopMetrics metrics_;
  Pipeline pipeline_;
  Turn turn_{*loop_, pipeline_, metrics_, {}, {}, {}, {}};
  std::vector<std::unique_ptr<Sessions>> sessions_;  // outlive the connections; listeners go when draining begins
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::uint64_t next_id_ = 1;
  std::vector<std::uint64_t> settling_;  // of end_turn(), kept for its memory
  bool draining_ = false;
  bool drain_counted_ = false;
};

Server::Server(Options options, std::vector<Endpoint> endpoints, const Clock& clock)
    : options_(std::move(options)), endpoints_(std::move(endpoints)), clock_(clock) {
  if (!options_.log) options_.log = [](std::string_view) {};
}

Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::make(Options options, std::vector<Endpoint> endpoints,
                                             const Published<Policy>& policy, const Published<Known>& known,
                                             const Clock& clock) {
  std::unique_ptr<Server> server(new Server(std::move(options), std::move(endpoints), clock));
  if (auto listening = server->listen(policy, known); !listening) return listening.error();
  return server;
}

Result<void> Server::listen(const Published<Policy>& policy, const Published<Known>& known) {
  for (unsigned i = 0; i < options_.threads; ++i) {
    auto loop = Loop::make(clock_);
    if (!loop) return loop.error();
    auto store = options_.store(**loop);
    workers_.push_back(std::make_unique<Worker>(*this, std::move(*loop), std::move(store), policy, known));
  }
  for (const Endpoint& endpoint : endpoints_) {
    Address address = endpoint.address;
    if (endpoint.inherited_fd < 0) {
      if (auto free = check_free(address); !free) return free.error();
    }
    Socket first;
    std::shared_ptr<SocketFile> file;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      // One UNIX socket, or one that we were given, is watched by every loop; a TCP port has a socket for each.
      const bool shared = address.is_unix() || endpoint.inherited_fd >= 0;
      Socket socket;
      if (shared && i > 0) {
        socket = Socket(fcntl(first.fd(), F_DUPFD_CLOEXEC, 0));
      } else if (endpoint.inherited_fd >= 0) {
        socket = Socket(endpoint.inherited_fd);
        // systemd hands them over blocking, and one accept too many would stop the loop.
        const int flags = fcntl(socket.fd(), F_GETFL);
        if (flags < 0 || fcntl(socket.fd(), F_SETFL, flags | O_NONBLOCK) != 0 ||
            fcntl(socket.fd(), F_SETFD, FD_CLOEXEC) != 0) {
          return Error{Fault::invalid, "LISTEN_FDS promises a socket that is not there"};
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

void Server::stop(Duration drain_timeout) noexcept {
  for (const auto& worker : workers_) worker->drain(drain_timeout);
}

void Server::reload_certificates() {
  for (const Endpoint& endpoint : endpoints_) {
    if (endpoint.tls == nullptr) continue;
    if (const auto read = endpoint.tls->reload(); !read)
      options_.log(read.error().detail + "; the certificate in use stays in use");
  }
}

}  // namespace weir
