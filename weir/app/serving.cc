#include "weir/app/serving.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "weir/app/random.h"
#include "weir/app/systemd.h"
#include "weir/base/bounds.h"
#include "weir/base/siphash.h"
#include "weir/base/text.h"
#include "weir/cli/configuration.h"
#include "weir/external/http_caller.h"
#include "weir/store/memory/memory_bucket_scan.h"
#include "weir/store/memory/memory_store.h"
#include "weir/store/memory/snapshot.h"

namespace weir::app {
namespace {

// How long the start waits for Redis, for the key of hashed limits and what other servers know together.
constexpr std::chrono::milliseconds kKnownPatience{1000};

// How long a start waits for the previous process to hand over its state, and how often it tries.
constexpr std::chrono::seconds kHandOverPatience{5};
constexpr int kLockRetryMs = 20;

// Descriptors for everything that is not a client's connection: files, listeners, Redis.
constexpr rlim_t kDescriptorsKept = 128;

// Raises the descriptor limit as far as the system allows, because each connection needs one and shells start programs
// with few. Returns how many connections that allows.
std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return SIZE_MAX;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);  // refused: then the lower number stays
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return static_cast<std::size_t>(limit.rlim_cur - std::min(kDescriptorsKept, limit.rlim_cur / 2));
}

