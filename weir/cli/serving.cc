#include "weir/cli/serving.h"

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
#include <filesystem>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "weir/base/siphash.h"
#include "weir/base/text.h"
#include "weir/cli/configuration.h"
#include "weir/cli/systemd.h"
#include "weir/store/memory/memory_roster.h"
#include "weir/store/memory/memory_store.h"
#include "weir/store/memory/snapshot.h"

namespace weir::cli {
namespace {

// How often memory is made ready and given back, and expired buckets are looked for.
constexpr std::chrono::milliseconds kMaintainEvery{50};
constexpr std::chrono::seconds kHashKeyEvery{30};

// How long the start waits for Redis, for the key of hashed limits and what other servers know together.
constexpr std::chrono::milliseconds kKnownPatience{1000};

// How long a start waits for the process before it to hand over its state, and how often it tries.
constexpr std::chrono::seconds kHandOverPatience{5};
constexpr int kLockRetryMs = 20;

// How long files must be quiet before they are read, and how long they may take to be.
constexpr std::chrono::milliseconds kSettleFor{100};
constexpr std::chrono::milliseconds kSettleAtMost{2000};

// Descriptors for everything that is not a client's connection: files, listeners, Redis.
constexpr rlim_t kDescriptorsKept = 128;

// A connection is a descriptor: takes as many as the system grants instead of what shells start programs with. Returns
// how many connections that makes.
std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return SIZE_MAX;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);  // refused: then the lower number stays
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return static_cast<std::size_t>(limit.rlim_cur - std::min(kDescriptorsKept, limit.rlim_cur / 2));
}

