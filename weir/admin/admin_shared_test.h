// The objects that the admin API needs, for its tests and its fuzzer.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weir/admin/admin_shared.h"
#include "weir/base/assert.h"
#include "weir/config/parse.h"

namespace weir::admin {

inline constexpr std::string_view kTestPolicy = R"(
limits:
  per-ip: {key: ip, burst: 10, count: 10, period: 1h}
  per-apikey: {key: apikey, burst: 10, count: 10, period: 1h}
  orders: {burst: 5, count: 5, period: 1h, number: 6}
  monthly: {quota: 100/month}
overrides:
  orders:vip: {burst: 50, count: 50, period: 1h}
  orders:bad: {blocked: true}
  orders:friend: {unlimited: true}
)";

inline config::Outcome load_test_policy(std::string_view more, const std::vector<config::Amendment>& amendments) {
  config::Options options;
  options.amendments = amendments;
  options.made_hash_key = "key";
  return config::parse(std::string(kTestPolicy) + std::string(more), "weir.yaml", options);
}

// `more` is appended to kTestPolicy.
class AdminFixture {
 public:
  explicit AdminFixture(BucketScan& bucket_scan, std::string_view more = {}, KnownArchive* archive = nullptr)
      : keeper_(archive),
        reloader_(std::get<config::Loaded>(load_test_policy(more, {})),
                  {[text = std::string(more)](const auto& amendments) { return load_test_policy(text, amendments); },
                   [](LogLevel, std::string_view) {}, clock_}),
        shared_{reloader_,
                keeper_,
                bucket_scan,
                events_,
                live_,
                background_tasks_,
                health_,
                clock_,
                [this] { return std::vector<const LoopMetrics*>{&metrics}; },
                [this] {
                  Gauges gauges;
                  gauges.uptime = clock_.now().time - Time{};
                  return gauges;
                },
                [this](const AuditEntry& entry) { log.push_back(audit_line(entry)); }} {
    health_.started = true;
    health_.ready = true;
  }

  AdminShared& shared() { return shared_; }
  KnownKeeper& keeper() { return keeper_; }
  Reloader& reloader() { return reloader_; }
  Events& events() { return events_; }
  ManualClock& clock() { return clock_; }

  LoopMetrics metrics{&events_};
  std::vector<std::string> log;

 private:
  Events events_;
  LiveNumbers live_;
  Health health_;
  ManualClock clock_{Time{std::chrono::seconds{10}}, Wall{std::chrono::seconds{1'700'000'000}}};
  KnownKeeper keeper_{nullptr, {}, &clock_};
  Reloader reloader_;
  BackgroundTasks background_tasks_;  // destroyed before the members that its thread uses
  AdminShared shared_;
};

}  // namespace weir::admin
