// `weir serve`: builds the server from the configuration, top to bottom, and runs it until it is told to stop.
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/siphash.h"
#include "weir/cli/commands.h"
#include "weir/cli/configuration.h"
#include "weir/net/socket.h"
#include "weir/observe/metrics.h"
#include "weir/protocol/http/http_session.h"
#include "weir/protocol/resp/resp_session.h"
#include "weir/server/admin_session.h"
#include "weir/server/denial_watch.h"
#include "weir/server/known_file.h"
#include "weir/server/known_keeper.h"
#include "weir/server/server.h"
#include "weir/store/memory/memory_store.h"
#include "weir/store/memory/snapshot.h"
#include "weir/store/memory/state.h"

namespace weir::cli {
namespace {

// How often memory is made ready and given back, and expired buckets are looked for.
constexpr std::chrono::milliseconds kMaintainEvery{50};

// systemd's word for "it works now"; silently nothing where nobody asked for it.
void notify(const std::string& state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  sockaddr_un address{};
  if (std::strlen(path) >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path, std::strlen(path));
  if (path[0] == '@') address.sun_path[0] = '\0';
  const Socket socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  (void)!sendto(socket.fd(), state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
                size);
}

// A connection is a descriptor: take as many as the system lets us have instead of what shells start programs with.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);  // refused: then the lower number stays
}

// Sockets that systemd opened for us, in the order of the listeners.
int inherited_sockets() {
  const char* const pid = std::getenv("LISTEN_PID");
  const char* const count = std::getenv("LISTEN_FDS");
  if (pid == nullptr || count == nullptr || std::atoi(pid) != getpid()) return 0;
  return std::max(std::atoi(count), 0);
}

// Settings that would change who may pass and that nothing acts on yet. Ignoring one would be a promise broken in
// silence.
std::string unbuilt(const std::vector<policy::Setting>& settings) {
  std::string sentences;
  for (const policy::Setting& setting : settings) {
    if (setting.origin == "default" || setting.value == "[]" || setting.value == "\"\"") continue;
    for (const std::string_view section :
         {"admin.read_token", "admin.write_token", "external", "envoy", "cache_redis"}) {
      if (!setting.path.starts_with(section)) continue;
      sentences += setting.origin + ": " + setting.path + " is not built yet, and the server must not ignore it\n";
      break;
    }
  }
  return sentences;
}

// Sessions are made in their loop's thread; what the sessions of one thread share is made with the first of them.
struct Fronts {
  std::unique_ptr<HttpFront> http;
  std::unique_ptr<AdminFront> admin;
};

class Serving {
 public:
  Serving(policy::Loaded loaded, std::string path, Console& console)
      : loaded_(std::move(loaded)), path_(std::move(path)), console_(console) {}

  Exit run();

 private:
  Result<void> open();
  Result<void> open_known();
  policy::Outcome load_with_own_key() const;
  Result<std::vector<Endpoint>> endpoints();
  Result<Endpoint> endpoint(const policy::Listener& listener);
  Fronts& fronts();
  Gauges gauges() const;
  void reload();
  void wait_for_signals(const sigset_t& signals);
  void maintain();
  void save_snapshot();
  void log(std::string_view sentence);

