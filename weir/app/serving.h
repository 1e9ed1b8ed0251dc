// The life of a server, from configuration to shutdown: run() builds it top to bottom, in reading order. Besides the
// event loops it has two threads: one waits for signals and changed files, and reloads; one maintains the table.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "weir/admin/admin_shared.h"
#include "weir/admin/background_tasks.h"
#include "weir/app/endpoints.h"
#include "weir/app/redis_admin.h"
#include "weir/app/redis_stores.h"
#include "weir/base/clock.h"
#include "weir/base/log.h"
#include "weir/cli/command.h"
#include "weir/cli/configuration.h"
#include "weir/cli/output.h"
#include "weir/config/parse.h"
#include "weir/external/services.h"
#include "weir/known/known_file.h"
#include "weir/known/known_keeper.h"
#include "weir/net/resolve.h"
#include "weir/net/socket.h"
#include "weir/net/watched_files.h"
#include "weir/observe/metrics.h"
#include "weir/protocol/http/health.h"
#include "weir/server/denial_watch.h"
#include "weir/server/reload.h"
#include "weir/server/server.h"
#include "weir/store/bucket_scan.h"
#include "weir/store/memory/state.h"
#include "weir/store/memory/state_lock.h"

namespace weir::app {

class Serving {
 public:
  Serving(cli::ServerStart start, cli::Console& console);

  // Serves until a signal stops it.
  cli::Exit run();

 private:
  cli::Exit start();
  void close_state();
  Result<void> lock_state(const config::Settings& settings);
  void hand_over();
  Result<void> open_table(const config::Settings& settings);
  Result<void> open_redis(const config::Settings& settings);
  std::unique_ptr<Store> make_store(Loop& loop);
  void watch_redis();
  bool use_hash_key(const RedisHashKey::Found& found);
  Result<void> open_known(const config::State& state);
  Result<void> check_files(const config::Loaded& loaded);
  Result<void> open_services(const config::Loaded& loaded);
  Result<std::shared_ptr<const TlsClient>> tls_of(const LimitsService& service);
  std::unique_ptr<external::LoopServices> make_services(Loop& loop, ServiceMetrics& metrics);
  std::string hash_key();
  config::Outcome load(const std::vector<config::Amendment>& amendments);
  void apply(const config::Loaded& now);
  void warn_of_orphans(const Policy& policy);
  Result<void> start_server(std::vector<Endpoint> endpoints);
  void announce();
  std::shared_ptr<admin::AdminShared> admin_shared(Loop& loop);
  Gauges gauges() const;
  void control();
  void watch_files();
  // How far a shutdown has come.
  struct Ending {
    enum class Stage : unsigned char { not_told, delayed, draining };
    Stage stage = Stage::not_told;
    std::chrono::steady_clock::time_point drain_at{};  // while delayed
  };
  void take_signal(Ending& ending);
  void drain(Ending& ending);
  void watch_evictions();
  void maintain();
  void save_snapshot();

  config::Checked checked_;  // until the reloader has it
  std::string path_;
  cli::Flags flags_;
  cli::Console& console_;
  Log log_;

  StateLock lock_;            // of the snapshot and of what is known; none without state files
  bool handed_over_ = false;  // the state is released; while serving only maintain() touches it
  OpenState state_;           // with `store: redis`, of the buckets that inMemoryFallback needs
  std::unique_ptr<BootClock> clock_;
  std::vector<std::unique_ptr<BucketScan>>
      bucket_scans_;                    // of Redis one per admin listener and loop; of memory one for all
  std::unique_ptr<RedisStores> redis_;  // null: buckets live in memory
  Time started_{};
  std::atomic<Time> last_snapshot_{};  // that was written, or the start
  std::atomic<std::uint64_t> snapshot_failures_{0};
  std::uint64_t evicted_before_ = 0;  // by earlier processes on the same live file; only maintain() uses these two
  bool eviction_logged_ = false;
  std::unique_ptr<KnownFile> known_file_;  // none without state files
  std::unique_ptr<KnownKeeper> keeper_;
  std::unique_ptr<DenialWatch> watch_;
  std::size_t orphans_ =
      0;  // adjustments and access entries that the log reported as matching no one; by one reload at a time
  std::unique_ptr<RedisAdmin> redis_admin_;        // null: buckets live in memory
  std::unique_ptr<RedisStores> cache_redis_;       // of `cache_redis`; null: none, or no limit has a service
  std::unique_ptr<RedisAdmin> cache_redis_admin_;  // the same
  Resolver service_resolver_;
  std::unique_ptr<external::Services> services_;
  std::unique_ptr<Reloader> reloader_;
  Events events_;
  admin::LiveNumbers live_;
  std::unique_ptr<admin::BackgroundTasks> background_tasks_;
  std::shared_ptr<JwtCounts> jwt_counts_;
  Health health_;
  ServerServices around_;
  ProxyServices proxy_;
  std::size_t connections_max_ = 0;  // as many as the descriptor limit allows
  bool takes_over_ = false;          // another process had the state
  std::unique_ptr<Server> server_;

  Socket signals_;  // a signalfd
  Socket wakeup_;   // an eventfd: something for the control thread to look at
  std::unique_ptr<WatchedFiles> watched_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  bool stopping_ = false;
  std::optional<std::vector<SeenFile>> read_;          // by the last load, if not watched yet
  std::string shared_hash_key_;                        // of all servers on one Redis; empty: not known
  std::optional<RedisHashKey::Found> hash_key_found_;  // to be used by maintain()
  bool hash_key_asking_ = false;
  Time hash_key_asked_{};     // when Redis was last asked for it; while serving only maintain() touches it
  bool redis_was_up_ = true;  // only maintain() touches it
};

cli::Exit run_server(cli::ServerStart start, cli::Console& console);

}  // namespace weir::app