// Returns a signalfd, so that one poll() waits for signals and files. Call it before any thread starts: threads inherit
// the mask that leaves these signals to the signalfd.
Socket take_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // at the file size limit a write fails instead of killing us
  return Socket(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

void apply_log(const config::Settings& settings, Log& log) {
  log.configure(log_level(settings.log.level), settings.log.format == "json" ? LogFormat::json : LogFormat::text);
}

// The state file next to which run-time changes are kept: the one that lasts longest. Empty if they are not kept.
const std::string& known_path(const config::State& state) {
  return state.snapshot.empty() ? state.live : state.snapshot;
}

// The longest window, from empty to full, that the store can hold.
Duration window_max_of(const config::Settings& settings) {
  return settings.store == config::StoreKind::redis ? bounds::redis_window_max : bounds::window_max;
}

// Whether a signal that ends the process waits to be read from the signalfd.
bool told_to_end() {
  sigset_t pending;
  return sigpending(&pending) == 0 && (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

}  // namespace

Serving::Serving(cli::ServerStart start, cli::Console& console)
    : checked_(std::move(start.checked)),
      path_(std::move(start.path)),
      flags_(std::move(start.flags)),
      console_(console),
      log_([&console](std::string_view line) {
        console.err.write(line);
        console.err.flush();
      }),
      jwt_counts_(std::move(start.jwt_counts)),
      around_{health_, std::filesystem::path(path_).parent_path().string(),
              [this](LogLevel level, std::string_view sentence) { log_.write(level, sentence); },
              [this](Loop& loop) { return admin_shared(loop); }},
      proxy_(around_.folder, around_.log),
      read_(std::move(start.files)) {}

cli::Exit Serving::run() {
  if (const cli::Exit failed = start(); failed != cli::kOk) {
    close_state();
    return failed;
  }
  std::thread control_thread([this] { control(); });
  std::thread maintenance([this] { maintain(); });
  announce();
  server_->run();

  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  (void)!eventfd_write(wakeup_.fd(), 1);
  maintenance.join();
  control_thread.join();
  background_tasks_.reset();
  if (redis_admin_ != nullptr) redis_admin_->stop();
  if (cache_redis_admin_ != nullptr) cache_redis_admin_->stop();
  server_.reset();
  hand_over();
  close_state();
  log_.info("stopped");
  return cli::kOk;
}

// Prints why it failed, unless it returns cli::kOk.
cli::Exit Serving::start() {
  const auto fail = [this](const Error& error, cli::Exit exit = cli::kFailed) {
    console_.print_error(error.detail);
    return exit;
  };
  signals_ = take_signals();
  // Readable from the start: the files that were read are to be watched.
  wakeup_ = Socket(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!signals_ || !wakeup_) return fail({Fault::unavailable, "cannot wait for signals: out of descriptors"});
  connections_max_ = raise_descriptor_limit();
  around_.requests = &log_;
  around_.proxy = &proxy_;
  const config::Settings& settings = checked_.loaded.settings;
  auto endpoints = make_endpoints(settings, around_);
  if (!endpoints) return fail(endpoints.error(), cli::kUsage);
  apply_log(settings, log_);
  if (auto locked = lock_state(settings); !locked)
    return fail(locked.error(), locked.error().fault == Fault::invalid ? cli::kUsage : cli::kFailed);
  if (auto opened = open_table(settings); !opened)
    return fail(opened.error(), opened.error().fault == Fault::invalid ? cli::kUsage : cli::kFailed);
  if (auto opened = open_known(settings.state); !opened) return fail(opened.error());
  config::Loaded loaded = std::move(checked_).finish(hash_key());
  if (auto usable = check_files(loaded); !usable) return fail(usable.error(), cli::kUsage);
  if (auto started = proxy_.start(loaded); !started) return fail(started.error(), cli::kUsage);
  if (auto opened = open_services(loaded); !opened) return fail(opened.error(), cli::kUsage);
  for (const std::string& warning : loaded.warnings) log_.warn(warning);
  warn_of_orphans(*loaded.policy);
  reloader_ = std::make_unique<Reloader>(
      std::move(loaded),
      Reloader::Options{.load = [this](const auto& amendments) { return load(amendments); },
                        .log = [this](LogLevel level, std::string_view sentence) { log_.write(level, sentence); },
                        .clock = *clock_});
  reloader_->on_change([this](const config::Loaded& now) { apply(now); });
  state_.table->keep_idle(cli::longest_idle(*reloader_->policy()));
  background_tasks_ = std::make_unique<admin::BackgroundTasks>();
  if (auto started = start_server(std::move(*endpoints)); !started) return fail(started.error());
  return cli::kOk;
}

// Also called after a failed start: an unsealed live file looks like that of a killed process.
void Serving::close_state() {
  if (state_.table == nullptr) return;
  if (auto sealed = state_.seal(clock_->now()); !sealed) log_.error(sealed.error().detail);
  state_.file = LiveFile();  // before the lock: the process that waits for it opens this file next
  lock_.release();
}

// Two processes would overwrite each other's snapshots and run-time changes. A successor waits here until the previous
// process has handed over.
Result<void> Serving::lock_state(const config::Settings& settings) {
  using Steady = std::chrono::steady_clock;
  const std::string& path = known_path(settings.state);
  if (path.empty()) return {};
  const Steady::time_point give_up = Steady::now() + kHandOverPatience + settings.drain_delay;
  auto lock = StateLock::take(path, [&] {
    if (!std::exchange(takes_over_, true)) log_.info(path + ": waiting for another process to release this state");
    poll(nullptr, 0, kLockRetryMs);
    return Steady::now() < give_up && !told_to_end();
  });
  if (!lock) return lock.error();
  lock_ = std::move(*lock);
  return {};
}

// Hands the state to the next process, as soon as every loop has answered what it had read. A live file is handed over
// only at the end, because both processes use the same file.
void Serving::hand_over() {
  if (std::exchange(handed_over_, true)) return;
  keeper_->close();
  save_snapshot();
  if (!state_.file.is_open()) lock_.release();
}

// Redis may be down: the server starts anyway, and hashed limits use a key of its own until maintain() finds the shared
// one.
Result<void> Serving::open_redis(const config::Settings& settings) {
  auto stores = RedisStores::make(settings.redis,
                                  [this](LogLevel level, std::string_view sentence) { log_.write(level, sentence); });
  if (!stores) return stores.error();
  redis_ = std::move(*stores);
  health_.store_up = [this] { return redis_->is_up(); };
  auto redis_admin = redis_->admin();
  if (!redis_admin) return redis_admin.error();
  redis_admin_ = std::move(*redis_admin);
  auto table = Table::create({.buckets_max = static_cast<std::uint64_t>(settings.redis.fallback_buckets)});
  if (!table) return table.error();
  state_.table = std::move(*table);
  clock_ = std::make_unique<BootClock>();
  started_ = clock_->time();
  redis_->set_failure_policy(print(settings.failure_policy));
  if (const auto found = redis_admin_->wait_for_hash_key(kKnownPatience)) use_hash_key(*found);
  hash_key_asked_ = started_;
  return {};
}

std::unique_ptr<Store> Serving::make_store(Loop& loop) {
  if (redis_ != nullptr) return redis_->store(loop, *state_.table, *clock_);
  return std::make_unique<MemoryStore>(*state_.table, *clock_);
}

Result<void> Serving::open_table(const config::Settings& settings) {
  if (settings.store == config::StoreKind::redis) return open_redis(settings);
  auto state = open_state(
      {settings.state.live,
       settings.state.snapshot,
       {.buckets_max = static_cast<std::uint64_t>(settings.memory.max_buckets), .names = settings.memory.names}});
  if (!state) return state.error();
  state_ = std::move(*state);
  for (const std::string& sentence : state_.report) {
    log_.write(state_.forgetful ? LogLevel::warn : LogLevel::info, sentence);
  }
  clock_ = std::make_unique<BootClock>(state_.boot_offset);
  bucket_scans_.push_back(std::make_unique<MemoryBucketScan>(*state_.table));
  started_ = clock_->time();
  last_snapshot_ = started_;
  return {};
}

Result<void> Serving::open_known(const config::State& state) {
  const std::string& beside = known_path(state);
  const auto warn = [this](std::string_view sentence) { log_.warn(sentence); };
  if (!beside.empty()) known_file_ = std::make_unique<KnownFile>(beside + ".known", warn);
  keeper_ = std::make_unique<KnownKeeper>(known_file_.get(), warn, clock_.get());
  watch_ = std::make_unique<DenialWatch>(*keeper_);
  if (auto loaded = keeper_->load(clock_->wall()); !loaded || redis_admin_ == nullptr) return loaded;
  const Duration left = kKnownPatience - (clock_->time() - started_);
  const auto write = [this](LogLevel level, std::string_view sentence) { log_.write(level, sentence); };
  // At most that: a clock that a test has set back between the two readings would make it longer.
  if (!redis_admin_->share(*keeper_, write, std::clamp(left, Duration::zero(), Duration{kKnownPatience}))) {
    warn("Redis unavailable: adjustments and access lists apply when it is reachable");
  }
  return {};
}

// Answers of limits services are shared through cache_redis, else through the Redis of the store.
Result<void> Serving::open_services(const config::Loaded& loaded) {
  const config::Settings& settings = loaded.settings;
  const auto write = [this](LogLevel level, std::string_view sentence) { log_.write(level, sentence); };
  RedisAdmin* shared_on = redis_admin_.get();
  if (settings.has_cache_redis) {
    auto stores = RedisStores::make(settings.cache_redis, write);
    if (!stores) return Error{stores.error().fault, "cache_" + stores.error().detail};
    cache_redis_ = std::move(*stores);
    auto admin = cache_redis_->admin();
    if (!admin) return admin.error();
    cache_redis_admin_ = std::move(*admin);
    shared_on = cache_redis_admin_.get();
  }
  std::shared_ptr<external::SharedAnswers> shared;
  if (shared_on != nullptr) shared = shared_on->answers(*clock_, window_max_of(settings), write);
  const auto secret = random_bytes(sizeof(HashKey));
  if (!secret) return secret.error();
  HashKey key{};
  std::memcpy(&key, secret->data(), sizeof key);
  const auto bucket_id = [this](std::string_view limit, std::string id) {
    Result<std::string> written = reloader_->policy()->bucket_id(limit, id);
    return written ? std::move(*written) : std::move(id);
  };
  services_ = std::make_unique<external::Services>(*clock_, key, std::move(shared), write, bounds::service_answers_max,
                                                   bucket_id);
  return {};
}

Result<std::shared_ptr<const TlsClient>> Serving::tls_of(const LimitsService& service) {
  return proxy_.gateway.tls.get({service.ca_file, service.cert_file, service.key_file, service.server_name},
                                proxy::TlsClients::Offer::any_version);
}

std::unique_ptr<external::LoopServices> Serving::make_services(Loop& loop, ServiceMetrics& metrics) {
  auto caller =
      std::make_unique<external::HttpCaller>(loop, service_resolver_, window_max_of(reloader_->current()->settings),
                                             [this](const LimitsService& service) { return tls_of(service); });
  const auto post = [&loop](std::function<void()> work) { loop.post(std::move(work)); };
  return std::make_unique<external::LoopServices>(*services_, std::move(caller), post, metrics);
}

// Returns the key of hashed limits: the one that all servers on one Redis share, or one made from the table's secret
// seed, which lives as long as the buckets that it names.
std::string Serving::hash_key() {
  {
    const std::lock_guard lock(mutex_);
    if (!shared_hash_key_.empty()) return shared_hash_key_;
  }
  std::string key;
  for (const std::string_view part : {"hash key 1", "hash key 2", "hash key 3", "hash key 4"}) {
    const std::uint64_t word = siphash13(state_.table->header().seed, part);
    key.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  return key;
}

config::Outcome Serving::load(const std::vector<config::Amendment>& amendments) {
  const std::shared_ptr<const config::Loaded> running = reloader_->current();
  config::Options options;
  options.flags = flags_;
  options.amendments = amendments;
  options.empty_before = running->empty_files;
  options.jwt_keys = running->jwt_keys;
  options.jwt_counts = jwt_counts_;
  std::vector<SeenFile> read;
  // Note the version before reading, so that a change in between is noticed.
  options.reading = [&](const std::string& path) { read.push_back({path, FileVersion::at(path)}); };
  auto outcome = cli::check_to_serve(path_, std::move(options));
  {
    const std::lock_guard lock(mutex_);
    read_ = std::move(read);
  }
  (void)!eventfd_write(wakeup_.fd(), 1);
  if (auto* const problems = std::get_if<config::Problems>(&outcome)) return std::move(*problems);
  config::Loaded loaded = std::get<config::Checked>(std::move(outcome)).finish(hash_key());
  if (auto usable = check_files(loaded); !usable) return config::Problems{{path_, 0, 0, usable.error().detail}};
  return loaded;
}

// What a configuration names must be usable, or it changes nothing.
Result<void> Serving::check_files(const config::Loaded& loaded) {
  if (auto usable = proxy_.check(loaded); !usable) return usable;
  for (const NamedLimit& limit : loaded.policy->limits()) {
    if (limit.service == nullptr || !limit.service->tls) continue;
    if (auto tls = tls_of(*limit.service); !tls) {
      return Error{Fault::invalid, "external service of limit " + quote(limit.name) + ": " + tls.error().detail};
    }
  }
  return {};
}

// Applies the settings that other parts of the process keep a copy of.
void Serving::apply(const config::Loaded& now) {
  apply_log(now.settings, log_);
  proxy_.apply(now.settings);
  state_.table->keep_idle(cli::longest_idle(*now.policy));
  if (redis_ != nullptr) redis_->set_failure_policy(print(now.settings.failure_policy));
  warn_of_orphans(*now.policy);
}

// After a change of hash_key, run-time entries hashed under the old key match no one. They are kept in case it comes
// back.
void Serving::warn_of_orphans(const Policy& policy) {
  const Wall now = clock_->wall();
  std::size_t orphans = 0;
  for (const Adjustment& one : keeper_->adjustments(now))
    orphans += policy.is_orphaned(one.limit, one.id, one.hash_mark);
  for (const auto list : {AccessEntry::List::allow, AccessEntry::List::deny}) {
    for (const AccessEntry& one : keeper_->entries(list, now)) {
      if (!one.limit.empty()) orphans += policy.is_orphaned(one.limit, one.id, one.hash_mark);
    }
  }
  if (std::exchange(orphans_, orphans) == orphans || orphans == 0) return;
  log_.warn(std::to_string(orphans) +
            " of the adjustments and access entries made at run time match nobody: their ids " +
            "were hashed under another hash_key");
}

Result<void> Serving::start_server(std::vector<Endpoint> endpoints) {
  const auto now = reloader_->current();
  const auto threads = now->settings.threads > 0 ? static_cast<unsigned>(now->settings.threads)
                                                 : std::max(std::thread::hardware_concurrency(), 1u);
  auto server =
      Server::make({.threads = threads,
                    .store = [this](Loop& loop) { return make_store(loop); },
                    .services = [this](Loop& loop, ServiceMetrics& metrics) { return make_services(loop, metrics); },
                    .watch = watch_.get(),
                    .log = [this](std::string_view sentence) { log_.warn(sentence); },
                    .requests = &log_,
                    .events = &events_,
                    .connections_max = connections_max_,
                    .takes_over = takes_over_},
                   std::move(endpoints), reloader_->published(), keeper_->known(), *clock_);
  if (!server) return server.error();
  server_ = std::move(*server);
  return {};
}

void Serving::announce() {
  std::string where;
  const auto now = reloader_->current();
  for (std::size_t i = 0; i < server_->addresses().size(); ++i) {
    where += (i == 0 ? "" : ", ") + now->settings.listen[i].speak.front() + " on " + server_->addresses()[i].print();
  }
  health_.started = true;
  health_.ready = true;
  log_.info("weir started: version=" + std::string(WEIR_VERSION) + " config=" +
            (path_.empty() ? "environment" : path_) + " limits=" + std::to_string(now->policy->limits().size()) +
            " routes=" + std::to_string(now->policy->routes().size()) + " store=" + (redis_ ? "redis" : "memory"));
  log_.info("ready: " + where);
  notify("READY=1");
}

// The name of this machine, which the dashboard shows.
static std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string("weir");
}

std::shared_ptr<admin::AdminShared> Serving::admin_shared(Loop& loop) {
  if (redis_admin_ != nullptr) bucket_scans_.push_back(redis_admin_->bucket_scan(loop));
  return std::make_shared<admin::AdminShared>(admin::AdminShared{
      *reloader_, *keeper_, *bucket_scans_.back(), events_, live_, *background_tasks_, health_, *clock_,
      [this] { return server_->metrics(); }, [this] { return gauges(); },
      [this](const AuditEntry& entry) { log_.always(LogLevel::info, audit_line(entry), "audit", audit_fields(entry)); },
      host_name(), services_.get()});
}

Gauges Serving::gauges() const {
  const Table::Stats stats = state_.table->stats();
  Gauges gauges;
  gauges.buckets = stats.buckets;
  gauges.buckets_evicted = stats.evicted;
  gauges.table_bytes = stats.bytes;
  gauges.blocks = keeper_->known().current()->blocks().entries().size();
  gauges.blocks_made = keeper_->blocks_made();
  gauges.blocks_refused = keeper_->blocks_refused();
  gauges.denial_counters_forgotten = watch_->forgotten();
  gauges.reloads_ok = reloader_->reloads_ok();
  gauges.reloads_failed = reloader_->reloads_failed();
  gauges.last_reload = reloader_->last_reload();
  gauges.last_reload_ok = reloader_->last_reload_ok();
  if (redis_ == nullptr && !reloader_->current()->settings.state.snapshot.empty()) {
    gauges.snapshot_age = std::max(clock_->time() - last_snapshot_.load(), Duration::zero());
    gauges.snapshot_failures = snapshot_failures_.load();
  }
  gauges.backends = proxy_.gateway.upstreams.list();
  gauges.services = services_->gauges();
  for (const NamedLimit& limit : reloader_->policy()->limits()) {
    if (limit.service != nullptr) gauges.services.add_configured(limit.name);
  }
  gauges.process = read_process_stats();
  if (redis_ != nullptr) redis_->fill(gauges);
  for (std::size_t i = 0; i < kJwtReasons; ++i) {
    const auto reason = static_cast<JwtReason>(i);
    gauges.jwt_rejected.emplace_back(print(reason), jwt_counts_->of(reason));
  }
  gauges.jwt_key_failures = jwt_counts_->key_failures();
  gauges.version = WEIR_VERSION;
  gauges.uptime = clock_->time() - started_;
  return gauges;
}

cli::Exit run_server(cli::ServerStart start, cli::Console& console) {
  return Serving(std::move(start), console).run();
}

}  // namespace weir::app
