#include "weir/simulate/log_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <variant>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/text.h"
#include "weir/config/parse.h"
#include "weir/server/pipeline.h"
#include "weir/simulate/json_log.h"
#include "weir/store/memory/memory_store.h"
#include "weir/wire/json.h"

namespace weir::simulate::log_replay_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

config::Loaded load(const std::string& text) {
  config::Options options;
  options.made_hash_key = "a key";
  config::Outcome outcome = config::parse(text, "test.yaml", options);
  if (const auto* const problems = std::get_if<config::Problems>(&outcome)) {
    ADD_FAILURE() << config::text(*problems);
    return {};
  }
  return std::get<config::Loaded>(outcome);
}

// A server without sockets, whose clock the test sets. Writes the same access log as the real one.
class Server : private Asker {
 public:
  explicit Server(const std::string& policy) : configuration_(std::make_shared<const config::Loaded>(load(policy))) {}

  // Returns the decision; adds a line to the log.
  Verdict serve(const std::vector<Attribute>& attributes, std::string_view client, std::string_view path) {
    keeper_.tick(clock_.now().wall);
    pipeline_.refresh();
    log_.clear();
    JsonWriter json(log_);
    json.begin_object().key("time").string(stamp()).key("client").string(client).key("method").string("POST");
    json.key("host").string("example.com").key("path").string(path);
    writer_ = &json;
    pipeline_.ask(0, {RequestFacts{attributes}}, *this, clock_.now());
    pipeline_.flush(clock_.now());
    json.end_object();
    lines.push_back(log_);
    return last_;
  }
  void advance(Duration by) { clock_.advance(by); }

  std::vector<std::string> lines;

 private:
  // print_instant() prints milliseconds, the log has microseconds.
  std::string stamp() const {
    const auto since = std::chrono::floor<std::chrono::microseconds>(clock_.now().wall.time_since_epoch()).count();
    const std::string fraction = std::to_string(1'000'000 + since % 1'000'000).substr(1);
    return print_instant(Wall{std::chrono::seconds{since / 1'000'000}}).substr(0, 19) + "." + fraction + "Z";
  }

  void answered(std::uint64_t, const Result<Answer>& answer) override {
    ASSERT_TRUE(answer) << answer.error().detail;
    last_ = answer->verdict;
    writer_->key("route").string(answer->route).key("decision").string(last_.allowed ? "allowed" : "denied");
    writer_->key("limits").begin_array();
    for (std::size_t i = 0; i < last_.all.size(); ++i) {
      if (answer->labels[i].limit.empty()) continue;  // an access list decided
      writer_->begin_object().key("limit").string(answer->labels[i].limit);
      writer_->key("id").string(answer->labels[i].id).end_object();
    }
    writer_->end_array();
  }

  ManualClock clock_{Time{10s}, Wall{std::chrono::sys_days{std::chrono::year{2026} / 11 / 18} + 8h + 59min}};
  std::unique_ptr<Table> table_ = std::move(*Table::create({.buckets_max = 10000, .huge_pages = false}, HashKey{1, 2}));
  MemoryStore store_{*table_, clock_};
  LoopMetrics metrics_;
  Published<config::Loaded> configuration_;
  KnownKeeper keeper_;
  DenialWatch watch_{keeper_};
  Pipeline pipeline_{configuration_, keeper_.known(), store_, metrics_, clock_, &watch_};
  std::string log_;
  JsonWriter* writer_ = nullptr;
  Verdict last_;
};

// Replays lines of JSON.
class LogReplays {
 public:
  LogReplays(const std::string& policy, const std::vector<std::string>& lines, const ReplayOptions& options = {}) {
    Sight sight;
    LogLine line;
    for (const std::string& text : lines) {
      EXPECT_TRUE(reader_.read(text, line));
      for (std::size_t i = 0; i < reader_.fields().size(); ++i) {
        if (!line.values[i].empty()) sight.fields.insert(reader_.fields()[i]);
      }
      sight.is_own |= !line.counted.empty();
      for (const NamedCharge& counted : line.counted) sight.counted.emplace(counted.limit);
    }
    replay_.emplace("test.yaml", load(policy).policy, sight, options);
  }

  LogReplay::Outcome ask(const std::string& text) {
    LogLine line;
    EXPECT_TRUE(reader_.read(text, line));
    std::vector<Attribute> attributes;
    for (std::size_t i = 0; i < reader_.fields().size(); ++i) {
      if (!line.values[i].empty()) attributes.push_back({reader_.fields()[i], line.values[i]});
    }
    return replay_->ask({attributes, line.route, line.counted}, line.time);
  }
  LogReplay& replay() { return *replay_; }

 private:
  JsonLog reader_{ReaderOptions{}};
  std::optional<LogReplay> replay_;
};

constexpr const char* kEverything = R"(
limits:
  session: {key: cookie:idx, burst: 6, count: 60, period: 1m, hashed: true, per_route: true}
  tenant: {key: [header:x-tenant-id, path:1], burst: 12, count: 2, period: 1s, missing: reject}
  per-ip:
    key: ip
    burst: 8
    count: 1
    period: 1s
    schedule: [{days: mon-fri, hours: "09:00-18:00", count: 3, burst: 10}]
  plan: {key: header:x-tenant-id, quota: 40/hour}
  both: {key: header:x-client, rate: 5/s, quota: 100/day}
  watched: {key: ip, rate: 1/s, mode: shadow}
routes:
  - {name: beta, match: {path: /signin, headers: {x-beta: "1"}}, limits: [session, per-ip]}
  - {name: signin, match: {path: /signin, methods: [POST]}, limits: [session, tenant, per-ip, both], charge: in-order}
  - {name: rest, match: {path: "/**"}, limits: [tenant, plan, per-ip, watched]}