  policy::Loaded loaded_;
  std::string path_;
  Console& console_;
  OpenState state_;
  std::unique_ptr<BootClock> clock_;
  std::unique_ptr<Published<Policy>> policy_;
  std::unique_ptr<KnownFile> known_file_;
  std::unique_ptr<KnownKeeper> keeper_;
  std::unique_ptr<DenialWatch> watch_;
  std::unique_ptr<Server> server_;
  Health health_;
  std::vector<std::unique_ptr<RespOptions>> resp_options_;
  std::atomic<std::uint64_t> reloads_ok_{0};
  std::atomic<std::uint64_t> reloads_failed_{0};
  std::atomic<std::uint64_t> next_client_{1};
  Time started_{};
  std::mutex log_mutex_;
  std::mutex stop_mutex_;
  std::condition_variable stop_changed_;
  bool stopping_ = false;
};

void Serving::log(std::string_view sentence) {
  const std::lock_guard lock(log_mutex_);
  console_.err.write("weir: " + std::string(sentence) + "\n");
  console_.err.flush();
}

Result<void> Serving::open() {
  const policy::Settings& settings = loaded_.settings;
  if (settings.store != policy::StoreKind::memory)
    return Error{Fault::invalid, "store: redis is not built yet; use store: memory"};
  if (!settings.state.live.empty() && settings.state.live == settings.state.snapshot) {
    return Error{Fault::invalid,
                 "state.live and state.snapshot are both \"" + settings.state.live + "\": they need a file each"};
  }
  auto state = open_state(
      {settings.state.live,
       settings.state.snapshot,
       {.buckets_max = static_cast<std::uint64_t>(settings.memory.max_buckets), .names = settings.memory.names}});
  if (!state) return state.error();
  state_ = std::move(*state);
  for (const std::string& sentence : state_.report) log(sentence);
  clock_ = std::make_unique<BootClock>(state_.boot_offset);
  started_ = clock_->time();
  return {};
}

// Adjustments and access entries made at run time are kept beside the state, where it lasts longest.
Result<void> Serving::open_known() {
  const policy::State& state = loaded_.settings.state;
  const std::string& beside = state.snapshot.empty() ? state.live : state.snapshot;
  const auto say = [this](std::string_view sentence) { log(sentence); };
  if (!beside.empty()) known_file_ = std::make_unique<KnownFile>(beside + ".known", say);
  keeper_ = std::make_unique<KnownKeeper>(known_file_.get(), say);
  watch_ = std::make_unique<DenialWatch>(*keeper_);
  return keeper_->load(clock_->wall());
}

// The key of hashed limits is made from the table's secret seed: it lives as long as the buckets it names.
policy::Outcome Serving::load_with_own_key() const {
  std::string key;
  for (const std::string_view part : {"hash key 1", "hash key 2", "hash key 3", "hash key 4"}) {
    const std::uint64_t word = siphash13(state_.table->header().seed, part);
    key.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  return load(path_, key);
}

Fronts& Serving::fronts() {
  thread_local Fronts mine;
  if (mine.http != nullptr) return mine;
  mine.http = std::make_unique<HttpFront>(health_);
  const policy::Headers& headers = loaded_.settings.headers;
  const auto has = [&](std::string_view family) {
    return std::ranges::find(headers.ratelimit, family) != headers.ratelimit.end();
  };
  mine.http->options.headers = {has("x-ratelimit"), has("ietf"), headers.reset == "epoch"};
  mine.http->options.failure_code = loaded_.settings.failure_code;
  mine.admin = std::make_unique<AdminFront>();
  mine.admin->metrics = [this] { return exposition(server_->metrics(), gauges()); };
  mine.admin->ready = [this] { return health_.ready.load(); };
  return mine;
}

Result<Endpoint> Serving::endpoint(const policy::Listener& listener) {
  auto address = Address::parse(listener.address);
  if (!address) return address.error();
  if (!listener.tls.empty()) return Error{Fault::invalid, "tls on " + listener.address + " is not built yet"};
  Endpoint endpoint;
  endpoint.address = std::move(*address);
  const auto speaks = [&](std::string_view word) {
    return std::ranges::find(listener.speak, word) != listener.speak.end();
  };
  const bool speaks_http = speaks("http") || speaks("grpc");
  if ((speaks("resp") || speaks("admin")) && (listener.speak.size() > 1 || speaks_http)) {
    return Error{Fault::invalid,
                 "speak: resp and admin need an address of their own, " + listener.address + " has several"};
  }
  if (!listener.password.empty() && !speaks("resp")) {
    return Error{Fault::invalid, "a password on " + listener.address + " protects nothing: only resp asks for one"};
  }
  if (speaks("proxy")) return Error{Fault::invalid, "speak: proxy on " + listener.address + " is not built yet"};
  if (speaks("admin")) {
    if (!endpoint.address.is_loopback()) {
      return Error{Fault::invalid, "the admin listener on " + listener.address +
                                       " must be on a loopback address: tokens are not built yet"};
    }
    endpoint.speak = Speak::admin;
    endpoint.session = [this](Loop&, std::string_view) { return std::make_unique<AdminSession>(*fronts().admin); };
  } else if (speaks("resp")) {
    endpoint.speak = Speak::resp;
    resp_options_.push_back(std::make_unique<RespOptions>());
    const RespOptions& options = *resp_options_.back();
    resp_options_.back()->password = listener.password;
    endpoint.session = [this, &options](Loop&, std::string_view) {
      return std::make_unique<RespSession>(options, next_client_++);
    };
  } else if (speaks("http")) {
    endpoint.speak = Speak::http;
    // Whoever reaches a UNIX socket is on this machine.
    endpoint.session = [this](Loop&, std::string_view peer) {
      return std::make_unique<HttpSession>(*fronts().http, peer.empty() ? "127.0.0.1" : peer);
    };
  } else {
    return Error{Fault::invalid, "speak: grpc on " + listener.address + " is not built yet"};
  }
  return endpoint;
}

Result<std::vector<Endpoint>> Serving::endpoints() {
  std::vector<Endpoint> all;
  const int inherited = inherited_sockets();
  constexpr int kFirstInherited = 3;
  for (const policy::Listener& listener : loaded_.settings.listen) {
    auto made = endpoint(listener);
    if (!made) return made.error();
    if (static_cast<int>(all.size()) < inherited) made->inherited_fd = kFirstInherited + static_cast<int>(all.size());
    all.push_back(std::move(*made));
  }
  return all;
}

Gauges Serving::gauges() const {
  const Table::Stats stats = state_.table->stats();
  Gauges gauges;
  gauges.buckets = stats.buckets;
  gauges.buckets_evicted = stats.evicted;
  gauges.table_bytes = stats.bytes;
  gauges.blocks = keeper_->known().current()->blocks().entries().size();
  gauges.blocks_refused = keeper_->blocks_refused();
  gauges.denial_counters_forgotten = watch_->forgotten();
  gauges.reloads_ok = reloads_ok_.load();
  gauges.reloads_failed = reloads_failed_.load();
  gauges.version = WEIR_VERSION;
  gauges.uptime = clock_->time() - started_;
  return gauges;
}

// All or nothing: a refused file leaves the old policy in force.
void Serving::reload() {
  auto outcome = load_with_own_key();
  if (const auto* problems = std::get_if<policy::Problems>(&outcome)) {
    const std::lock_guard lock(log_mutex_);
    complain(*problems, path_, console_);
    console_.err.write("weir: not reloaded: the old policy stays in force\n");
    console_.err.flush();
    ++reloads_failed_;
    return;
  }
  policy_->publish(std::get<policy::Loaded>(outcome).policy);
  ++reloads_ok_;
  log("reloaded: limits, names and overrides are in force; everything else needs a restart");
}

void Serving::wait_for_signals(const sigset_t& signals) {
  for (;;) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal == SIGUSR1) {
      // From run() when the server has ended by itself; from anybody else it means nothing.
      const std::lock_guard lock(stop_mutex_);
      if (stopping_) return;
      continue;
    }
    if (signal == SIGHUP) {
      reload();
      continue;
    }
    log("draining");
    notify("STOPPING=1");
    health_.ready = false;
    server_->stop();
    return;
  }
}

