// Applies a new configuration to the running server: all of it or nothing. If it is invalid, nothing changes and the
// Report says why. Settings that need a restart (listen addresses, the store) keep their value and are listed.
//
// Thread-safe. Reloads wait for each other; readers never wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/log.h"
#include "weir/base/published.h"
#include "weir/base/time.h"
#include "weir/config/diff.h"
#include "weir/config/parse.h"
#include "weir/policy/policy.h"

namespace weir {

class Reloader {
 public:
  struct Options {
    // Reads the configuration: its files, the environment, and these on top. Called by one thread at a time.
    std::function<config::Outcome(const std::vector<config::Amendment>& amendments)> load;
    // Called with each line for the operator.
    std::function<void(LogLevel, std::string_view)> log;
    // The buckets' clock, for since(). Must outlive the reloader.
    const Clock& clock;
  };
  // `first` is in force from the start.
  Reloader(config::Loaded first, Options options);

  // The outcome of one attempt.
  struct Report {
    config::Problems problems;               // why nothing changed; empty: the new configuration is in force
    std::vector<std::string> needs_restart;  // paths of settings that were changed and keep their old value
    std::vector<config::Change> changes;     // what differs from the configuration before
    bool ok() const noexcept { return problems.empty(); }
  };
  // Reads everything again. Success discards the changes of the admin API.
  Report reload();
  // Applies a change of the admin API on top of its earlier ones, until the next reload or restart. A whole policy
  // replaces the earlier ones. Changed values have the origin `api`.
  Report amend(config::Amendment amendment);

  // Loads again, keeping the changes of the admin API, to apply what load() adds by itself: a new key of hashed limits.
  // Not counted as a reload.
  Report renew();

  // For the loops: everything in force, replaced as a whole by each change. Settings that need a restart have the value
  // they started with.
  const Published<config::Loaded>& published() const noexcept { return current_; }
  std::shared_ptr<const config::Loaded> current() const { return current_.current(); }
  std::shared_ptr<const Policy> policy() const { return current()->policy; }
  // When the current configuration was published.
  Time since() const { return current_.since(); }
  // How many configurations were published after the first.
  std::uint64_t version() const noexcept { return current_.version(); }

  // Called after each change with the configuration in force, for parts of the process that keep a copy of a setting.
  // Calls do not overlap.
  void on_change(std::function<void(const config::Loaded&)> callback);

  std::uint64_t reloads_ok() const noexcept { return ok_.load(); }
  std::uint64_t reloads_failed() const noexcept { return failed_.load(); }
  // When reload() was last tried, or the start, and whether it succeeded.
  Wall last_reload() const noexcept { return last_reload_.load(); }
  bool last_reload_ok() const noexcept { return last_reload_ok_.load(); }

 private:
  Report put_in_force(config::Outcome outcome);
  void log_changes(const std::vector<config::Change>& changes) const;

  const Options options_;
  std::mutex mutex_;                           // one change at a time
  std::vector<config::Amendment> amendments_;  // in force
  Published<config::Loaded> current_;
  std::vector<std::function<void(const config::Loaded&)>> on_change_;
  std::atomic<std::uint64_t> ok_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<Wall> last_reload_;
  std::atomic<bool> last_reload_ok_{true};
};

}  // namespace weir
