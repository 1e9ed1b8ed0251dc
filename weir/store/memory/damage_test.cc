// Live files that cannot be used: each is refused with a message and set aside, and none is read in part.
#include <gtest/gtest.h>

#include <cstddef>
#include <random>

#include "weir/store/memory/checksum.h"
#include "weir/store/memory/state_scratch.h"

namespace weir::damage_test {
namespace {

using namespace std::chrono_literals;
using Origin = OpenState::Origin;

constexpr Limit kSlow = Limit::per_hour(6).with_burst(6);

class Damage : public ::testing::Test {
 protected:
  Scratch scratch;
  Machine machine;
  StateOptions options{scratch.path("live"), "", {.buckets_max = 500, .names = true, .huge_pages = false}};

  OpenState open() {
    auto opened = open_state(options, machine.boot);
    if (!opened) ADD_FAILURE() << opened.error().detail;
    return opened ? std::move(*opened) : OpenState{};
  }
  // Returns the bytes of a file with some buckets, closed or not.
  std::string file(bool sealed) {
    OpenState state = open();
    for (int i = 0; i < 300; ++i) {
      const std::string text = "client-" + std::to_string(i);
      state.table->spend(state.table->hash(Key{text}), Key{text}, kSlow, 6, machine.now(state).time);
    }
    if (sealed) {
      EXPECT_TRUE(state.seal(machine.now(state)));
    }
    state = OpenState{};
    return slurp(options.live);
  }
  // Opens these bytes. Returns the reason why they were refused, or an empty string.
  std::string refusal(const std::string& bytes) {
    spill(options.live, bytes);
    const OpenState state = open();
    if (state.origin != Origin::nothing) return "";
    const std::string aside = options.live + ".damaged-1";
    EXPECT_EQ(unlink(aside.c_str()), 0) << "it was not kept aside";
    const std::string head = options.live + ": set aside as " + aside + ", because ";
    EXPECT_EQ(state.report.size(), 2u);
    const std::string line = state.report.empty() ? "" : state.report[0];
    EXPECT_EQ(line.substr(0, head.size()), head);
    EXPECT_TRUE(state.forgetful);
    EXPECT_EQ(state.table->stats().buckets, 0u);
    EXPECT_EQ(scratch.files(), std::set<std::string>{"live"});
    return line.substr(std::min(head.size(), line.size()));
  }
  template <class T>
  static void put(std::string& bytes, std::size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
};

TEST_F(Damage, OneFlippedBitOfASealedFileIsFound) {
  const std::string whole = file(true);
  const auto flip = [&](std::size_t at, int bit) {
    const int fd = ::open(options.live.c_str(), O_WRONLY);
    const char byte = static_cast<char>(whole[at] ^ (bit < 0 ? 0 : 1 << bit));
    EXPECT_EQ(pwrite(fd, &byte, 1, static_cast<off_t>(at)), 1);
    close(fd);
  };
  std::mt19937_64 random(1);
  int by_checksum = 0;
  constexpr int kFlips = 1000;
  for (int i = 0; i < kFlips; ++i) {
    // Every byte of the header's fields first, then anywhere.
    const auto turn = static_cast<std::size_t>(i);
    const std::size_t at = turn < sizeof(Header) ? turn : random() % whole.size();
    flip(at, static_cast<int>(random() % 8));
    const OpenState state = open();
    ASSERT_EQ(state.origin, Origin::nothing) << "byte " << at;
    ASSERT_EQ(state.report.size(), 2u);
    by_checksum += state.report[0].ends_with(", because its checksum does not match its content") ? 1 : 0;
    ASSERT_EQ(rename((options.live + ".damaged-1").c_str(), options.live.c_str()), 0);
    flip(at, -1);
  }
  EXPECT_GT(by_checksum, kFlips * 9 / 10);
  EXPECT_EQ(open().origin, Origin::sealed) << "every bit is back";
}

TEST_F(Damage, ASealedFileThatIsCutShortIsRefused) {
  const std::string whole = file(true);
  std::mt19937_64 random(2);
  for (std::size_t length = 1; length < whole.size(); length += length < 16 ? 1 : random() % 32'768 + 1) {
    const std::string why = refusal(whole.substr(0, length));
    if (length < kHeaderBytes) {
      ASSERT_EQ(why, "it is cut short at " + std::to_string(length) + " bytes");
    } else {
      ASSERT_EQ(why, "it has " + std::to_string(length) + " bytes and was closed with " + std::to_string(whole.size()));
    }
  }
  EXPECT_EQ(refusal(whole + "x"), "it has " + std::to_string(whole.size() + 1) + " bytes and was closed with " +
                                      std::to_string(whole.size()));
}

TEST_F(Damage, AnUnsealedFileThatIsCutShortIsRefusedOrWhole) {
  const std::string whole = file(false);
  std::mt19937_64 random(3);
  for (std::size_t length = 1; length < whole.size(); length += length < 16 ? 1 : random() % 32'768 + 1) {
    spill(options.live, whole.substr(0, length));
    const OpenState state = open();
    if (state.origin == Origin::recovered) {
      ASSERT_EQ(state.table->stats().buckets, 300u) << "half of it was read";
    } else {
      (void)unlink((options.live + ".damaged-1").c_str());
    }
  }
}

TEST_F(Damage, AnotherProgramsFileIsRefusedAndKept) {
  EXPECT_EQ(refusal("SQLite format 3"), "it is not a state file of Weir");
  EXPECT_EQ(refusal(std::string(10'000, '\0')), "it is not a state file of Weir");
  spill(options.live, "precious");
  open();
  EXPECT_EQ(slurp(options.live + ".damaged-1"), "precious");
}

TEST_F(Damage, ANewerVersionIsRefused) {
  for (const bool sealed : {false, true}) {
    std::string bytes = file(sealed);
    put(bytes, offsetof(Header, version), std::uint32_t{3});
    EXPECT_EQ(refusal(bytes), "it is of version 3 and this program reads version 2");
    (void)unlink(options.live.c_str());
  }
}

// Issue 14, row 10: another seed would forget every bucket, and another boot offset would move all of them in time.
TEST_F(Damage, AChangedByteInAnUnsealedHeaderIsFound) {
  const std::string whole = file(false);
  const auto flipped = [&](std::size_t at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    return refusal(bytes);
  };
  for (std::size_t at = offsetof(Header, groups); at < offsetof(Header, seal); ++at)
    ASSERT_EQ(flipped(at), "its header's checksum does not match") << "byte " << at;
  for (std::size_t at = offsetof(Header, boot_id); at < offsetof(Header, sealed_time); ++at)
    ASSERT_EQ(flipped(at), "its header's checksum does not match") << "byte " << at;
}

TEST_F(Damage, AFileOfTheVersionBeforeIsTakenAndUpgraded) {
  std::string bytes = file(false);
  put(bytes, offsetof(Header, version), kVersionWithoutChecksum);
  put(bytes, offsetof(Header, checksum), std::uint64_t{0});
  spill(options.live, bytes);
  for (int opening = 0; opening < 2; ++opening) {
    const OpenState state = open();
    EXPECT_EQ(state.origin, Origin::recovered);
    EXPECT_EQ(state.table->stats().buckets, 300u);
    EXPECT_EQ(state.table->header().version, kFormatVersion);
  }
}

TEST_F(Damage, AnUnsealedHeaderIsCheckedFieldByField) {
  std::string whole = file(false);
  put(whole, offsetof(Header, version), kVersionWithoutChecksum);
  const auto with = [&](std::size_t at, auto value) {
    std::string bytes = whole;
    put(bytes, at, value);
    return refusal(bytes);
  };
  const std::string time = "its header holds a time that no state has";
  const std::string numbers = "its header holds numbers that no table has";
  EXPECT_EQ(with(offsetof(Header, horizon), std::int64_t{1} << 60), time);
  EXPECT_EQ(with(offsetof(Header, horizon), std::numeric_limits<std::int64_t>::min()), time);
  EXPECT_EQ(with(offsetof(Header, boot_offset), std::numeric_limits<std::int64_t>::max()), time);
  EXPECT_EQ(with(offsetof(Header, boot_offset), std::int64_t{1} << 61), time);
  EXPECT_EQ(with(offsetof(Header, boot_offset), -(std::int64_t{1} << 61)), time);
  EXPECT_EQ(with(offsetof(Header, sealed_time), std::int64_t{-1}), time);
  EXPECT_EQ(with(offsetof(Header, wall_minus_time), std::numeric_limits<std::int64_t>::max()), time);
  EXPECT_EQ(with(offsetof(Header, buckets_max), std::uint64_t{0}), numbers);
  EXPECT_EQ(with(offsetof(Header, buckets_max), std::uint64_t{1'000'000'001}), numbers);
  EXPECT_EQ(with(offsetof(Header, names), std::uint32_t{2}), numbers);
  EXPECT_EQ(with(offsetof(Header, groups), std::uint32_t{2}), "its header does not fit its size");
  EXPECT_EQ(with(offsetof(Header, buckets_max), std::uint64_t{1'000'000'000}), "its header does not fit its size");
  EXPECT_EQ(with(kHeaderBytes, std::uint32_t{0}), "group 0 of 1 is damaged");
  const auto* const group = reinterpret_cast<const Group*>(whole.data() + kHeaderBytes);
  const std::size_t bank = offsetof(Group, page) + Shape{group->shape.load()}.bank() * sizeof group->page[0];
  EXPECT_EQ(with(kHeaderBytes + bank, std::uint32_t{1}), "group 0 of 1 is damaged");
}

TEST_F(Damage, AnImpossibleSlotOfAnUnsealedFileIsDroppedAndSaid) {
  std::string bytes = file(false);
  const auto* const group = reinterpret_cast<const Group*>(bytes.data() + kHeaderBytes);
  const std::size_t page = std::size_t{group->page[Shape{group->shape.load()}.bank()][0].load()} * kLineBytes;
  std::size_t at = page;
  std::uint64_t fingerprint = 0;
  for (; fingerprint == 0; at += sizeof(Slot)) std::memcpy(&fingerprint, bytes.data() + at + 8, sizeof fingerprint);
  at -= sizeof(Slot);
  put(bytes, at, encode(kStateMask, fingerprint, Kind::bucket));  // a TAT in 146 years
  spill(options.live, bytes);
  const OpenState state = open();
  EXPECT_EQ(state.origin, Origin::recovered);
  ASSERT_EQ(state.report.size(), 2u);
  EXPECT_EQ(state.report[1], options.live + ": 1 part of it made no sense and was dropped");
  EXPECT_TRUE(state.forgetful);
  EXPECT_EQ(state.table->stats().buckets, 299u);
}

TEST_F(Damage, ADamagedLiveFileFallsBackToTheSnapshotWithoutMixing) {
  options.snapshot = scratch.path("snapshot");
  std::string bytes = file(true);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  spill(options.live, bytes);
  spill(options.snapshot, "damaged too");
  const OpenState state = open();
  EXPECT_EQ(state.report.size(), 3u);
  EXPECT_EQ(state.origin, Origin::nothing);
  EXPECT_EQ(scratch.files(), (std::set<std::string>{"live", "live.damaged-1", "snapshot.damaged-1"}));
}

TEST(Checksum, DependsOnEveryByteAndItsPlaceAndNotOnHowTheyCome) {
  std::string bytes;
  std::mt19937_64 random(4);
  for (int i = 0; i < 1000; ++i) bytes.push_back(static_cast<char>(random()));
  Checksum whole;
  whole.add(bytes);
  for (int round = 0; round < 200; ++round) {
    Checksum parts;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t taken = std::min<std::size_t>(random() % 150, bytes.size() - at);
      parts.add(std::string_view(bytes).substr(at, taken));
      at += taken;
    }
    ASSERT_EQ(parts.value(), whole.value());
  }
  std::set<std::uint64_t> seen{whole.value()};
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] ^ 0x80);
    Checksum checksum;
    checksum.add(other);
    ASSERT_TRUE(seen.insert(checksum.value()).second) << at;
  }
  for (std::size_t length = 0; length < 200; ++length) {  // zeros of different lengths differ as well
    Checksum checksum;
    checksum.add(std::string(length, '\0'));
    ASSERT_TRUE(seen.insert(checksum.value()).second) << length;
  }
}

}  // namespace
}  // namespace weir::damage_test
