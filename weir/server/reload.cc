#include "weir/server/reload.h"

#include <utility>
#include <variant>

#include "weir/base/bounds.h"
#include "weir/base/clock.h"
#include "weir/config/diff.h"

namespace weir {
namespace {

// Settings that need a restart keep their running value, in `settings` and in `origins`.
void keep_what_cannot_change(const config::Loaded& running, config::Loaded& next) {
  config::keep_fixed(running.settings, next.settings);
  std::vector<config::Setting> origins;
  for (const config::Setting& setting : running.origins) {
    if (!setting.is_live) origins.push_back(setting);
  }
  for (config::Setting& setting : next.origins) {
    if (setting.is_live) origins.push_back(std::move(setting));
  }
  next.origins = std::move(origins);
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

Reloader::Reloader(config::Loaded first, Options options)
    : options_(std::move(options)),
      current_(std::make_shared<const config::Loaded>(std::move(first)), options_.clock.time()),
      last_reload_(BootClock::wall()) {}

void Reloader::on_change(std::function<void(const config::Loaded&)> callback) {
  const std::lock_guard lock(mutex_);
  on_change_.push_back(std::move(callback));
}

Reloader::Report Reloader::reload() {
  const std::lock_guard lock(mutex_);
  Report report = put_in_force(options_.load({}));
  last_reload_ = BootClock::wall();
  last_reload_ok_ = report.ok();
  if (!report.ok()) {
    ++failed_;
    for (const config::Problem& problem : report.problems) options_.log(LogLevel::error, problem.text());
    options_.log(LogLevel::error, "reload failed; keeping the running configuration");
    return report;
  }
  ++ok_;
  amendments_.clear();
  log_changes(report.changes);
  options_.log(LogLevel::info, "reloaded");
  return report;
}

Reloader::Report Reloader::amend(config::Amendment amendment) {
  const std::lock_guard lock(mutex_);
  std::vector<config::Amendment> all;
  if (amendment.kind == config::Amendment::Kind::merge) all = amendments_;
  if (all.size() >= bounds::amendments_max) {
    return {{{"api", 0, 0,
              "more than " + std::to_string(bounds::amendments_max) +
                  " changes since the last reload: send a whole policy, or change the file and reload"}},
            {},
            {}};
  }
  all.push_back(std::move(amendment));
  Report report = put_in_force(options_.load(all));
  if (!report.ok()) return report;
  amendments_ = std::move(all);
  options_.log(LogLevel::info, "changed by the admin API: in force until the next reload or restart");
  log_changes(report.changes);
  return report;
}

// One line per change, up to a bound: a reload may change a million overrides.
void Reloader::log_changes(const std::vector<config::Change>& changes) const {
  constexpr std::size_t kNamed = 50;
  for (std::size_t i = 0; i < changes.size() && i < kNamed; ++i) {
    options_.log(LogLevel::info, "reload " + changes[i].text());
  }
  if (changes.size() > kNamed) {
    options_.log(LogLevel::info, "reload made more changes: count=" + std::to_string(changes.size() - kNamed));
  }
}

Reloader::Report Reloader::renew() {
  const std::lock_guard lock(mutex_);
  return put_in_force(options_.load(amendments_));
}

Reloader::Report Reloader::put_in_force(config::Outcome outcome) {
  if (auto* const problems = std::get_if<config::Problems>(&outcome)) return {std::move(*problems), {}, {}};
  Report report;
  auto next = std::make_shared<config::Loaded>(std::move(std::get<config::Loaded>(outcome)));
  const std::shared_ptr<const config::Loaded> running = current();
  for (const config::Change& change : config::diff_settings(*running, *next)) {
    if (!change.live) report.needs_restart.push_back(change.path);
  }
  keep_what_cannot_change(*running, *next);
  current_.publish(next, options_.clock.time());
  for (const auto& callback : on_change_) callback(*next);
  report.changes = config::diff(*running, *next);
  for (const std::string& warning : next->warnings) options_.log(LogLevel::warn, warning);
  if (!report.needs_restart.empty()) {
    options_.log(LogLevel::warn, "changed settings that need a restart: " + listed(report.needs_restart));
  }
  return report;
}

}  // namespace weir