overrides:
  per-ip:10.0.0.3: {burst: 2, count: 1, period: 1s}
  tenant:t2: {burst: 3, count: 1, period: 1s}
access:
  deny: [{ip: 10.0.0.9, reason: abuse}]
  block: {after: 15, within: 10s, for: 20s}
)";

TEST(LogReplay, DecidesAsAServerThatIsAskedTheSame) {
  Server server(kEverything);
  std::mt19937 random(7);
  const auto any = [&](int n) { return std::to_string(random() % static_cast<unsigned>(n)); };
  std::vector<Verdict> decided;
  for (int i = 0; i < 4000; ++i) {
    server.advance(std::chrono::microseconds{1 + random() % 120'000});
    const std::string ip = "10.0.0." + any(10);
    const std::string path = random() % 2 == 0 ? "/signin" : "/" + any(3) + "/x";
    const std::string tenant = "t" + any(4);
    const std::string cookie = "idx=s" + any(12);
    const std::string key = "a-long-api-key-" + any(5);
    std::vector<Attribute> request{{"ip", ip},
                                   {"path", path},
                                   {"method", "POST"},
                                   {"host", "example.com"},
                                   {"header:x-tenant-id", tenant},
                                   {"header:cookie", cookie},
                                   {"header:x-client", key}};
    if (random() % 4 == 0) request.push_back({"header:x-beta", "1"});
    decided.push_back(server.serve(request, ip, path));
  }
  LogReplays replays(kEverything, server.lines);
  std::size_t denied = 0;
  for (std::size_t i = 0; i < decided.size(); ++i) {
    const LogReplay::Outcome outcome = replays.ask(server.lines[i]);
    ASSERT_EQ(outcome.kind, LogReplay::Outcome::Kind::decided) << server.lines[i];
    ASSERT_EQ(outcome.allowed, decided[i].allowed) << i << ": " << server.lines[i];
    denied += outcome.allowed ? 0 : 1;
    for (std::size_t n = 0; n < outcome.verdict->all.size(); ++n) {
      ASSERT_EQ(outcome.verdict->all[n], decided[i].all[n]) << i << " " << n << ": " << server.lines[i];
    }
  }
  const PolicyReport report = replays.replay().finish();
  EXPECT_EQ(report.denied, denied);
  EXPECT_GT(denied, 500u);
  EXPECT_LT(denied, 3500u);
  EXPECT_GT(report.blocks, 0u) << "the automatic blocks are the server's too";
  EXPECT_GT(report.deny_listed, 0u);
  for (const LimitReport& limit : report.limits) {
    EXPECT_GT(limit.denied + limit.shadow_denied, 0u) << limit.name << " never denied: the test shows nothing about it";
  }
}

std::string line(double t, const std::string& ip, const std::string& path = "/") {
  return "{\"time\":" + std::to_string(t) + ",\"client\":\"" + ip + "\",\"path\":\"" + path + "\"}";
}

TEST(LogReplay, NamesWhatTheLogLacksAndJudgesTheRest) {
  const std::vector<std::string> lines{line(1, "10.0.0.1"), line(1, "10.0.0.1"), line(1, "10.0.0.1", "/x")};
  LogReplays replays(R"(
limits:
  per-ip: {key: ip, rate: 1/s}
  tenant: {key: [header:x-tenant-id, ip], rate: 1/s, missing: reject}
routes:
  - {name: beta, match: {path: /x, headers: {x-beta: "1"}}, limits: [per-ip]}
  - {name: rest, match: {path: "/**"}, limits: [per-ip, tenant]}
access: {deny: [{apikey: a-stolen-key}]}
)",
                     lines);
  std::vector<std::string> sentences;
  for (const Lack& lack : replays.replay().lacks()) sentences.push_back(sentence(lack));
  EXPECT_THAT(sentences, ElementsAre("cannot judge limit tenant: the log has no header:x-tenant-id",
                                     "cannot judge requests that may take route beta: the log has no header:x-beta",
                                     "cannot apply the access entries by API key: the log has no apikey"));
  EXPECT_TRUE(replays.ask(lines[0]).allowed);
  EXPECT_FALSE(replays.ask(lines[1]).allowed);
  EXPECT_EQ(replays.ask(lines[2]).kind, LogReplay::Outcome::Kind::unjudged);
  const PolicyReport report = replays.replay().finish();
  EXPECT_EQ(report.unjudged, 1u);
  EXPECT_TRUE(report.limits[0].judged);
  EXPECT_EQ(report.limits[0].denied, 1u);
  EXPECT_FALSE(report.limits[1].judged);
}

TEST(LogReplay, SumsTheClientsThatHaveNoPlace) {
  std::vector<std::string> lines;
  for (int i = 0; i < 50; ++i) lines.push_back(line(1 + i * 10, "10.0.0." + std::to_string(i)));
  ReplayOptions options;
  options.clients_max = 5;
  LogReplays replays("limits: {per-ip: {key: ip, rate: 1/s}}", lines, options);
  for (const std::string& text : lines) replays.ask(text);
  const PolicyReport report = replays.replay().finish();
  EXPECT_EQ(report.limits[0].clients, 50u);
  EXPECT_EQ(report.limits[0].rest.clients, 45u);
  EXPECT_EQ(report.limits[0].rest.counts.allowed, 45u);
  EXPECT_EQ(report.forgotten, 0u) << "their buckets were full again";
}

}  // namespace
}  // namespace weir::simulate::log_replay_test
