// Recovery after every single store. A child works on a table in a shared file, one machine instruction at a time.
// Whenever the file has changed, the test opens and checks what a process killed at that instant would leave.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/clock.h"
#include "weir/store/memory/table.h"

namespace weir::recovery_test {
namespace {

using namespace std::chrono_literals;

constexpr HashKey kSeed{3, 4};
constexpr Limit kSlow = Limit::per_day(6);
constexpr Limit kBrief = Limit::per_second(20);
constexpr Time kStart{100s};
constexpr Now kNow{kStart, Wall{1'800'000'000s}};
constexpr Now kLater{kStart + 1h, Wall{1'800'003'600s}};

// Only this much of each chunk is watched at every step. The rest is compared at the end of every operation.
constexpr std::size_t kWatchedBytes = 8192;

std::string text_of(int i) {
  return "client-" + std::to_string(i);
}

Decision spend(Table& table, int i, const Limit& limit, Now now, Count cost = 1) {
  const std::string text = text_of(i);
  return table.spend(table.hash(Key{text}), Key{text}, limit, cost, now.time);
}

struct Kept {
  Kind kind;
  State state;
  std::string name;

  friend bool operator==(const Kept&, const Kept&) = default;
};
using Buckets = std::map<std::uint64_t, Kept>;

Buckets list(const Table& table) {
  Buckets buckets;
  for (std::size_t g = 0; g < table.groups(); ++g) {
    table.visit(g, [&](const Table::Bucket& bucket) {
      const bool first = buckets.try_emplace(bucket.h, bucket.kind, bucket.state, std::string(bucket.name)).second;
      EXPECT_TRUE(first) << bucket.name << " is there twice";
    });
  }
  return buckets;
}

// The file as a process killed at some instant left it.
struct Image {
  std::string bytes;

  static std::vector<std::pair<std::size_t, std::size_t>> watched(std::size_t size) {
    std::vector<std::pair<std::size_t, std::size_t>> ranges;
    for (std::size_t at = 0; at < size; at += Pages::kChunkBytes)
      ranges.emplace_back(at, std::min(kWatchedBytes, size - at));
    return ranges;
  }

  // Everything outside the watched ranges is zero; follow() checks that.
  std::unique_ptr<Table> recover(int fd, Now now, Table::Recovery& recovery) const {
    WEIR_ASSERT(ftruncate(fd, 0) == 0 && ftruncate(fd, static_cast<off_t>(bytes.size())) == 0);
    for (const auto& [at, length] : watched(bytes.size()))
      WEIR_ASSERT(pwrite(fd, bytes.data() + at, length, static_cast<off_t>(at)) == static_cast<ssize_t>(length));
    auto region = Region::shared(fd, std::size_t{4} << 20);
    WEIR_ASSERT(region);
    auto table = Table::recover(std::move(*region), false, now, recovery);
    EXPECT_TRUE(table) << table.error().detail;
    return table ? std::move(*table) : nullptr;
  }
};

// Written by the child, in separate shared memory: how many operations are done.
struct Progress {
  volatile std::size_t done;
};

using Operation = std::function<void(Table&)>;

class Recovery : public ::testing::Test {
 protected:
  Recovery() {
    file_ = memfd_create("table", 0);
    copy_ = memfd_create("copy", 0);
    void* const raw = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    WEIR_ASSERT(file_ >= 0 && copy_ >= 0 && raw != MAP_FAILED);
    progress_ = static_cast<Progress*>(raw);
    void* const view = mmap(nullptr, kViewBytes, PROT_READ, MAP_SHARED, file_, 0);
    WEIR_ASSERT(view != MAP_FAILED);
    view_ = static_cast<const char*>(view);
  }
  ~Recovery() override {
    munmap(const_cast<char*>(view_), kViewBytes);
    munmap(progress_, 4096);
    close(copy_);
    close(file_);
  }

  std::unique_ptr<Table> make(std::uint64_t buckets_max, bool names) {
    buckets_max_ = buckets_max;
    auto region = Region::shared(file_, std::size_t{4} << 20);
    WEIR_ASSERT(region);
    return std::move(
        *Table::create({.buckets_max = buckets_max, .names = names, .huge_pages = false}, kSeed, std::move(*region)));
  }

  void step_through(Table& table, const std::vector<Operation>& operations, Now now);

 private:
  static constexpr std::size_t kViewBytes = std::size_t{4} << 20;

  // One store: the lines of 64 bytes that it changed, and the file's size.
  struct Change {
    std::size_t size;
    std::vector<std::pair<std::size_t, std::string>> lines;
  };

  std::size_t size() const {
    struct stat status {};
    WEIR_ASSERT(fstat(file_, &status) == 0);
    return static_cast<std::size_t>(status.st_size);
  }
  bool note_change(std::string& seen, std::vector<Change>& changes) const;
  void follow(pid_t child, std::size_t operations, Now now);
  void check_operation(const Image& before, const std::vector<Change>& changes, Now now);
  void check_image(const Image& image, const Buckets& before, const Buckets& after, Now now);
  void check_goes_on(Table& table, const Buckets& found, Now now);

  int file_ = -1;
  int copy_ = -1;
  Progress* progress_ = nullptr;
  const char* view_ = nullptr;
  std::uint64_t buckets_max_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t images_ = 0;
  std::uint64_t unfinished_ = 0;
};

[[noreturn]] void work(Table& table, const std::vector<Operation>& operations, Progress& progress) {
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(99);
  (void)raise(SIGSTOP);
  for (const Operation& operation : operations) {
    operation(table);
    progress.done = progress.done + 1;
  }
  _exit(0);
}

void Recovery::step_through(Table& table, const std::vector<Operation>& operations, Now now) {
  progress_->done = 0;
  // Run both processes on one processor: waking each other across processors would take most of the time.
  cpu_set_t all;
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &here);
  WEIR_ASSERT(sched_getaffinity(0, sizeof all, &all) == 0);
  (void)sched_setaffinity(0, sizeof here, &here);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) work(table, operations, *progress_);
  follow(child, operations.size(), now);
  (void)sched_setaffinity(0, sizeof all, &all);
  std::printf("%llu instructions, %llu images checked, %llu of them with something unfinished\n",
              static_cast<unsigned long long>(steps_), static_cast<unsigned long long>(images_),
              static_cast<unsigned long long>(unfinished_));
}

void Recovery::follow(pid_t child, std::size_t operations, Now now) {
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSTOPPED(status)) << "this sandbox does not permit ptrace, without which nothing here is tested";
  Image before{std::string(view_, size())};
  std::string seen = before.bytes;
  std::vector<Change> changes;
  for (std::size_t done = 0; done < operations;) {
    ASSERT_EQ(ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr), 0) << std::strerror(errno);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSTOPPED(status)) << "the child ended in operation " << done;
    // The file-size limit of one test raises a signal, which the child ignores.
    const int signal = WSTOPSIG(status);
    ASSERT_TRUE(signal == SIGTRAP || signal == SIGXFSZ) << "signal " << signal << " in operation " << done;
    ++steps_;
    note_change(seen, changes);
    if (progress_->done == done) continue;
    ++done;
    ASSERT_TRUE(std::string_view(view_, size()) == seen) << "stores outside what is watched in operation " << done;
    check_operation(before, changes, now);
    if (HasFailure()) break;
    before.bytes = seen;
    changes.clear();
  }
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, &status, 0), child);
}

