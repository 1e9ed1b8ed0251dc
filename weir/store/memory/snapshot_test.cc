#include "weir/store/memory/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "weir/base/bounds.h"
#include "weir/store/memory/state_scratch.h"

namespace weir::snapshot_test {
namespace {

using namespace std::chrono_literals;
using Origin = OpenState::Origin;

constexpr Limit kSlow = Limit::per_hour(6).with_burst(6);

// Offset of the version in the file.
constexpr std::size_t kVersionAt = 8;

class Snapshot : public ::testing::Test {
 protected:
  Scratch scratch;
  Machine machine;
  StateOptions options{"", scratch.path("snapshot"), {.buckets_max = 1000, .names = true, .huge_pages = false}};

  OpenState open() {
    auto opened = open_state(options, machine.boot);
    if (!opened) ADD_FAILURE() << opened.error().detail;
    return opened ? std::move(*opened) : OpenState{};
  }
  static void spend(OpenState& state, const Machine& machine, std::string_view text, Count cost) {
    state.table->spend(state.table->hash(Key{text}), Key{text}, kSlow, cost, machine.now(state).time);
  }
  std::string written(int clients) {
    OpenState state = open();
    for (int i = 0; i < clients; ++i) spend(state, machine, "client-" + std::to_string(i), i % 6 + 1);
    const auto wrote = write_snapshot(*state.table, options.snapshot, machine.now(state));
    EXPECT_TRUE(wrote);
    std::string bytes = slurp(options.snapshot);
    EXPECT_EQ(wrote->bytes, bytes.size());
    EXPECT_EQ(wrote->buckets, static_cast<std::uint64_t>(clients));
    return bytes;
  }
  // Opens the file at the path. Returns the reason why it was refused, or an empty string.
  std::string refusal() {
    const OpenState state = open();
    if (state.origin == Origin::snapshot) return "";
    EXPECT_EQ(state.report.size(), 2u);
    EXPECT_TRUE(state.forgetful);
    EXPECT_EQ(access(options.snapshot.c_str(), F_OK), -1) << "it was not set aside";
    const std::string aside = options.snapshot + ".damaged-1";
    EXPECT_EQ(unlink(aside.c_str()), 0) << "it was not set aside";
    const std::string head = options.snapshot + ": set aside as " + aside + ", because ";
    const std::string line = state.report.empty() ? "" : state.report[0];
    EXPECT_EQ(line.substr(0, head.size()), head);
    EXPECT_EQ(state.table->stats().buckets, 0u);
    return line.substr(std::min(head.size(), line.size()));
  }
};

TEST_F(Snapshot, RestoresEveryBucketAndNameAfterAReboot) {
  written(700);
  machine.reboot(10min);
  const OpenState state = open();
  EXPECT_EQ(state.origin, Origin::snapshot);
  std::map<std::string, Duration> waits;
  for (std::size_t g = 0; g < state.table->groups(); ++g) {
    state.table->visit(g, [&](const Table::Bucket& bucket) {
      EXPECT_EQ(bucket.h, state.table->hash(Key{bucket.name}));
      waits[std::string(bucket.name)] =
          Time{Duration{static_cast<std::int64_t>(bucket.state)}} - machine.now(state).time;
    });
  }
  // One token was refilled: buckets that had spent only one are full and not in the snapshot.
  EXPECT_EQ(waits.size(), 700u - 117u);
  for (int i = 0; i < 700; ++i) {
    if (i % 6 == 0) continue;
    EXPECT_EQ(waits["client-" + std::to_string(i)], 10min * (i % 6)) << i;
  }
}

TEST_F(Snapshot, KeepsQuotasAsTheyAre) {
  OpenState state = open();
  const State used = (std::uint64_t{30'000'000} << 36) + 5;
  const std::uint64_t h = state.table->hash(Key{"a", Kind::quota});
  state.table->restore({h, Kind::quota, used, "a"}, machine.now(state));
  ASSERT_TRUE(write_snapshot(*state.table, options.snapshot, machine.now(state)));
  machine.reboot(-5h);
  state = open();
  int seen = 0;
  state.table->visit(0, [&](const Table::Bucket& bucket) {
    EXPECT_EQ(bucket.h, h);
    EXPECT_EQ(bucket.kind, Kind::quota);
    EXPECT_EQ(bucket.state, used);
    EXPECT_EQ(bucket.name, "a");
    ++seen;
  });
  EXPECT_EQ(seen, 1);
}

TEST_F(Snapshot, LeavesOutWhatIsFull) {
  OpenState state = open();
  spend(state, machine, "soon", 1);
  spend(state, machine, "later", 6);
  machine.pass(10min);
  const auto wrote = write_snapshot(*state.table, options.snapshot, machine.now(state));
  ASSERT_TRUE(wrote);
  EXPECT_EQ(wrote->buckets, 1u);
}

TEST_F(Snapshot, KeepsTheCountOfTheEvicted) {
  options.table.buckets_max = 10;
  OpenState state = open();
  for (int i = 0; i < 50; ++i) spend(state, machine, "client-" + std::to_string(i), 6);
  EXPECT_EQ(state.table->stats().evicted, 40u);
  ASSERT_TRUE(write_snapshot(*state.table, options.snapshot, machine.now(state)));
  EXPECT_EQ(open().table->stats().evicted, 40u);
}

TEST_F(Snapshot, FitsATableOfOtherOptions) {
  written(700);
  options.table = {.buckets_max = 200'000, .names = false, .huge_pages = false};
  EXPECT_EQ(open().table->stats().buckets, 700u);
  options.table = {.buckets_max = 100, .names = true, .huge_pages = false};
  const OpenState state = open();
  EXPECT_EQ(state.table->stats().buckets, 100u);
  EXPECT_EQ(state.table->stats().evicted, 600u);
}

TEST_F(Snapshot, IsRefusedWhereverItIsCutShort) {
  const std::string whole = written(40);
  for (std::size_t length = 0; length < whole.size(); length += length < 200 ? 1 : 7) {
    spill(options.snapshot, whole.substr(0, length));
    const std::string why = refusal();
    if (length < 64 + 16) {
      EXPECT_EQ(why, "it is cut short at " + std::to_string(length) + " bytes");
    } else {
      EXPECT_NE(why, "") << length;
    }
  }
}

TEST_F(Snapshot, IsRefusedWithOneBitWrong) {
  const std::string whole = written(300);
  std::mt19937_64 random(1);
  std::map<std::string, int> reasons;
  for (int i = 0; i < 1500; ++i) {
    std::string flipped = whole;
    const std::size_t at = i < 80 * 8 ? static_cast<std::size_t>(i) / 8 : random() % whole.size();
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (i % 8)));
    spill(options.snapshot, flipped);
    const std::string why = refusal();
    ASSERT_NE(why, "") << "byte " << at;
    ++reasons[why.substr(0, 16)];
  }
  EXPECT_GT(reasons["its checksum doe"], 1000);
}

TEST_F(Snapshot, IsRefusedWithMoreBehindIt) {
  spill(options.snapshot, written(3) + "x");
  EXPECT_NE(refusal(), "");
}

TEST_F(Snapshot, OfAnotherProgramIsRefused) {
  spill(options.snapshot, "SQLite format 3 and then some more bytes, so that it is longer than the head and the tail.");
  EXPECT_EQ(refusal(), "it is not a snapshot of Weir");
  spill(options.snapshot, "WEIRTBL\n");
  EXPECT_EQ(refusal(), "it is not a snapshot of Weir");
}

TEST_F(Snapshot, OfANewerVersionIsRefused) {
  std::string bytes = written(3);
  bytes[kVersionAt] = 2;
  spill(options.snapshot, bytes);
  EXPECT_EQ(refusal(), "it is of version 2 and this program reads version 1");
}

// With a correct checksum, so that only the tested rule can refuse it.
std::string resealed(std::string bytes) {
  Checksum checksum;
  checksum.add(std::string_view(bytes).substr(0, bytes.size() - 8));
  const std::uint64_t value = checksum.value();
  std::memcpy(bytes.data() + bytes.size() - 8, &value, sizeof value);
  return bytes;
}

template <class T>
void put(std::string& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

TEST_F(Snapshot, ItsTimeIsBoundedAtTheEdge) {
  constexpr std::size_t kTimeAt = 40;
  std::string bytes = written(3);
  put(bytes, kTimeAt, bounds::time_max.count());
  spill(options.snapshot, resealed(bytes));
  const OpenState state = open();
  EXPECT_EQ(state.origin, Origin::snapshot);
  EXPECT_EQ(machine.now(state).time, Time{24h}) << "a timeline that old begins again";
  put(bytes, kTimeAt, bounds::time_max.count() + 1);
  spill(options.snapshot, resealed(bytes));
  EXPECT_EQ(refusal(), "its head holds numbers that no table has");
}

TEST_F(Snapshot, ItsRecordsAreCheckedEvenIfTheChecksumIsRight) {
  constexpr std::size_t kRecordAt = 64;
  const std::string bytes = written(1);
  const auto with = [&](std::size_t at, auto value) {
    std::string changed = bytes;
    put(changed, at, value);
    spill(options.snapshot, resealed(changed));
    return refusal();
  };
  std::int64_t time = 0;
  std::memcpy(&time, bytes.data() + 40, sizeof time);
  const std::int64_t latest = time + (bounds::window_max + 24h).count();
  const std::string nobody = "it holds a bucket that no table has";
  EXPECT_EQ(with(kRecordAt, std::uint64_t{0}), nobody);
  EXPECT_EQ(with(kRecordAt + 8, kBusy | 5), nobody);
  EXPECT_EQ(with(kRecordAt + 8, latest + 1), nobody);
  EXPECT_EQ(with(kRecordAt + 8, latest), "");
  EXPECT_EQ(with(kRecordAt + 16, std::uint16_t{65'535}), "a record goes beyond its end");
  EXPECT_EQ(with(bytes.size() - 16, std::uint64_t{2}), "it does not hold as many buckets as it says");
  EXPECT_EQ(with(16, bounds::buckets_max + 1), "its head holds numbers that no table has");
  EXPECT_EQ(with(16, std::uint64_t{0}), "its head holds numbers that no table has");
}

TEST_F(Snapshot, ANameIsAtMostAsLongAsAKey) {
  for (const std::size_t length : {bounds::key_bytes_max, bounds::key_bytes_max + 1}) {
    std::string bytes = written(1);
    const std::string tail = bytes.substr(bytes.size() - 16);
    bytes.resize(64 + 16);
    const auto bytes_of_name = static_cast<std::uint16_t>(length);
    bytes.append(reinterpret_cast<const char*>(&bytes_of_name), sizeof bytes_of_name);
    bytes.append(length, 'n').append(tail);
    spill(options.snapshot, resealed(bytes));
    EXPECT_EQ(refusal(), length == bounds::key_bytes_max ? "" : "it holds a name that is too long");
  }
}

TEST_F(Snapshot, NineDamagedOnesAreKeptAndTheLastGivesWay) {
  for (int i = 0; i < 12; ++i) {
    spill(options.snapshot, "damage " + std::to_string(i));
    EXPECT_EQ(open().origin, Origin::nothing);
  }
  EXPECT_EQ(scratch.files().size(), 9u);
  EXPECT_EQ(slurp(options.snapshot + ".damaged-1"), "damage 0");
  EXPECT_EQ(slurp(options.snapshot + ".damaged-9"), "damage 11");
}

TEST_F(Snapshot, ThatCannotBeWrittenLeavesTheLastOne) {
  const std::string before = written(3);
  OpenState state = open();
  ASSERT_EQ(mkdir((options.snapshot + ".tmp").c_str(), 0700), 0);
  const auto wrote = write_snapshot(*state.table, options.snapshot, machine.now(state));
  ASSERT_FALSE(wrote);
  EXPECT_EQ(wrote.error().detail, options.snapshot + ".tmp: cannot create it: Is a directory");
  EXPECT_EQ(slurp(options.snapshot), before);
}

TEST_F(Snapshot, ThatCannotBeReadIsAnErrorAndNotANewState) {
  ASSERT_EQ(mkdir(options.snapshot.c_str(), 0700), 0);
  const auto opened = open_state(options, machine.boot);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().detail, options.snapshot + ": a snapshot must be a regular file");
}

}  // namespace
}  // namespace weir::snapshot_test
