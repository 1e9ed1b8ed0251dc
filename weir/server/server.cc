#include "weir/server/server.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "weir/base/bounds.h"

namespace weir {
namespace {

// How often deadlines are looked at: peers may take that much longer than they should.
constexpr Duration kDeadlineEvery = std::chrono::seconds{1};
// More connections than this are looked at in slices: a second has this many.
constexpr std::size_t kLooksAtOnce = 512;
constexpr int kSlices = 20;
// How long a listener rests when there are no descriptors left.
constexpr Duration kAcceptPause = std::chrono::milliseconds{100};
// Connections accepted in one turn from one listener.
constexpr int kAcceptMax = 64;
// A connection makes room for another after this much silence: the request of one that has just come may be on its way.
constexpr Duration kSilenceMin = std::chrono::milliseconds{100};
// Connections looked at in search of an idle one, and how often the log says that there is no room.
constexpr int kIdleLooksMax = 64;
constexpr Duration kFullEvery = std::chrono::minutes{1};

}  // namespace

// One loop with its thread.
class Server::Worker {
 public:
  Worker(Server& server, std::unique_ptr<Loop> loop, std::unique_ptr<Store> store,
         const Published<config::Loaded>& configuration, const Published<Known>& known)
      : server_(server),
        loop_(std::move(loop)),
        store_(std::move(store)),
        metrics_(server.options_.events),
        pipeline_(configuration, known, *store_, metrics_, server.clock_, server.options_.watch,
                  server.options_.requests) {
    loop_->on_end_of_turn([this] { end_turn(); });
  }

