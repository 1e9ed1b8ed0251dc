#include "weir/server/reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/config/describe.h"

namespace weir::reload_test {
namespace {

using config::Amendment;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// A configuration file of one string, and what the operator was told.
class ReloaderTest : public testing::Test {
 protected:
  config::Outcome load(const std::vector<Amendment>& amendments) {
    config::Options options;
    options.amendments = amendments;
    return config::parse(file_, "weir.yaml", options);
  }

  void start() {
    reloader_ = std::make_unique<Reloader>(
        std::get<config::Loaded>(load({})),
        Reloader::Options{[this](const auto& amendments) { return load(amendments); },
                          [this](LogLevel level, std::string_view line) {
                            log_.push_back(std::string(print(level)) + " " + std::string(line));
                          },
                          clock_});
  }

  std::string numbers(std::string_view name = "a") { return config::print(*reloader_->policy()->find(name)->numbers); }

  ManualClock clock_{Time{std::chrono::seconds{10}}};
  std::string file_ = "limits: {a: {rate: 1/s}, b: {rate: 1/s}}";
  std::vector<std::string> log_;
  std::unique_ptr<Reloader> reloader_;
};

TEST_F(ReloaderTest, PutsAChangedFileInForce) {
  start();
  EXPECT_EQ(numbers(), "1 per 1s, burst 1");
  file_ = "limits: {a: {rate: 2/s}, b: {rate: 2/s}}";
  EXPECT_TRUE(reloader_->reload().ok());
  EXPECT_EQ(numbers(), "2 per 1s, burst 2");
  EXPECT_EQ(reloader_->reloads_ok(), 1u);
  EXPECT_EQ(reloader_->version(), 1u);
  EXPECT_EQ(log_.back(), "info reloaded");
}

// The trap: limits that are fine, and something else in the file that is not.
TEST_F(ReloaderTest, AppliesNothingOfAFileThatIsHalfRight) {
  start();
  const auto before = reloader_->policy();
  file_ = "limits: {a: {rate: 9/s}, b: {burst: 0}}\nlog: {level: loud}\nheaders: {reset: delta}";
  const Reloader::Report report = reloader_->reload();
  EXPECT_EQ(report.problems.size(), 2u);
  EXPECT_EQ(reloader_->policy(), before) << "not even an equal one";
  EXPECT_EQ(reloader_->current()->settings.headers.reset, "epoch");
  EXPECT_EQ(reloader_->version(), 0u);
  EXPECT_EQ(reloader_->reloads_failed(), 1u);
  EXPECT_EQ(reloader_->reloads_ok(), 0u);
  EXPECT_FALSE(reloader_->last_reload_ok());
  EXPECT_GT(reloader_->last_reload(), Wall{});
  ASSERT_EQ(log_.size(), 3u) << "every problem, and that nothing changed";
  EXPECT_THAT(log_, Contains(HasSubstr("weir.yaml:1:37: burst 0 must be at least 1")));
  EXPECT_EQ(log_.back(), "error reload failed; keeping the running configuration");
}

TEST_F(ReloaderTest, NamesWhatOnlyARestartChangesAndKeepsItsValue) {
  start();
  file_ =
      "listen: [{address: \"127.0.0.1:1\", speak: http}]\nthreads: 3\nstore: redis\n"
      "memory: {max_buckets: 7, cleanup: 1s}\nstate: {live: /a, every: 3s}\nfailure_code: 503\n"
      "limits: {a: {rate: 2/s}}";
  const Reloader::Report report = reloader_->reload();
  EXPECT_TRUE(report.ok());
  EXPECT_THAT(report.needs_restart,
              testing::IsSupersetOf({"listen[0].address", "memory.max_buckets", "state.live", "store", "threads"}));
  EXPECT_THAT(report.needs_restart, testing::Not(Contains("memory.cleanup")));
  EXPECT_THAT(log_, Contains(testing::AllOf(HasSubstr("changed settings that need a restart"), HasSubstr("store"))));
  const config::Settings settings = reloader_->current()->settings;
  EXPECT_EQ(settings.listen.size(), 3u);
  EXPECT_EQ(settings.threads, 0);
  EXPECT_EQ(settings.store, config::StoreKind::memory);
  EXPECT_EQ(settings.memory.max_buckets, 50'000'000);
  EXPECT_EQ(settings.state.live, "");
  // The rest applies.
  EXPECT_EQ(settings.memory.cleanup, std::chrono::seconds{1});
  EXPECT_EQ(settings.state.every, std::chrono::seconds{3});
  EXPECT_EQ(settings.failure_code, 503);
  EXPECT_EQ(numbers(), "2 per 1s, burst 2");
  // Still not in force the next time, and named again.
  EXPECT_THAT(reloader_->reload().needs_restart, Contains("threads"));
  for (const config::Setting& setting : reloader_->current()->origins) {
    if (setting.path == "threads") {
      EXPECT_EQ(setting.value, "auto");
    }
  }
}

TEST_F(ReloaderTest, AsksForNoRestartWhenOnlyTheSpellingChanges) {
  start();
  file_ +=
      "\nlisten: [{address: 'localhost:8080', speak: [grpc, http]}, {address: '127.0.0.1:6380', speak: resp, "
      "password: ''}, {address: '127.0.0.1:9090', speak: admin}]\nmemory: {max_buckets: 50000000}\nredis: {timeout: "
      "0.25s}";
  EXPECT_THAT(reloader_->reload().needs_restart, ElementsAre());
  EXPECT_THAT(log_, ElementsAre("info reloaded"));
}

TEST_F(ReloaderTest, LogsWhatAReloadChanged) {
  start();
  file_ = "limits: {a: {rate: 9/s}, c: {rate: 3/s}}\nfailure_code: 503";
  EXPECT_TRUE(reloader_->reload().ok());
  EXPECT_EQ(log_.back(), "info reloaded");
  EXPECT_THAT(log_,
              Contains(HasSubstr("info reload changed limit a: 1 per 1s, burst 1; id text -> 9 per 1s, burst 9")));
  EXPECT_THAT(log_, Contains(HasSubstr("info reload added limit c: 3 per 1s, burst 3")));
  EXPECT_THAT(log_, Contains(HasSubstr("info reload changed setting failure_code: 429 -> 503")));
}

TEST_F(ReloaderTest, TellsWhoKeepsACopy) {
  start();
  std::vector<int> codes;
  reloader_->on_change([&](const config::Loaded& now) { codes.push_back(now.settings.failure_code); });
  file_ += "\nfailure_code: 500";
  reloader_->reload();
  file_ += "\nnonsense: 1";
  reloader_->reload();
  EXPECT_THAT(codes, ElementsAre(500));
}

TEST_F(ReloaderTest, KeepsWhatTheApiChangedUntilAReload) {
  start();
  EXPECT_TRUE(reloader_->amend({Amendment::Kind::merge, "{limits: {a: {rate: 5/s}}}"}).ok());
  EXPECT_TRUE(reloader_->amend({Amendment::Kind::merge, "{limits: {b: {rate: 6/s}}}"}).ok());
  EXPECT_EQ(numbers("a"), "5 per 1s, burst 5");
  EXPECT_EQ(numbers("b"), "6 per 1s, burst 6");
  EXPECT_FALSE(reloader_->amend({Amendment::Kind::merge, "{limits: {b: {rate: 0/s}}}"}).ok());
  EXPECT_EQ(numbers("b"), "6 per 1s, burst 6");
  EXPECT_EQ(reloader_->reloads_ok() + reloader_->reloads_failed(), 0u) << "these are no reloads";
  EXPECT_TRUE(reloader_->reload().ok());
  EXPECT_EQ(numbers("a"), "1 per 1s, burst 1");
}

TEST_F(ReloaderTest, RenewsWithWhatTheApiChanged) {
  start();
  EXPECT_TRUE(reloader_->amend({Amendment::Kind::merge, "{limits: {a: {rate: 5/s}}}"}).ok());
  EXPECT_TRUE(reloader_->renew().ok());
  EXPECT_EQ(numbers(), "5 per 1s, burst 5");
  EXPECT_EQ(reloader_->reloads_ok(), 0u);
  file_ = "limits: {a: {rate: 1/s}, b: {rate: 0/s}}";
  EXPECT_FALSE(reloader_->renew().ok());
  EXPECT_EQ(numbers(), "5 per 1s, burst 5");
  EXPECT_EQ(reloader_->reloads_failed(), 0u);
}

TEST_F(ReloaderTest, BoundsWhatTheApiPilesUp) {
  start();
  const Amendment merge{Amendment::Kind::merge, "{limits: {a: {rate: 5/s}}}"};
  for (std::size_t i = 0; i < bounds::amendments_max; ++i) ASSERT_TRUE(reloader_->amend(merge).ok());
  EXPECT_FALSE(reloader_->amend(merge).ok());
  EXPECT_TRUE(reloader_->amend({Amendment::Kind::replace, "limits: {a: {rate: 7/s}}"}).ok());
  EXPECT_TRUE(reloader_->amend({Amendment::Kind::merge, "{limits: {a: {burst: 3}}}"}).ok())
      << "a whole policy makes room";
  EXPECT_EQ(numbers(), "7 per 1s, burst 3");
}

}  // namespace
}  // namespace weir::reload_test