bool Recovery::note_change(std::string& seen, std::vector<Change>& changes) const {
  const std::size_t bytes = size();
  Change change{bytes, {}};
  const bool grown = bytes != seen.size();
  seen.resize(bytes);
  for (const auto& [at, length] : Image::watched(bytes)) {
    if (std::memcmp(seen.data() + at, view_ + at, length) == 0) continue;
    for (std::size_t line = at; line < at + length; line += kLineBytes) {
      if (std::memcmp(seen.data() + line, view_ + line, kLineBytes) == 0) continue;
      std::memcpy(seen.data() + line, view_ + line, kLineBytes);
      change.lines.emplace_back(line, std::string(view_ + line, kLineBytes));
    }
  }
  if (!grown && change.lines.empty()) return false;
  changes.push_back(std::move(change));
  return true;
}

void Recovery::check_operation(const Image& before, const std::vector<Change>& changes, Now now) {
  const auto apply = [](Image& image, const Change& change) {
    image.bytes.resize(change.size);
    for (const auto& [at, line] : change.lines) image.bytes.replace(at, line.size(), line);
  };
  Image after = before;
  for (const Change& change : changes) apply(after, change);
  Table::Recovery recovery;
  const Buckets first = list(*before.recover(copy_, now, recovery));
  const Buckets last = list(*after.recover(copy_, now, recovery));
  Image image = before;
  for (const Change& change : changes) {
    apply(image, change);
    check_image(image, first, last, now);
    if (HasFailure()) return;
  }
}

void Recovery::check_image(const Image& image, const Buckets& before, const Buckets& after, Now now) {
  Table::Recovery recovery;
  const auto table = image.recover(copy_, now, recovery);
  ASSERT_NE(table, nullptr);
  ++images_;
  unfinished_ += recovery.unfinished != 0 ? 1 : 0;
  EXPECT_EQ(recovery.dropped, 0u);
  const Buckets found = list(*table);
  EXPECT_EQ(recovery.buckets, found.size());
  for (const auto& [h, kept] : found) {
    const auto old = before.find(h);
    const auto next = after.find(h);
    const bool known = (old != before.end() && old->second == kept) || (next != after.end() && next->second == kept);
    EXPECT_TRUE(known) << kept.name << " is neither as it was nor as it is to be";
    if (kept.kind == Kind::quota) continue;
    // It can be found by its key, not only listed.
    const Time tat{Duration{static_cast<std::int64_t>(kept.state)}};
    EXPECT_EQ(table->peek(h, kSlow, 0, now.time).reset_after, std::clamp(tat - now.time, Duration{}, kSlow.window()));
  }
  for (const auto& [h, kept] : before) {
    EXPECT_TRUE(found.contains(h) || !after.contains(h)) << kept.name << " is lost";
  }
  check_goes_on(*table, found, now);
}

