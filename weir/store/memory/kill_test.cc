// Kills a process at random moments, a hundred times. Each time it restarts with every spend that it acknowledged.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "weir/base/clock.h"
#include "weir/store/memory/state_scratch.h"

namespace weir::kill_test {
namespace {

using namespace std::chrono_literals;

constexpr int kRounds = 100;
constexpr std::size_t kKeys = 20'000;
// No token is refilled while the test runs, so a bucket counts its spends.
constexpr Limit kCounter = Limit::per_day(1).with_burst(30'000);
// For keys that are used once and cleaned away, so that groups are rebuilt all the time.
constexpr Limit kBrief = Limit::per(1, 1ms);

std::string key_text(std::size_t i) {
  return "client-" + std::to_string(i);
}

// Shared with the child, and outlives it: the spends that it was given, and those that it acknowledged.
struct Ledger {
  std::atomic<std::uint32_t> started[kKeys];
  std::atomic<std::uint32_t> acknowledged[kKeys];
};

Ledger& shared_ledger() {
  void* const raw = mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  WEIR_ASSERT(raw != MAP_FAILED);
  return *static_cast<Ledger*>(raw);
}

void spend_for_ever(Table& table, const Clock& clock, Ledger& ledger, std::size_t keys, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::uint64_t n = 0;; ++n) {
    const std::size_t i = random() % keys;
    const std::string text = key_text(i);
    ledger.started[i].fetch_add(1);
    const Decision decision = table.spend(table.hash(Key{text}), Key{text}, kCounter, 1, clock.now().time);
    if (decision.allowed) ledger.acknowledged[i].fetch_add(1);
    if (n % 2 != 0) continue;
    const std::string stranger = "stranger-" + std::to_string(seed) + "-" + std::to_string(n);
    table.spend(table.hash(Key{stranger}), Key{stranger}, kBrief, 1, clock.now().time);
  }
}

// The child: serves until it is killed.
[[noreturn]] void serve(const StateOptions& options, Ledger& ledger, int round) {
  auto opened = open_state(options);
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().detail.c_str());
    _exit(1);
  }
  const BootClock clock(opened->boot_offset);
  Table& table = *opened->table;
  const std::size_t keys = kKeys / kRounds * static_cast<std::size_t>(round + 1);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back(
        [&, t] { spend_for_ever(table, clock, ledger, keys, static_cast<std::uint64_t>(round) * 2 + t); });
  }
  for (;;) table.maintain(clock.now(), 4);
}

// Every bucket has at least the acknowledged spends and at most the started ones.
void check(const OpenState& state, Ledger& ledger, int round) {
  const BootClock clock(state.boot_offset);
  const Table& table = *state.table;
  for (std::size_t i = 0; i < kKeys; ++i) {
    const std::string text = key_text(i);
    const Decision decision = const_cast<Table&>(table).peek(table.hash(Key{text}), kCounter, 0, clock.now().time);
    const auto spent = static_cast<std::uint32_t>(decision.burst - decision.remaining);
    ASSERT_GE(spent, ledger.acknowledged[i].load()) << text << " forgot a spend in round " << round;
    ASSERT_LE(spent, ledger.started[i].load()) << text << " invented a spend in round " << round;
    ledger.started[i] = ledger.acknowledged[i] = spent;
  }
}

void check_names(const OpenState& state) {
  std::unordered_set<std::string> names;
  for (std::size_t g = 0; g < state.table->groups(); ++g) {
    state.table->visit(g, [&](const Table::Bucket& bucket) {
      EXPECT_EQ(bucket.h, state.table->hash(Key{bucket.name}));
      EXPECT_TRUE(names.emplace(bucket.name).second) << bucket.name << " is there twice";
    });
  }
}

TEST(Kill, AHundredTimesAtRandomLosesNoAcknowledgedSpend) {
  Scratch scratch;
  // Room for all one-time keys of a second, because a bucket is forgotten only a second after it is full.
  const StateOptions options{scratch.path("live"), "", {.buckets_max = 4'000'000, .names = true, .huge_pages = false}};
  Ledger& ledger = shared_ledger();
  std::mt19937_64 random(std::random_device{}());
  std::uint64_t unfinished_rounds = 0;
  std::uint64_t evicted = 0;
  for (int round = 0; round < kRounds && !HasFatalFailure(); ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) serve(options, ledger, round);
    // From before it has opened its state to well into its work.
    std::this_thread::sleep_for(std::chrono::microseconds{random() % 100'000});
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "the child ended by itself: " << status;
    const auto opened = open_state(options);
    ASSERT_TRUE(opened) << opened.error().detail;
    ASSERT_FALSE(opened->forgetful) << opened->report.front();
    if (opened->origin == OpenState::Origin::recovered)
      unfinished_rounds += opened->report.front().find(" 0 unfinished") == std::string::npos ? 1 : 0;
    evicted = opened->table->stats().evicted;
    check(*opened, ledger, round);
    if (round % 10 == 9) check_names(*opened);
  }
  std::uint64_t spends = 0;
  for (const auto& acknowledged : ledger.acknowledged) spends += acknowledged.load();
  std::printf("%llu spends in %d lives; %llu of them ended in the middle of a change\n",
              static_cast<unsigned long long>(spends), kRounds, static_cast<unsigned long long>(unfinished_rounds));
  EXPECT_GT(spends, 1000u);
  EXPECT_EQ(evicted, 0u);
  munmap(&ledger, sizeof ledger);
}

}  // namespace
}  // namespace weir::kill_test
