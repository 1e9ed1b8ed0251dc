#include "weir/store/memory/state.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>

#include "weir/base/clock.h"
#include "weir/store/memory/snapshot.h"
#include "weir/store/memory/state_scratch.h"

namespace weir::state_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using Origin = OpenState::Origin;

// One token is refilled every 10 minutes.
constexpr Limit kSlow = Limit::per_hour(6).with_burst(6);

class State : public ::testing::Test {
 protected:
  Scratch scratch;
  Machine machine;
  StateOptions options{
      scratch.path("live"), scratch.path("snapshot"), {.buckets_max = 1000, .names = true, .huge_pages = false}};

  OpenState open() {
    auto opened = open_state(options, machine.boot);
    if (!opened) ADD_FAILURE() << opened.error().detail;
    return opened ? std::move(*opened) : OpenState{};
  }
  Decision spend(OpenState& state, std::string_view text, Count cost = 1) {
    const Key key{text};
    return state.table->spend(state.table->hash(key), key, kSlow, cost, machine.now(state).time);
  }
  Count remaining(const OpenState& state, std::string_view text) {
    return state.table->peek(state.table->hash(Key{text}), kSlow, 0, machine.now(state).time).remaining;
  }
  void seal(OpenState& state) { ASSERT_TRUE(state.seal(machine.now(state))); }
  static void kill(OpenState& state) { state = OpenState{}; }  // removes the mapping; the file stays as it is
  std::string live() const { return options.live; }
};