void Serving::save_snapshot() {
  if (loaded_.settings.state.snapshot.empty()) return;
  const auto written = write_snapshot(*state_.table, loaded_.settings.state.snapshot, clock_->now());
  if (!written) log(written.error().detail);
}

void Serving::maintain() {
  Time next_snapshot = clock_->time() + loaded_.settings.state.every;
  Time next_round = clock_->time();
  std::unique_lock lock(stop_mutex_);
  while (!stop_changed_.wait_for(lock, kMaintainEvery, [&] { return stopping_; })) {
    lock.unlock();
    const Now now = clock_->now();
    keeper_->tick(now.wall);
    // A whole round takes a while; the next one begins `cleanup` after this one began.
    if (now.time >= next_round && state_.table->maintain(now)) next_round = now.time + loaded_.settings.memory.cleanup;
    if (now.time < next_round) state_.table->maintain(now, 0);
    if (now.time >= next_snapshot) {
      save_snapshot();
      next_snapshot = now.time + loaded_.settings.state.every;
    }
    lock.lock();
  }
}

Exit Serving::run() {
  // Before any thread exists, so that all of them leave these to the one that waits.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a full file is an error of the call, not our end

  raise_descriptor_limit();
  auto listening = endpoints();
  if (!listening) {
    console_.complain(listening.error().detail);
    return kUsage;
  }
  if (auto opened = open(); !opened) {
    console_.complain(opened.error().detail);
    return opened.error().fault == Fault::invalid ? kUsage : kFailed;
  }
  if (auto opened = open_known(); !opened) {
    console_.complain(opened.error().detail);
    return kFailed;
  }
  // Again, now that the state has given us a key.
  auto outcome = load_with_own_key();
  if (const auto* problems = std::get_if<policy::Problems>(&outcome)) {
    complain(*problems, path_, console_);
    return kUsage;
  }
  policy_ = std::make_unique<Published<Policy>>(std::get<policy::Loaded>(outcome).policy);
  const auto threads = loaded_.settings.threads > 0 ? static_cast<unsigned>(loaded_.settings.threads)
                                                    : std::max(std::thread::hardware_concurrency(), 1u);
  auto server = Server::make({.threads = threads,
                              .drain_timeout = loaded_.settings.drain_timeout,
                              .store = [this] { return std::make_unique<MemoryStore>(*state_.table, *clock_); },
                              .watch = watch_.get(),
                              .log = [this](std::string_view sentence) { log(sentence); }},
                             std::move(*listening), *policy_, keeper_->known(), *clock_);
  if (!server) {
    console_.complain(server.error().detail);
    return kFailed;
  }
  server_ = std::move(*server);
  std::string where;
  for (std::size_t i = 0; i < server_->addresses().size(); ++i) {
    where += (i == 0 ? "" : ", ") + loaded_.settings.listen[i].speak.front() + " on " + server_->addresses()[i].print();
  }
  health_.started = true;
  health_.ready = true;
  std::thread signal_thread([&] { wait_for_signals(signals); });
  std::thread maintenance([this] { maintain(); });
  log("ready: " + where);
  notify("READY=1");
  server_->run();

  {
    const std::lock_guard lock(stop_mutex_);
    stopping_ = true;
  }
  stop_changed_.notify_all();
  maintenance.join();
  pthread_kill(signal_thread.native_handle(), SIGUSR1);
  signal_thread.join();
  server_.reset();
  save_snapshot();
  if (auto sealed = state_.seal(clock_->now()); !sealed) log(sealed.error().detail);
  log("stopped");
  return kOk;
}

Exit run(const Arguments& arguments, Console& console) {
  auto loaded = load_or_complain(arguments["--config"], console);
  if (!loaded) return kUsage;
  if (const std::string sentences = unbuilt(loaded->origins); !sentences.empty()) {
    console.err.write(sentences);
    return kUsage;
  }
  return Serving(std::move(*loaded), arguments["--config"], console).run();
}

}  // namespace

Command serve() {
  return {"serve",
          "answer requests over HTTP and RESP",
          "Listens where the configuration says: by default on 127.0.0.1:8080 for HTTP, 127.0.0.1:6380 for any Redis\n"
          "client, and 127.0.0.1:9090 for metrics and probes. SIGTERM drains and ends; SIGHUP reads the file again.",
          {{"--config", "FILE", "the configuration; without it the environment (WEIR_...) and the defaults"}},
          "# without a file: 100 requests per second and address, 20 at once\n"
          "weir serve\n"
          "# with limits of your own\n"
          "weir serve --config weir.yaml",
          run};
}

}  // namespace weir::cli