  // `file`: of a UNIX socket that this process has bound, shared by all loops; otherwise null.
  Result<void> listen(Socket socket, std::shared_ptr<SocketFile> file, const Endpoint& endpoint, bool shared) {
    rooms_.push_back(std::make_unique<Room>(endpoint.sessions(*loop_, pipeline_), endpoint));
    listeners_.push_back(std::make_unique<Listener>(*this, std::move(socket), *rooms_.back(), endpoint));
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

  // Any thread. Operators and probes are served until finish().
  void drain(Duration timeout) {
    loop_->post([this, timeout] {
      draining_ = true;
      // Of a UNIX socket a successor could not take the path while this one listens.
      close_listeners([](const Listener& one) { return one.room.protocol != Protocol::admin || one.file != nullptr; });
      for (const auto& [id, guest] : connections_) {
        if (guest.room->protocol != Protocol::admin) guest.connection->drain();
      }
      loop_->at(loop_->now().time + timeout, [this] { loop_->stop(); });
    });
  }
  // Any thread: every loop has drained.
  void finish() {
    loop_->post([this] {
      finishing_ = true;
      close_listeners([](const Listener&) { return true; });
      for (const auto& [id, guest] : connections_) guest.connection->drain();
    });
  }
  const LoopMetrics& metrics() const noexcept { return metrics_; }

 private:
  // What the connections of one listener have in common. Outlives the listener, which goes when draining begins.
  struct Room {
    Room(Sessions made, const Endpoint& endpoint)
        : sessions(std::move(made)),
          protocol(endpoint.protocol),
          idle_timeout(endpoint.idle_timeout),
          address(endpoint.address.print()) {}

    Sessions sessions;
    Protocol protocol;
    Duration idle_timeout;
    std::string address;
    std::list<std::uint64_t> quietest_first{};  // ids of all connections, by when they last did something
  };
  struct Guest {
    std::unique_ptr<Connection> connection;
    Room* room = nullptr;
    std::list<std::uint64_t>::iterator place;
    std::list<Guest*>::iterator turn;  // in round_
  };
  using Guests = std::unordered_map<std::uint64_t, Guest>;

  struct Listener final : Loop::Handler {
    Listener(Worker& owner, Socket listening, Room& inside, const Endpoint& endpoint)
        : worker(owner), socket(std::move(listening)), room(inside), tls(endpoint.tls.get()) {}
    void ready(std::uint32_t) override { worker.accept(*this); }

    Worker& worker;
    Socket socket;
    std::shared_ptr<SocketFile> file;  // after the socket: the last loop removes it while the socket is open
    Room& room;
    TlsServer* tls;
    std::uint32_t events = EPOLLIN;
    bool complained = false;
    bool unwatched = false;  // and it was said
  };

  void accept(Listener& listener) {
    for (int i = 0; i < kAcceptMax; ++i) {
      auto accepted = accept_from(listener.socket);
      if (!accepted) {
        if (make_place(most_crowded())) continue;
        rest(listener, accepted.error());
        return;
      }
      if (!accepted->socket) return;
      listener.complained = false;
      Room& room = listener.room;
      if (!has_place(room)) continue;  // closed at once: the others go on
      const std::uint64_t id = next_id_++;
      auto channel = listener.tls != nullptr ? listener.tls->accept() : nullptr;
      pipeline_.refresh();  // a new session begins with what is in force now
      Guest& guest = connections_[id];
      guest.connection = std::make_unique<Connection>(id, turn_, std::move(accepted->socket), std::move(channel),
                                                      room.sessions(accepted->peer), room.protocol);
      guest.room = &room;
      guest.place = room.quietest_first.insert(room.quietest_first.end(), id);
      guest.turn = round_.insert(round_.end(), &guest);
      server_.connections_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  // Whether there is, or could be made, room for one more.
  bool has_place(Room& room) {
    if (room.quietest_first.size() >= server_.options_.endpoint_connections_max) return make_place(room);
    if (server_.connections_.load(std::memory_order_relaxed) < server_.options_.connections_max) return true;
    return make_place(most_crowded());
  }

  Room& most_crowded() {
    const auto size = [](const auto& room) { return room->quietest_first.size(); };
    return **std::ranges::max_element(rooms_, {}, size);
  }

  // Ends the connection that has been idle for the longest time. False: none has been for long enough.
  bool make_place(Room& room) {
    const Time now = loop_->now().time;
    if (now - full_said_ >= kFullEvery) {
      full_said_ = now;
      server_.options_.log("no room for more connections on " + room.address + ", where " +
                           std::to_string(room.quietest_first.size()) +
                           " are open on one event loop: the longest idle ones are closed");
    }
    int looks = 0;
    for (const std::uint64_t id : room.quietest_first) {
      const auto found = connections_.find(id);
      const Connection& connection = *found->second.connection;
      if (++looks > kIdleLooksMax || now - connection.last_active() < kSilenceMin) return false;
      if (!connection.idle()) continue;
      end(found);
      return true;
    }
    return false;
  }

  void end(Guests::iterator guest) {
    guest->second.room->quietest_first.erase(guest->second.place);
    if (next_look_ == guest->second.turn) ++next_look_;
    round_.erase(guest->second.turn);
    connections_.erase(guest);
    server_.connections_.fetch_sub(1, std::memory_order_relaxed);
  }

  template <class Closes>
  void close_listeners(Closes closes) {
    std::erase_if(listeners_, [&](const std::unique_ptr<Listener>& listener) {
      if (!closes(*listener)) return false;
      accept(*listener);  // those who are connected already are answered too
      loop_->forget(listener->socket.fd(), *listener);
      return true;
    });
  }

  // Out of descriptors: those who are connected go on, newcomers wait in the kernel's queue.
  void rest(Listener& listener, const Error& error) {
    if (!listener.complained) server_.options_.log(error.detail + "; new connections wait");
    listener.complained = true;
    loop_->forget(listener.socket.fd(), listener);
    loop_->at(loop_->now().time + kAcceptPause, [this, &listener] {
      const bool open = std::ranges::any_of(listeners_, [&](const auto& other) { return other.get() == &listener; });
      if (!open) return;
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
        if (found == connections_.end()) continue;
        if (!found->second.connection->settle()) {
          end(found);
          continue;
        }
        std::list<std::uint64_t>& order = found->second.room->quietest_first;
        order.splice(order.end(), order, found->second.place);
      }
      pipeline_.flush(loop_->reading());
    }
    if (!turn_.dirty.empty()) loop_->post([] {});
    wake_for(pipeline_.wake_at());
    if (draining_ && !std::exchange(drain_counted_, true)) ++server_.draining_loops_;
    if (draining_ && !drained_ && is_drained()) {
      drained_ = true;
      server_.loop_drained();
    }
    if (finishing_ && connections_.empty()) loop_->stop();
  }

  bool is_drained() const {
    return std::ranges::all_of(
        rooms_, [](const auto& room) { return room->protocol == Protocol::admin || room->quietest_first.empty(); });
  }

  // A turn at that time, whatever happens until then: its end flushes the pipeline.
  void wake_for(Time when) {
    if (when >= wakes_at_) return;
    loop_->cancel(waking_);
    wakes_at_ = when;
    waking_ = loop_->at(when, [this] {
      waking_ = 0;
      wakes_at_ = Time::max();
    });
  }

  void check_deadlines() {
    const Time now = loop_->now().time;
    const bool few = round_.size() <= kLooksAtOnce;
    for (std::size_t left = few ? round_.size() : std::max(kLooksAtOnce, round_.size() / kSlices + 1); left > 0;
         --left) {
      if (next_look_ == round_.end()) next_look_ = round_.begin();
      const Guest& guest = **next_look_++;
      guest.connection->check_deadline(now, guest.room->idle_timeout);
    }
    loop_->at(now + (few ? kDeadlineEvery : kDeadlineEvery / kSlices), [this] { check_deadlines(); });
  }

  Server& server_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Store> store_;
  LoopMetrics metrics_;
  Pipeline pipeline_;
  Turn turn_{*loop_, pipeline_, metrics_, {}, {}, {}, {}};
  std::vector<std::unique_ptr<Room>> rooms_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  Guests connections_;
  std::list<Guest*> round_;  // all of them, in the order in which their deadlines are looked at
  std::list<Guest*>::iterator next_look_ = round_.end();
  std::uint64_t next_id_ = 1;
  std::vector<std::uint64_t> settling_;  // of end_turn(), kept for its memory
  Time full_said_ = loop_->now().time - kFullEvery;
  Loop::TimerId waking_ = 0;
  Time wakes_at_ = Time::max();
  bool draining_ = false;
  bool drain_counted_ = false;
  bool drained_ = false;    // and the server knows
  bool finishing_ = false;  // operators' connections drain too
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

void Server::loop_drained() {
  if (drained_.fetch_add(1) + 1 != workers_.size()) return;
  for (const auto& worker : workers_) worker->finish();
}

void Server::stop(Duration drain_timeout) noexcept {
  for (const auto& worker : workers_) worker->drain(drain_timeout);
}

void Server::look_at_certificates(Time now) {
  for (const Endpoint& endpoint : endpoints_) {
    if (endpoint.tls != nullptr) endpoint.tls->look(now);
  }
}

void Server::reload_certificates() {
  for (const Endpoint& endpoint : endpoints_) {
    if (endpoint.tls == nullptr) continue;
    if (const auto read = endpoint.tls->reload(); !read)
      options_.log(read.error().detail + "; the certificate in use stays in use");
  }
}

}  // namespace weir