// Signals as something to wait for together with other things. Before any thread exists, so that all of them leave
// these signals to the one that reads.
Socket take_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a full file is an error of the call, not our end
  return Socket(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

void apply_log(const policy::Settings& settings, Log& log) {
  log.configure(log_level(settings.log.level), settings.log.format == "json" ? LogFormat::json : LogFormat::text);
}

// Beside which of the state files the run-time changes are kept: the one that lasts longest. Empty: they are not kept.
const std::string& known_path(const policy::State& state) {
  return state.snapshot.empty() ? state.live : state.snapshot;
}

// Whether a signal that ends the process waits to be read from the signalfd.
bool told_to_end() {
  sigset_t pending;
  return sigpending(&pending) == 0 && (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

}  // namespace

Serving::Serving(policy::Loaded loaded, StartFiles files, std::string path, Flags flags, Console& console)
    : loaded_(std::move(loaded)),
      files_(std::move(files)),
      path_(std::move(path)),
      flags_(std::move(flags)),
      console_(console),
      log_([&console](std::string_view line) {
        console.err.write(line);
        console.err.flush();
      }),
      http_(std::make_shared<const HttpOptions>(http_options(loaded_.settings))),
      around_{health_,
              http_,
              std::filesystem::path(path_).parent_path().string(),
              [this](LogLevel level, std::string_view sentence) { log_.write(level, sentence); },
              [this] { return reloader_->current(); },
              [this](Loop& loop) { return admin_front(loop); }} {}

Exit Serving::run() {
  if (const Exit failed = start(); failed != kOk) {
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
  errands_.reset();
  if (desk_ != nullptr) desk_->stop();
  server_.reset();
  hand_over();
  close_state();
  log_.info("stopped");
  return kOk;
}

// Prints why it failed, unless it returns kOk.
Exit Serving::start() {
  const auto fail = [this](const Error& error, Exit exit = kFailed) {
    console_.complain(error.detail);
    return exit;
  };
  signals_ = take_signals();
  wakeup_ = Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!signals_ || !wakeup_) return fail({Fault::unavailable, "cannot wait for signals: out of descriptors"});
  connections_max_ = raise_descriptor_limit();
  around_.requests = &log_;
  auto endpoints = make_endpoints(loaded_.settings, around_);
  if (!endpoints) return fail(endpoints.error(), kUsage);
  apply_log(loaded_.settings, log_);
  if (auto locked = lock_state(loaded_.settings); !locked)
    return fail(locked.error(), locked.error().fault == Fault::invalid ? kUsage : kFailed);
  if (auto opened = open_table(loaded_.settings); !opened)
    return fail(opened.error(), opened.error().fault == Fault::invalid ? kUsage : kFailed);
  if (auto opened = open_known(loaded_.settings.state); !opened) return fail(opened.error());
  // The same files again, now that the state has given us a key.
  auto outcome = load({});
  if (const auto* problems = std::get_if<policy::Problems>(&outcome)) {
    complain(*problems, path_, console_);
    return kUsage;
  }
  loaded_.policy = std::get<policy::Loaded>(outcome).policy;
  files_ = {};
  for (const std::string& warning : loaded_.warnings) log_.warn(warning);
  warn_of_orphans(*loaded_.policy);
  reloader_ = std::make_unique<Reloader>(
      std::move(loaded_),
      Reloader::Options{.load = [this](const auto& amendments) { return load(amendments); },
                        .log = [this](LogLevel level, std::string_view sentence) { log_.write(level, sentence); },
                        .clock = *clock_});
  reloader_->on_change([this](const policy::Loaded& now) { apply(now); });
  state_.table->keep_idle(longest_idle(*reloader_->policy().current()));
  errands_ = std::make_unique<admin::Errands>();
  if (auto started = start_server(std::move(*endpoints)); !started) return fail(started.error());
  return kOk;
}

// After a failed start too: a live file that is left unsealed would be taken for that of a killed process.
void Serving::close_state() {
  if (state_.table == nullptr) return;
  if (auto sealed = state_.seal(clock_->now()); !sealed) log_.error(sealed.error().detail);
  state_.file = LiveFile();  // before the lock: whoever waits for that opens this file next
  lock_.release();
}

// Two processes would overwrite each other's snapshots and run-time changes. A successor waits here until the process
// before it has handed over.
Result<void> Serving::lock_state(const policy::Settings& settings) {
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

// What this process leaves to the next one. With a live file only at its end, because that goes from one to the other;
// otherwise as soon as every loop has answered what it had read.
void Serving::hand_over() {
  if (std::exchange(handed_over_, true)) return;
  keeper_->close();
  save_snapshot();
  if (!state_.file.is_open()) lock_.release();
}

// Redis may be away: then the server starts all the same, and hashed limits have a key of this server's own until
// maintain() has found the shared one.
Result<void> Serving::open_redis(const policy::Settings& settings) {
  auto stores = RedisStores::make(settings.redis,
                                  [this](LogLevel level, std::string_view sentence) { log_.write(level, sentence); });
  if (!stores) return stores.error();
  redis_ = std::move(*stores);
  health_.store_up = [this] { return redis_->is_up(); };
  auto desk = redis_->desk();
  if (!desk) return desk.error();
  desk_ = std::move(*desk);
  auto table = Table::create({.buckets_max = static_cast<std::uint64_t>(settings.redis.fallback_buckets)});
  if (!table) return table.error();
  state_.table = std::move(*table);
  clock_ = std::make_unique<BootClock>();
  started_ = clock_->time();
  redis_->set_failure_policy(print(settings.failure_policy));
  if (const auto found = desk_->wait_for_hash_key(kKnownPatience)) use_hash_key(*found);
  hash_key_asked_ = started_;
  return {};
}

std::unique_ptr<Store> Serving::make_store(Loop& loop) {
  if (redis_ != nullptr) return redis_->store(loop, *state_.table, *clock_);
  return std::make_unique<MemoryStore>(*state_.table, *clock_);
}

Result<void> Serving::open_table(const policy::Settings& settings) {
  if (settings.store == policy::StoreKind::redis) return open_redis(settings);
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
  rosters_.push_back(std::make_unique<MemoryRoster>(*state_.table));
  started_ = clock_->time();
  last_snapshot_ = started_;
  return {};
}

Result<void> Serving::open_known(const policy::State& state) {
  const std::string& beside = known_path(state);
  const auto say = [this](std::string_view sentence) { log_.warn(sentence); };
  if (!beside.empty()) known_file_ = std::make_unique<KnownFile>(beside + ".known", say);
  keeper_ = std::make_unique<KnownKeeper>(known_file_.get(), say, clock_.get());
  watch_ = std::make_unique<DenialWatch>(*keeper_);
  if (auto loaded = keeper_->load(clock_->wall()); !loaded || desk_ == nullptr) return loaded;
  const Duration left = kKnownPatience - (clock_->time() - started_);
  const auto write = [this](LogLevel level, std::string_view sentence) { log_.write(level, sentence); };
  // At most that: a clock that a test has set back between the two readings would make it longer.
  if (!desk_->share(*keeper_, write, std::clamp(left, Duration::zero(), Duration{kKnownPatience}))) {
    say("Redis could not be asked for adjustments and access lists: they will be in force when it can");
  }
  return {};
}

// There is one before it, always: to start with, that of the command.
policy::Outcome Serving::load(const std::vector<policy::Amendment>& amendments) {
  ServeOptions options;
  options.flags = flags_;
  options.amendments = amendments;
  options.empty_before = reloader_ ? reloader_->current()->empty_files : loaded_.empty_files;
  options.jwt_keys = reloader_ ? reloader_->current()->jwt_keys : loaded_.jwt_keys;
  options.jwt_counts = jwt_counts_;
  // The key of hashed limits is made from the table's secret seed: it lives as long as the buckets it names.
  options.hash_key.clear();
  for (const std::string_view part : {"hash key 1", "hash key 2", "hash key 3", "hash key 4"}) {
    const std::uint64_t word = siphash13(state_.table->header().seed, part);
    options.hash_key.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  std::vector<SeenFile> read;
  // Looked at before it is read: what changes in between is seen as a change.
  if (reloader_ != nullptr) {
    options.reading = [&](const std::string& path) { read.push_back({path, FileLook::at(path)}); };
  } else {
    options.read = [this](const std::string& path) { return files_.read(path); };
    read = files_.seen;
  }
  {
    const std::lock_guard lock(mutex_);
    if (!shared_hash_key_.empty()) options.hash_key = shared_hash_key_;
  }
  policy::Outcome outcome = load_to_serve(path_, options);
  {
    const std::lock_guard lock(mutex_);
    read_ = std::move(read);
  }
  (void)!eventfd_write(wakeup_.fd(), 1);
  return outcome;
}

// What others keep a copy of.
void Serving::apply(const policy::Loaded& now) {
  apply_log(now.settings, log_);
  state_.table->keep_idle(longest_idle(*now.policy));
  if (redis_ != nullptr) redis_->set_failure_policy(print(now.settings.failure_policy));
  warn_of_orphans(*now.policy);
  http_.publish(std::make_shared<const HttpOptions>(http_options(now.settings)));
}

// A hash_key that changed leaves run-time entries behind that nobody can match: they are kept, in case it comes back.
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
  auto server = Server::make({.threads = threads,
                              .store = [this](Loop& loop) { return make_store(loop); },
                              .watch = watch_.get(),
                              .log = [this](std::string_view sentence) { log_.warn(sentence); },
                              .requests = &log_,
                              .events = &events_,
                              .connections_max = connections_max_,
                              .takes_over = takes_over_},
                             std::move(endpoints), reloader_->policy(), keeper_->known(), *clock_);
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

std::shared_ptr<admin::Front> Serving::admin_front(Loop& loop) {
  if (desk_ != nullptr) rosters_.push_back(desk_->roster(loop));
  return std::make_shared<admin::Front>(
      admin::Front{*reloader_, *keeper_, *rosters_.back(), events_, *errands_, health_, *clock_,
                   [this] { return server_->metrics(); }, [this] { return gauges(); },
                   [this](const AuditEntry& entry) {
                     log_.always(LogLevel::info, audit_line(entry), "audit", audit_fields(entry));
                   }});
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

// Waits for signals and for files that change. Editors and deployments touch several files, or one in several steps:
// a reload comes when nothing has changed for a moment, or when that takes too long.
void Serving::control() {
  using Steady = std::chrono::steady_clock;
  if (auto watched = WatchedFiles::make()) {
    watched_ = std::move(*watched);
  } else {
    log_.warn(watched.error().detail + "; a changed configuration needs SIGHUP");
  }
  Ending ending;
  std::optional<Steady::time_point> first_change;
  Steady::time_point last_change{};
  for (;;) {
    std::array<pollfd, 3> waiting{
        {{signals_.fd(), POLLIN, 0}, {wakeup_.fd(), POLLIN, 0}, {watched_ ? watched_->fd() : -1, POLLIN, 0}}};
    int wait_ms = first_change ? static_cast<int>(kSettleFor.count()) : -1;
    if (ending.stage == Ending::Stage::delayed) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(ending.drain_at - Steady::now());
      wait_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, kSettleAtMost.count()));
    }
    if (poll(waiting.data(), waiting.size(), wait_ms) < 0) continue;  // EINTR
    const Steady::time_point now = Steady::now();
    if (waiting[0].revents != 0) take_signal(ending);
    if (ending.stage == Ending::Stage::delayed && now >= ending.drain_at) drain(ending);
    if (waiting[1].revents != 0) {
      eventfd_t ignored = 0;
      (void)eventfd_read(wakeup_.fd(), &ignored);
      watch_files();
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    if ((waiting[1].revents != 0 || waiting[2].revents != 0) && watched_) {
      // A file may have changed back, or have been read by somebody else's reload.
      if (!watched_->changed()) {
        first_change.reset();
      } else {
        if (!first_change) first_change = now;
        last_change = now;
      }
    }
    if (!first_change || ending.stage != Ending::Stage::not_told) continue;
    if (now - last_change < kSettleFor && now - *first_change < kSettleAtMost) continue;
    first_change.reset();
    reloader_->reload();
  }
}

// The files of the last load instead of those before it.
void Serving::watch_files() {
  std::optional<std::vector<SeenFile>> read;
  {
    const std::lock_guard lock(mutex_);
    read.swap(read_);
  }
  if (read && watched_) watched_->watch(std::move(*read));
}

void Serving::take_signal(Ending& ending) {
  signalfd_siginfo signal{};
  if (read(signals_.fd(), &signal, sizeof signal) != static_cast<ssize_t>(sizeof signal)) return;
  if (signal.ssi_signo == SIGHUP) {
    server_->reload_certificates();
    reloader_->reload();
    return;
  }
  if (ending.stage != Ending::Stage::not_told) {
    log_.warn("told to end a second time: not waiting any longer");
    ending.stage = Ending::Stage::draining;
    server_->stop(Duration::zero());
    return;
  }
  notify("STOPPING=1");
  health_.ready = false;
  const Duration delay = reloader_->current()->settings.drain_delay;
  if (delay <= Duration::zero()) return drain(ending);
  log_.info("not ready any more; draining in " + print_duration(delay));
  ending.stage = Ending::Stage::delayed;
  ending.drain_at = std::chrono::steady_clock::now() + delay;
}

void Serving::drain(Ending& ending) {
  ending.stage = Ending::Stage::draining;
  log_.info("draining");
  server_->stop(reloader_->current()->settings.drain_timeout);
}

void Serving::save_snapshot() {
  const std::string path = reloader_->current()->settings.state.snapshot;
  if (path.empty() || redis_ != nullptr) return;
  const Now now = clock_->now();
  if (const auto written = write_snapshot(*state_.table, path, now); !written) {
    ++snapshot_failures_;
    log_.error(written.error().detail);
    return;
  }
  last_snapshot_ = now.time;
}

// A full table forgets clients that are not full: an operator must know, once.
void Serving::watch_evictions() {
  const std::uint64_t evicted = state_.table->stats().evicted;
  if (eviction_logged_ || evicted == evicted_before_) return;
  eviction_logged_ = true;
  log_.warn("table full, evicting buckets that are not full yet: evicted=" + std::to_string(evicted - evicted_before_) +
            " buckets=" + std::to_string(state_.table->stats().buckets) +
            (redis_ == nullptr ? "; raise memory.max_buckets" : "; raise redis.fallback_buckets"));
}

// Asks for the shared key of hashed limits when Redis comes back, and now and then: a Redis that lost everything gets
// the key again, or all servers take what one of them made anew. Waits for nobody: the answer is used a round later.
void Serving::watch_redis() {
  std::optional<RedisHashKey::Found> found;
  std::string known;
  bool asking = false;
  {
    const std::lock_guard lock(mutex_);
    found.swap(hash_key_found_);
    known = shared_hash_key_;
    asking = hash_key_asking_;
  }
  const std::shared_ptr<const Policy> policy = reloader_->policy().current();
  // Handles of API keys need the key, too: they are the same on all servers.
  const bool hashed = std::ranges::any_of(policy->limits(), &NamedLimit::hides_ids);
  if (found && use_hash_key(*found) && hashed) {
    if (!known.empty()) {
      log_.warn("Redis has another hash key: buckets of hashed limits start over, handles of API keys change");
    }
    if (!reloader_->renew().ok()) {
      log_.warn("cannot read the configuration: hashed limits and handles keep this server's own hash key");
    }
  }
  const bool up = redis_->is_up();
  const bool back = up && !std::exchange(redis_was_up_, up);
  const Time now = clock_->time();
  const bool due = hashed && (back || now - hash_key_asked_ >= kHashKeyEvery);
  if (!up || asking || (!known.empty() && !due)) return;
  hash_key_asked_ = now;
  {
    const std::lock_guard lock(mutex_);
    hash_key_asking_ = true;
  }
  desk_->ask_hash_key(known, [this](const Result<RedisHashKey::Found>& key) {
    const std::lock_guard lock(mutex_);
    hash_key_asking_ = false;
    if (key) hash_key_found_ = *key;
  });
}

// True: it is another one than before.
bool Serving::use_hash_key(const RedisHashKey::Found& found) {
  if (found.replaced) {
    log_.warn(desk_->hash_key_name() +
              " on Redis was no key of hashed limits, and is replaced: their buckets begin anew");
  }
  const std::lock_guard lock(mutex_);
  return std::exchange(shared_hash_key_, found.key) != found.key;
}

void Serving::maintain() {
  Time last_snapshot = clock_->time();
  Time last_round = clock_->time();
  evicted_before_ = state_.table->stats().evicted;
  bool in_round = true;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kMaintainEvery, [&] { return stopping_; })) {
    lock.unlock();
    const Now now = clock_->now();
    const auto loaded = reloader_->current();
    if (redis_ != nullptr) watch_redis();
    keeper_->tick(now.wall);
    server_->look_at_certificates(now.time);
    watch_evictions();
    // A whole round takes a while; the next one begins `cleanup` after this one ended.
    if (!in_round && now.time - last_round >= loaded->settings.memory.cleanup) in_round = true;
    if (in_round) {
      if (state_.table->maintain(now)) {
        in_round = false;
        last_round = now.time;
      }
    } else {
      state_.table->maintain(now, 0);
    }
    if (!state_.file.is_open() && server_->is_draining()) hand_over();
    if (!handed_over_ && now.time - last_snapshot >= loaded->settings.state.every) {
      save_snapshot();
      last_snapshot = now.time;
    }
    lock.lock();
  }
  // Blocks that the last requests caused are logged too.
  keeper_->tick(clock_->wall());
}

}  // namespace weir::cli