TEST_F(State, BeginsWithNothingAndSaysSo) {
  OpenState state = open();
  EXPECT_THAT(state.report, ElementsAre(live() + ": a new state begins, every bucket full"));
  EXPECT_EQ(state.origin, Origin::nothing);
  EXPECT_FALSE(state.forgetful);
  EXPECT_EQ(machine.now(state).time, Time{24h});
  EXPECT_EQ(scratch.files(), std::set<std::string>{"live"});
  struct stat status {};
  ASSERT_EQ(stat(live().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(State, WithoutFilesLivesInThisProcessAlone) {
  options.live = options.snapshot = "";
  OpenState state = open();
  EXPECT_THAT(state.report, ElementsAre("no state file is configured: a restart forgets every bucket"));
  EXPECT_TRUE(spend(state, "a").allowed);
  EXPECT_TRUE(state.seal(machine.now(state)));
  EXPECT_EQ(state.table, nullptr);
}

TEST_F(State, ASealedFileIsTakenWithEveryBucketAndName) {
  OpenState state = open();
  for (int i = 0; i < 300; ++i) spend(state, "client-" + std::to_string(i), i % 6 + 1);
  seal(state);
  kill(state);
  machine.pass(5min);
  state = open();
  EXPECT_THAT(state.report, ElementsAre(live() + ": taken as it was closed, with 300 buckets"));
  EXPECT_EQ(state.origin, Origin::sealed);
  EXPECT_FALSE(state.forgetful);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(remaining(state, "client-" + std::to_string(i)), 6 - (i % 6 + 1)) << i;
  std::set<std::string> names;
  for (std::size_t g = 0; g < state.table->groups(); ++g)
    state.table->visit(g, [&](const Table::Bucket& bucket) { names.emplace(bucket.name); });
  EXPECT_EQ(names.size(), 300u);
  EXPECT_TRUE(names.contains("client-299"));
}

TEST_F(State, TheSealIsBrokenBeforeTheNextProcessServes) {
  OpenState state = open();
  spend(state, "a");
  seal(state);
  kill(state);
  state = open();
  EXPECT_EQ(state.table->header().seal.load(), 0u);
  EXPECT_EQ(spend(state, "a").remaining, 4);
  kill(state);
  state = open();
  EXPECT_THAT(state.report,
              ElementsAre(live() + ": its last process was killed; taken with 1 bucket, 0 unfinished changes undone"));
  EXPECT_EQ(state.origin, Origin::recovered);
  EXPECT_EQ(remaining(state, "a"), 4);
}

TEST_F(State, TimeGoesOnByTheBootsClockWhateverTheWallClockDoes) {
  OpenState state = open();
  const Time before = machine.now(state).time;
  spend(state, "a", 6);
  kill(state);
  machine.boot.uptime += 10min;
  machine.boot.wall -= 24h;
  state = open();
  EXPECT_EQ(machine.now(state).time, before + 10min);
  EXPECT_EQ(remaining(state, "a"), 1);
}

TEST_F(State, ASealedFileOutlivesARebootAndTheTimeBetweenCountsAsRefill) {
  OpenState state = open();
  const Time before = machine.now(state).time;
  spend(state, "a", 6);
  seal(state);
  kill(state);
  machine.reboot(20min);
  state = open();
  EXPECT_EQ(state.origin, Origin::sealed);
  EXPECT_EQ(machine.now(state).time, before + 20min);
  EXPECT_EQ(remaining(state, "a"), 2);
  kill(state);  // the file now belongs to the new boot
  machine.pass(10min);
  state = open();
  EXPECT_EQ(state.origin, Origin::recovered);
  EXPECT_EQ(remaining(state, "a"), 3);
}

TEST_F(State, AWallClockThatWentBackOverARebootCountsAsNoTime) {
  OpenState state = open();
  const Time before = machine.now(state).time;
  spend(state, "a", 6);
  seal(state);
  kill(state);
  machine.reboot(-72h);
  state = open();
  EXPECT_EQ(machine.now(state).time, before);
  EXPECT_EQ(remaining(state, "a"), 0);
}

TEST_F(State, AWallClockFarAheadIsNotAnOverflow) {
  OpenState state = open();
  machine.boot.wall = Wall{};  // a machine without a clock battery
  spend(state, "a", 6);
  seal(state);
  kill(state);
  machine.reboot(std::chrono::days{365 * 57});
  state = open();
  EXPECT_EQ(state.origin, Origin::sealed);
  EXPECT_EQ(machine.now(state).time, Time{24h}) << "the timeline begins again";
  EXPECT_EQ(remaining(state, "a"), 6);
  EXPECT_EQ(spend(state, "a", 6).remaining, 0);
  kill(state);
  state = open();
  EXPECT_EQ(remaining(state, "a"), 0);
}

TEST_F(State, AnUnsealedFileOfAnotherBootGivesWayToTheSnapshot) {
  OpenState state = open();
  spend(state, "a", 6);
  spend(state, "b", 2);
  ASSERT_TRUE(write_snapshot(*state.table, options.snapshot, machine.now(state)));
  machine.pass(1s);
  spend(state, "c", 6);  // after the snapshot: forgotten
  kill(state);
  machine.reboot(10min);
  state = open();
  EXPECT_THAT(state.report,
              ElementsAre(live() + ": not used, because the machine was restarted before it was closed",
                          options.snapshot + ": snapshot of 2026-11-15T00:00:00Z used, with 2 buckets; spends since "
                                             "then may be forgotten"));
  EXPECT_EQ(state.origin, Origin::snapshot);
  EXPECT_TRUE(state.forgetful);
  EXPECT_EQ(remaining(state, "a"), 1);  // 601 s have passed
  EXPECT_EQ(remaining(state, "b"), 5);
  EXPECT_EQ(remaining(state, "c"), 6);
  EXPECT_EQ(scratch.files(), (std::set<std::string>{"live", "snapshot"}));
}

TEST_F(State, AnUnsealedFileOfAnotherBootWithoutASnapshotIsForgotten) {
  OpenState state = open();
  spend(state, "a", 6);
  kill(state);
  machine.reboot(1s);
  state = open();
  EXPECT_THAT(state.report, ElementsAre(live() + ": not used, because the machine was restarted before it was closed",
                                        live() + ": a new state begins, every bucket full"));
  EXPECT_TRUE(state.forgetful);
  EXPECT_EQ(remaining(state, "a"), 6);
}

TEST_F(State, AnUnknownBootIsNeverTheSame) {
  machine.boot.id = "";
  OpenState state = open();
  spend(state, "a", 6);
  kill(state);
  state = open();
  EXPECT_EQ(state.origin, Origin::nothing);
}

TEST_F(State, AnEmptyLiveFileStartsFromTheSnapshot) {  // tmpfs is empty after a reboot
  OpenState state = open();
  spend(state, "a", 6);
  ASSERT_TRUE(write_snapshot(*state.table, options.snapshot, machine.now(state)));
  kill(state);
  ASSERT_EQ(unlink(live().c_str()), 0);
  machine.reboot(-1h);
  state = open();
  EXPECT_EQ(state.origin, Origin::snapshot);
  EXPECT_EQ(remaining(state, "a"), 0);
}

TEST_F(State, AnEmptyLiveFileIsNotReplacedSilently) {
  const int fd = ::open(live().c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_GE(fd, 0);
  ::close(fd);
  OpenState state = open();
  EXPECT_THAT(state.report, ElementsAre(live() + ": it is empty, nothing can be taken from it",
                                        live() + ": a new state begins, every bucket full"));
  EXPECT_EQ(state.origin, Origin::nothing);
}

TEST_F(State, ALiveFileIsPreferredToASnapshot) {
  OpenState state = open();
  ASSERT_TRUE(write_snapshot(*state.table, options.snapshot, machine.now(state)));
  spend(state, "a", 6);
  kill(state);
  state = open();
  EXPECT_EQ(state.origin, Origin::recovered);
  EXPECT_EQ(remaining(state, "a"), 0);
}

// Reading a hole through the mapping would allocate memory that the table has given back.
TEST_F(State, TheChecksumThroughTheMappingIsTheFilesAndLeavesItsHolesAlone) {
  auto file = std::move(*LiveFile::lock(live()));
  const std::size_t bytes = 9 * Pages::kChunkBytes + 100;  // does not end at a page boundary
  ASSERT_EQ(ftruncate(file.fd(), static_cast<off_t>(bytes)), 0);
  const std::string some(3 * Pages::kChunkBytes, 'x');
  for (const std::size_t at : {std::size_t{0}, 5 * Pages::kChunkBytes}) {
    ASSERT_EQ(pwrite(file.fd(), some.data(), some.size(), static_cast<off_t>(at)), static_cast<ssize_t>(some.size()));
  }
  ASSERT_EQ(pwrite(file.fd(), "end", 3, static_cast<off_t>(bytes - 3)), 3);
  struct stat before {};
  ASSERT_EQ(fstat(file.fd(), &before), 0);
  const auto region = std::move(*Region::shared(file.fd(), bytes));
  const std::uint64_t by_read = *file.checksum();
  EXPECT_EQ(*file.checksum(&region), by_read);
  ASSERT_EQ(pwrite(file.fd(), "y", 1, static_cast<off_t>(7 * Pages::kChunkBytes)), 1);
  EXPECT_NE(*file.checksum(&region), by_read);
  struct stat after {};
  ASSERT_EQ(fstat(file.fd(), &after), 0);
  EXPECT_EQ(after.st_blocks, before.st_blocks);
}

TEST_F(State, ASecondProcessIsRefused) {
  const OpenState first = open();
  const auto second = open_state(options, machine.boot);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), (Error{Fault::unavailable, live() + ": another process is using this state"}));
}

TEST_F(State, ASecondProcessIsRefusedAlsoAfterTheFileWasReplaced) {
  spill(live(), "not ours");
  const OpenState first = open();
  ASSERT_EQ(first.report.size(), 2u);
  EXPECT_FALSE(open_state(options, machine.boot));
}

TEST_F(State, WhatIsNoRegularFileIsAnErrorThatNamesIt) {
  options.live = scratch.path("directory");
  mkdir(options.live.c_str(), 0700);
  auto opened = open_state(options, machine.boot);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().detail, live() + ": cannot open it: Is a directory");
  options.live = scratch.path("link");
  ASSERT_EQ(symlink("elsewhere", options.live.c_str()), 0);
  opened = open_state(options, machine.boot);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), (Error{Fault::invalid, live() + ": is a symbolic link; name the file itself"}));
  options.live = scratch.path("nowhere/live");
  opened = open_state(options, machine.boot);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().detail, live() + ": cannot open it: No such file or directory");
}