// Whatever the process was doing, the table that it left accepts new keys, can be cleaned, and keeps the old keys.
void Recovery::check_goes_on(Table& table, const Buckets& found, Now now) {
  constexpr int kNewcomers = 12;
  for (int i = 0; i < kNewcomers; ++i) {
    EXPECT_TRUE(spend(table, 1000 + i, kSlow, now, 6).allowed);
    EXPECT_FALSE(spend(table, 1000 + i, kSlow, now, 6).allowed);
  }
  while (!table.maintain(now)) {
  }
  const Buckets then = list(table);
  EXPECT_EQ(table.stats().buckets, then.size());
  if (found.size() + kNewcomers > buckets_max_) return;  // some had to be evicted
  for (const auto& [h, kept] : found) {
    const auto still = then.find(h);
    const bool expired = kept.kind == Kind::bucket &&
                         static_cast<std::int64_t>(kept.state) < table.header().horizon.load(std::memory_order_relaxed);
    const bool same = still != then.end() && still->second == kept;
    EXPECT_TRUE(same || expired) << kept.name << " did not stay as it was";
  }
}

TEST_F(Recovery, AtEveryStoreOfInsertsNamesAndGrowth) {
  auto table = make(1000, true);
  for (int i = 1; i < 11; ++i) spend(*table, i, kSlow, kNow);
  std::vector<Operation> operations;
  // Thirteen keys fill the first shape. By the twenty-third the group has been rebuilt four times, the last time into
  // larger pages.
  for (int i = 11; i < 24; ++i) operations.emplace_back([i](Table& t) { spend(t, i, kSlow, kNow); });
  step_through(*table, operations, kNow);
}

TEST_F(Recovery, AtEveryStoreOfWhatChangesABucket) {
  auto table = make(1000, true);
  for (int i = 0; i < 10; ++i) spend(*table, i, kSlow, kNow, 3);
  const std::uint64_t h = table->hash(Key{text_of(5)});
  const std::uint64_t quota = table->hash(Key{"quota", Kind::quota});
  const ManualClock clock(kStart, kNow.wall);
  const State used = (std::uint64_t{30'000'100} << 36) + 5;  // the window's last minute, then 36 bits of usage
  const std::vector<Operation> operations{
      [](Table& t) { spend(t, 5, kSlow, kNow); },
      [](Table& t) { spend(t, 5, kSlow, kNow, 6); },  // denied
      [h](Table& t) { t.refund(h, kSlow, 2, kNow.time); },
      [h, &clock](Table& t) { t.undo(h, kSlow, 1, kStart, clock); },
      [h](Table& t) { t.reset(h, Kind::bucket, kNow); },
      [quota](Table& t) {
        t.restore({quota, Kind::quota, used, "quota"}, kNow);
      },
  };
  step_through(*table, operations, kNow);
}

TEST_F(Recovery, AtEveryStoreOfAnEviction) {
  auto table = make(12, true);
  for (int i = 0; i < 12; ++i) spend(*table, i, kSlow, kNow, i % 6 + 1);
  std::vector<Operation> operations;
  for (int i = 12; i < 18; ++i) operations.emplace_back([i](Table& t) { spend(t, i, kSlow, kNow); });
  step_through(*table, operations, kNow);
}

TEST_F(Recovery, AtEveryStoreOfReusingTheSlotsOfTheExpired) {
  auto table = make(1000, true);
  for (int i = 0; i < 12; ++i) spend(*table, i, i % 3 == 0 ? kSlow : kBrief, kNow);
  std::vector<Operation> operations;
  for (int i = 12; i < 20; ++i) operations.emplace_back([i](Table& t) { spend(t, i, kSlow, kLater); });
  step_through(*table, operations, kLater);
}

TEST_F(Recovery, AtEveryStoreOfCleaningShrinkingAndGivingBack) {
  auto table = make(1000, true);
  for (int i = 0; i < 40; ++i) spend(*table, i, i % 10 == 0 ? kSlow : kBrief, kNow);
  const Operation clean = [](Table& t) { t.maintain(kLater); };
  step_through(*table, {clean, clean, clean}, kLater);
}

// The file cannot grow: the group fills up and then evicts.
TEST_F(Recovery, AtEveryStoreOfAGroupThatCannotGrow) {
  auto table = make(1000, false);
  for (int i = 0; i < 20; ++i) spend(*table, i, kSlow, kNow, i % 6 + 1);
  std::vector<Operation> operations{[](Table& t) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{t.region().ready(), t.region().ready()};
    WEIR_ASSERT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }};
  for (int i = 20; i < 28; ++i) operations.emplace_back([i](Table& t) { spend(t, i, kSlow, kNow); });
  operations.emplace_back([](Table& t) { WEIR_ASSERT(t.stats().refused_growth > 0 && t.stats().evicted > 0); });
  step_through(*table, operations, kNow);
}

}  // namespace
}  // namespace weir::recovery_test
