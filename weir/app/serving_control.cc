// What runs beside the event loops: the control thread (signals, changed files) and the maintenance thread.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <utility>
#include <vector>

#include "weir/app/serving.h"
#include "weir/app/systemd.h"
#include "weir/base/text.h"
#include "weir/store/memory/snapshot.h"

namespace weir::app {
namespace {

// How often memory is prepared and released, and expired buckets are collected.
constexpr std::chrono::milliseconds kMaintainEvery{50};
constexpr std::chrono::seconds kHashKeyEvery{30};

// A reload waits until the files have not changed for this long, but no longer than the second value.
constexpr std::chrono::milliseconds kSettleFor{100};
constexpr std::chrono::milliseconds kSettleAtMost{2000};

}  // namespace

// Waits for signals and changed files. Editors and deployments touch several files, or one in several steps, so it
// reloads when nothing has changed for a moment, or after a bound.
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
      // A file may have changed back, or another reload may have read it.
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

// Watches the files of the last load instead of those of the load before.
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
    proxy_.reopen();
    reloader_->reload();
    return;
  }
  if (ending.stage != Ending::Stage::not_told) {
    log_.warn("second signal: ending without waiting for the drain");
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

// Logs once that the full table evicts buckets that are not full: those clients get tokens back early.
void Serving::watch_evictions() {
  const std::uint64_t evicted = state_.table->stats().evicted;
  if (eviction_logged_ || evicted == evicted_before_) return;
  eviction_logged_ = true;
  log_.warn("table full, evicting buckets that are not full yet: evicted=" + std::to_string(evicted - evicted_before_) +
            " buckets=" + std::to_string(state_.table->stats().buckets) +
            (redis_ == nullptr ? "; raise memory.max_buckets" : "; raise redis.fallback_buckets"));
}

// Asks Redis for the shared key of hashed limits when Redis comes back, and from time to time: if Redis lost its data,
// it gets the key again, or all servers adopt a new one. Does not block: a later round uses the answer.
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
  const std::shared_ptr<const Policy> policy = reloader_->policy();
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
  redis_admin_->ask_hash_key(known, [this](const Result<RedisHashKey::Found>& key) {
    const std::lock_guard lock(mutex_);
    hash_key_asking_ = false;
    if (key) hash_key_found_ = *key;
  });
}

// Returns true if the key has changed.
bool Serving::use_hash_key(const RedisHashKey::Found& found) {
  if (found.replaced) {
    log_.warn(redis_admin_->hash_key_name() +
              " on Redis is not a valid hash key and was replaced; buckets of hashed limits start over");
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
    server_->reload_changed_certificates(now.time);
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

}  // namespace weir::app