TEST_F(State, ASnapshotThatCouldNeverBeWrittenIsAnErrorAtOnce) {
  options.snapshot = scratch.path("nowhere/snapshot");
  const auto opened = open_state(options, machine.boot);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().detail, options.snapshot + ": cannot write it: No such file or directory");
}

TEST_F(State, BadOptionsAreAnErrorAndTouchNoFile) {
  options.table.buckets_max = 0;
  EXPECT_EQ(open_state(options, machine.boot).error().fault, Fault::invalid);
  EXPECT_EQ(scratch.files(), std::set<std::string>{});
}

// With other options the file is rewritten, and no bucket is forgotten while there is room.
TEST_F(State, OtherOptionsRewriteTheFileWithItsBuckets) {
  OpenState state = open();
  for (int i = 0; i < 500; ++i) spend(state, "client-" + std::to_string(i), i % 6 + 1);
  seal(state);
  kill(state);
  for (const auto& [buckets_max, names] : {std::pair{100'000u, true}, {100'000u, false}, {800u, true}}) {
    const bool had_names = options.table.names;
    const auto had = options.table.buckets_max;
    options.table.buckets_max = buckets_max;
    options.table.names = names;
    state = open();
    EXPECT_EQ(state.report.back(), live() + ": rewritten from max_buckets " + std::to_string(had) +
                                       (had_names ? " with" : " without") + " names to max_buckets " +
                                       std::to_string(buckets_max) + (names ? " with" : " without") + " names");
    EXPECT_EQ(state.table->header().buckets_max, buckets_max);
    for (int i = 0; i < 500; ++i) ASSERT_EQ(remaining(state, "client-" + std::to_string(i)), 6 - (i % 6 + 1)) << i;
    EXPECT_EQ(state.table->stats().evicted, 0u);
    EXPECT_EQ(scratch.files(), std::set<std::string>{"live"});
    kill(state);
  }
  options.table.buckets_max = 100;
  state = open();
  EXPECT_GE(state.table->stats().evicted, 400u);
  EXPECT_LE(state.table->stats().buckets, 100u);
}

TEST_F(State, WithoutRoomForBothTheOldOptionsStayInForce) {
  OpenState state = open();
  spend(state, "a", 6);
  kill(state);
  ASSERT_EQ(mkdir((live() + ".new").c_str(), 0700), 0);  // no file can be created there
  options.table.buckets_max = 2000;
  state = open();
  EXPECT_EQ(state.report.back(),
            live() + ": not rewritten from max_buckets 1000 with names to max_buckets 2000 with names, because " +
                live() + ".new: cannot create it: File exists");
  EXPECT_EQ(state.table->header().buckets_max, 1000u);
  EXPECT_EQ(remaining(state, "a"), 0);
}

TEST_F(State, TheLeftoversOfAKilledRewriteAreRemoved) {
  spill(live() + ".new", "half a table");
  OpenState state = open();
  EXPECT_EQ(scratch.files(), std::set<std::string>{"live"});
}

TEST_F(State, TheRealBootAndClockFitTogether) {
  const Boot boot = Boot::read();
  EXPECT_EQ(boot.id.size(), 36u);
  const auto opened = open_state(options);
  ASSERT_TRUE(opened);
  const BootClock clock(opened->boot_offset);
  EXPECT_GE(clock.time(), Time{24h});
  EXPECT_LT(clock.time(), Time{24h + 1min});
}

// The file system is full: decisions continue, and what cannot be kept is counted. The test uses a limit on the file's
// size, which needs no privileges; the allocator sees the same failure.
void fill_up(const StateOptions& options, const Boot& boot) {
  std::signal(SIGXFSZ, SIG_IGN);
  auto opened = open_state(options, boot);
  if (!opened) _exit(10);
  struct stat status {};
  fstat(opened->file.fd(), &status);
  const rlimit limit{static_cast<rlim_t>(status.st_size) + Pages::kChunkBytes * 4,
                     static_cast<rlim_t>(status.st_size) + Pages::kChunkBytes * 4};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(11);
  Table& table = *opened->table;
  Now now{Time{boot.uptime + opened->boot_offset}, boot.wall};
  constexpr int kKeys = 100'000;
  for (int i = 0; i < kKeys; ++i) {
    const std::string text = "client-" + std::to_string(i);
    const Key key{text};
    if (!table.spend(table.hash(key), key, kSlow, 6, now.time).allowed) _exit(12);
    if (table.spend(table.hash(key), key, kSlow, 6, now.time).allowed) _exit(13);
    if (i % 1000 == 0) table.maintain(now);
  }
  const Table::Stats stats = table.stats();
  if (stats.refused_growth == 0) _exit(14);
  if (stats.evicted == 0) _exit(15);
  if (stats.buckets + stats.evicted != kKeys) _exit(16);
  if (!opened->seal(now)) _exit(17);
  _exit(0);
}

TEST_F(State, AFullFileSystemStopsGrowthAndNothingElse) {
  options.table.buckets_max = 200'000;
  for (const bool names : {false, true}) {
    options.table.names = names;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) fill_up(options, machine.boot);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    ASSERT_EQ(WEXITSTATUS(status), 0);
    OpenState state = open();
    EXPECT_EQ(state.origin, Origin::sealed);
    EXPECT_GT(state.table->stats().buckets, 1000u);
    EXPECT_GT(state.table->stats().evicted, 0u);
    kill(state);
    unlink(live().c_str());
  }
}

TEST_F(State, OpensAMillionBucketsAndPrintsHowLongThatTook) {
  options.table = {.buckets_max = 2'000'000, .names = false, .huge_pages = false};
  OpenState state = open();
  for (int i = 0; i < 1'000'000; ++i) spend(state, "client-" + std::to_string(i));
  const auto timed = [](const char* what, const auto& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    std::printf("%s: %.1f ms\n", what,
                std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  };
  kill(state);
  timed("open 1M buckets, unsealed", [&] { state = open(); });
  EXPECT_EQ(state.table->stats().buckets, 1'000'000u);
  timed("seal 1M buckets", [&] { seal(state); });
  kill(state);
  timed("open 1M buckets, sealed", [&] { state = open(); });
  EXPECT_EQ(state.origin, Origin::sealed);
  EXPECT_EQ(remaining(state, "client-999999"), 5);
  timed("write a snapshot of 1M buckets",
        [&] { ASSERT_TRUE(write_snapshot(*state.table, options.snapshot, machine.now(state))); });
  kill(state);
  unlink(live().c_str());
  timed("open 1M buckets from a snapshot", [&] { state = open(); });
  EXPECT_EQ(state.table->stats().buckets, 1'000'000u);
}

}  // namespace
}  // namespace weir::state_test
