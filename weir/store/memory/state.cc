#include "weir/store/memory/state.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/clock.h"
#include "weir/base/files.h"
#include "weir/store/memory/checksum.h"
#include "weir/store/memory/snapshot.h"

namespace weir {
namespace {

// A new timeline starts at this time, so that instants shortly before it are not negative.
constexpr Duration kBeginning = std::chrono::days{1};
// If a timeline is past this time when the state is opened, it is moved back to its start, so that a process can run
// for years before it reaches bounds::time_max.
constexpr Duration kRenewAfter = std::chrono::days{14'610};  // 40 years
// Every bucket is full after this time; a longer time would only risk overflow.
constexpr Duration kElapsedMax = bounds::window_max + std::chrono::days{2};

Error refused(std::string reason) {
  return Error{Fault::invalid, std::move(reason)};
}

// Returns zero if the wall clock went back.
Duration elapsed_since(std::int64_t wall, Wall now) {
  const std::int64_t passed =
      std::max<std::int64_t>(now.time_since_epoch().count(), 0) - std::max<std::int64_t>(wall, 0);
  return std::clamp(Duration{passed}, Duration::zero(), kElapsedMax);
}

std::string print_utc(std::int64_t wall) {
  const auto seconds = static_cast<std::time_t>(wall / 1'000'000'000);
  std::tm fields{};
  char text[32] = "an unknown time";
  if (gmtime_r(&seconds, &fields) != nullptr) (void)std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &fields);
  return text;
}

std::string count_of(std::uint64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// The first page of a file, which is checked before anything else in it is trusted.
struct HeaderPage {
  alignas(64) char bytes[kHeaderBytes] = {};
  const Header& header() const { return *reinterpret_cast<const Header*>(bytes); }
};

Result<void> read_header(const LiveFile& file, std::size_t size, HeaderPage& page) {
  const ssize_t got = pread(file.fd(), page.bytes, sizeof page.bytes, 0);
  if (got < 0) return system_error(file.path(), "read");
  const Header& header = page.header();
  const std::size_t magic_bytes = std::min(static_cast<std::size_t>(got), sizeof header.magic);
  if (std::memcmp(header.magic, kMagic, magic_bytes) != 0) return refused("it is not a state file of Weir");
  if (static_cast<std::size_t>(got) < kHeaderBytes)
    return refused("it is cut short at " + std::to_string(size) + " bytes");
  if (header.version != kFormatVersion && header.version != kVersionWithoutChecksum) {
    return refused("it is of version " + std::to_string(header.version) + " and this program reads version " +
                   std::to_string(kFormatVersion));
  }
  return {};
}

// Covers the fields that do not change while the table is in use. In a file that was closed, the seal covers the rest.
std::uint64_t header_checksum(const Header& header) {
  const char* const bytes = reinterpret_cast<const char*>(&header);
  constexpr std::size_t kTable = offsetof(Header, groups);
  constexpr std::size_t kBoot = offsetof(Header, boot_id);
  Checksum checksum;
  checksum.add({bytes + kTable, offsetof(Header, seal) - kTable});
  checksum.add({bytes + kBoot, offsetof(Header, sealed_time) - kBoot});
  return checksum.value();
}

bool in_range(std::int64_t value, std::int64_t low, std::int64_t high) {
  return value >= low && value <= high;
}

// The steps of opening a state, and what is known in between.
class Opening {
 public:
  Opening(const StateOptions& options, const Boot& boot) : options_(options), boot_(boot) {}

  Result<OpenState> run();

 private:
  using Fill = std::function<Result<void>(Table&, Now)>;

  Result<void> take_live(std::size_t size);
  Result<void> check_seal(const Header& header, std::size_t size, const Region& region);
  Result<void> choose_time(const Header& header);
  Result<void> adopt(const Header& header, std::size_t size, bool sealed);
  Result<void> refit();
  Result<void> start_anew();
  Result<bool> take_snapshot();
  Result<void> make(HashKey seed, const Fill& fill);

  Now now() const { return {Time{boot_.uptime + state_.boot_offset}, boot_.wall}; }
  void start_at(Duration time) { state_.boot_offset = time - boot_.uptime; }
  bool same_boot(const Header& header) const {
    return !boot_.id.empty() && std::strncmp(header.boot_id, boot_.id.c_str(), sizeof header.boot_id) == 0;
  }
  void stamp(Header& header) const;
  void report(const std::string& path, const std::string& what) { state_.report.push_back(path + ": " + what); }
  Result<void> keep_aside_and_say(const std::string& path, const std::string& reason);

  const StateOptions& options_;
  const Boot& boot_;
  OpenState state_;
};

Result<OpenState> Opening::run() {
  // Fail at startup, not later when a snapshot is needed that could never be written.
  if (!options_.snapshot.empty()) {
    const std::string folder = std::filesystem::path(options_.snapshot).parent_path().string();
    if (access(folder.empty() ? "." : folder.c_str(), W_OK) != 0) return system_error(options_.snapshot, "write");
  }
  if (!options_.live.empty()) {
    const bool existed = access(options_.live.c_str(), F_OK) == 0;  // lock() creates it
    auto file = LiveFile::lock(options_.live);
    if (!file) return file.error();
    state_.file = std::move(*file);
    const auto size = state_.file.bytes();
    if (!size) return size.error();
    // Both paths may name one file: by another spelling, a symbolic link or a hard link. Checked only now, because
    // lock() has created a file that did not exist.
    if (is_same_file(state_.file.fd(), options_.snapshot)) {
      if (!existed) (void)unlink(options_.live.c_str());
      return refused("state.snapshot " + options_.snapshot + " is the same file as state.live " + options_.live +
                     ": they need a file each");
    }
    if (*size == 0 && existed) report(options_.live, "it is empty, nothing can be taken from it");
    if (*size != 0) {
      const auto taken = take_live(*size);
      if (!taken && taken.error().fault != Fault::invalid) return taken.error();
      if (!taken) {
        state_.forgetful = true;
        if (auto kept = keep_aside_and_say(options_.live, taken.error().detail); !kept) return kept.error();
      }
    }
  }
  if (state_.table == nullptr) {
    if (auto started = start_anew(); !started) return started.error();
  }
  return std::move(state_);
}

// Leaves state_.table null if the file is valid but cannot be used.
Result<void> Opening::take_live(std::size_t size) {
  HeaderPage page;
  if (auto read = read_header(state_.file, size, page); !read) return read.error();
  const Header& header = page.header();
  const bool sealed = header.seal.load(std::memory_order_relaxed) != 0;
  if (!sealed && header.version != kVersionWithoutChecksum && header.checksum != header_checksum(header))
    return refused("its header's checksum does not match");
  if (!sealed && !same_boot(header)) {
    report(options_.live, "not used, because the machine was restarted before it was closed");
    state_.forgetful = true;
    return {};
  }
  if (auto chosen = choose_time(header); !chosen) return chosen.error();
  return adopt(header, size, sealed);
}

Result<void> Opening::check_seal(const Header& header, std::size_t size, const Region& region) {
  if (header.sealed_bytes != size) {
    return refused("it has " + std::to_string(size) + " bytes and was closed with " +
                   std::to_string(header.sealed_bytes));
  }
  const auto checksum = state_.file.checksum(&region);
  if (!checksum) return checksum.error();
  if (*checksum != header.seal.load(std::memory_order_relaxed))
    return refused("its checksum does not match its content");
  return {};
}

Result<void> Opening::choose_time(const Header& header) {
  const std::int64_t latest = bounds::time_max.count();
  const bool sealed = header.seal.load(std::memory_order_relaxed) != 0;
  const std::int64_t horizon = header.horizon.load(std::memory_order_relaxed);
  const std::int64_t wall_minus_time = header.wall_minus_time.load(std::memory_order_relaxed);
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  if (!in_range(header.sealed_time, 0, latest) || !in_range(horizon, -latest, latest) ||
      !in_range(wall_minus_time, -kFar, kFar) || !in_range(header.boot_offset, -kFar, kFar)) {
    return refused("its header holds a time that no state has");
  }
  if (same_boot(header)) {
    state_.boot_offset = Duration{header.boot_offset};
  } else {
    const Duration sealed_at{header.sealed_time};
    start_at(sealed_at + elapsed_since(header.sealed_time + wall_minus_time, boot_.wall));
  }
  // Within one boot the clock cannot be behind an earlier reading, but the clock of a container with its own time can.
  const Time least{Duration{std::max(horizon, header.sealed_time)}};
  if (sealed && now().time < least) start_at(least.time_since_epoch());
  if (now().time < least || (!sealed && now().time.time_since_epoch() > bounds::time_max))
    return refused("its header holds a time that no state has");
  return {};
}

Result<void> Opening::adopt(const Header& found, std::size_t size, bool sealed) {
  if (found.buckets_max < 1 || found.buckets_max > bounds::buckets_max || found.names > 1)
    return refused("its header holds numbers that no table has");
  const auto map = [&] {
    return Region::shared(state_.file.fd(),
                          Table::region_bytes({.buckets_max = found.buckets_max, .names = found.names != 0}));
  };
  auto region = map();
  if (!region) return region.error();
  if (sealed) {
    if (auto checked = check_seal(found, size, *region); !checked) return checked.error();
  }
  // A growth step was interrupted. No page can be in the partial chunk, and it must not be mistaken for a clean one.
  const std::size_t whole = size / Pages::kChunkBytes * Pages::kChunkBytes;
  if (whole != size) {
    if (ftruncate(state_.file.fd(), static_cast<off_t>(whole)) != 0) return system_error(options_.live, "truncate");
    region = map();
    if (!region) return region.error();
  }
  if (region->ready() < kHeaderBytes) return refused("it is cut short at " + std::to_string(size) + " bytes");
  // From here on the file is in use; a process that finds it unsealed checks every slot. If the machine was restarted
  // since it was sealed, a kill between these two statements loses the live file: it is then unsealed and from another
  // boot. That is acceptable: nothing has been promised yet, and the snapshot is still there.
  auto& header = *reinterpret_cast<Header*>(region->data());
  header.seal.store(0, std::memory_order_relaxed);
  stamp(header);
  Table::Recovery recovery;
  auto table = Table::recover(std::move(*region), options_.table.huge_pages, now(), recovery);
  if (!table) return table.error();
  state_.table = std::move(*table);
  state_.origin = sealed ? OpenState::Origin::sealed : OpenState::Origin::recovered;
  if (sealed) {
    report(options_.live, "taken as it was closed, with " + count_of(recovery.buckets, "bucket"));
  } else {
    report(options_.live, "its last process was killed; taken with " + count_of(recovery.buckets, "bucket") + ", " +
                              count_of(recovery.unfinished, "unfinished change") + " undone");
  }
  if (recovery.dropped != 0) {
    report(options_.live, count_of(recovery.dropped, "part") + " of it made no sense and " +
                              (recovery.dropped == 1 ? "was" : "were") + " dropped");
    state_.forgetful = true;
  }
  // No thread has an older reading yet, so the horizon of a wall clock that was once wrong can be corrected here.
  const std::int64_t wall = boot_.wall.time_since_epoch().count();
  if (header.wall_horizon.load(std::memory_order_relaxed) > wall)
    header.wall_horizon.store(wall, std::memory_order_relaxed);
  return refit();
}

// Rewrites the table if it was made with other options, or if its timeline has run for decades.
Result<void> Opening::refit() {
  const Table& old = *state_.table;
  const Header& header = old.header();
  const std::uint64_t buckets_max = header.buckets_max;
  const bool names = header.names != 0;
  const bool renew = now().time.time_since_epoch() > kRenewAfter;
  if (buckets_max == options_.table.buckets_max && names == options_.table.names && !renew) return {};
  const Duration offset = state_.boot_offset;
  const Duration shift = renew ? kBeginning - now().time.time_since_epoch() : Duration::zero();
  state_.boot_offset += shift;
  const auto made = make(header.seed, [&](Table& table, Now at) -> Result<void> {
    Header& next = table.header();
    next.evicted.store(header.evicted.load());
    next.horizon.store(std::max<std::int64_t>(header.horizon.load() + shift.count(), 0));
    next.wall_horizon.store(header.wall_horizon.load());
    table.reserve(old.stats().buckets);
    for (std::size_t group = 0; group < old.groups(); ++group) {
      old.visit(group, [&](Table::Bucket bucket) {
        if (bucket.kind == Kind::bucket) {
          const std::int64_t tat = static_cast<std::int64_t>(bucket.state) + shift.count();
          if (tat <= at.time.time_since_epoch().count()) return;
          bucket.state = static_cast<State>(tat);
        }
        table.restore(bucket, at);
      });
    }
    return {};
  });
  const std::string change = "from max_buckets " + std::to_string(buckets_max) + (names ? " with" : " without") +
                             " names to max_buckets " + std::to_string(options_.table.buckets_max) +
                             (options_.table.names ? " with" : " without") + " names";
  if (made) {
    report(options_.live, "rewritten " + change);
    return {};
  }
  if (renew) return made.error();
  // Lack of space for both files at once is no reason to refuse a good state.
  state_.boot_offset = offset;
  report(options_.live, "not rewritten " + change + ", because " + made.error().detail);
  return {};
}

Result<void> Opening::start_anew() {
  const auto taken = take_snapshot();
  if (!taken) return taken.error();
  if (*taken) return {};
  start_at(kBeginning);
  const auto seed = Table::fresh_seed();
  if (!seed) return seed.error();
  if (auto made = make(*seed, {}); !made) return made.error();
  if (options_.live.empty() && options_.snapshot.empty()) {
    state_.report.emplace_back("no state file is configured: a restart forgets every bucket");
  } else {
    report(options_.live.empty() ? options_.snapshot : options_.live, "a new state begins, every bucket full");
  }
  return {};
}

// Returns false if there is no usable snapshot.
Result<bool> Opening::take_snapshot() {
  const std::string& path = options_.snapshot;
  if (path.empty()) return false;
  auto reader = SnapshotReader::open(path);
  if (!reader && reader.error().fault == Fault::unknown) return false;
  if (!reader && reader.error().fault != Fault::invalid) return reader.error();
  std::string reason = reader ? std::string() : reader.error().detail;
  state_.forgetful = true;
  if (reader) {
    const SnapshotReader::Head& head = reader->head();
    const Duration time = Duration{head.time} + elapsed_since(head.wall, boot_.wall);
    start_at(time > kRenewAfter ? kBeginning : time);
    std::uint64_t buckets = 0;
    const auto made = make(head.seed, [&](Table& table, Now at) -> Result<void> {
      table.header().evicted.store(head.evicted);
      const auto restored = reader->restore(table, at.time.time_since_epoch() - time, at);
      if (!restored) return restored.error();
      buckets = *restored;
      return {};
    });
    if (made) {
      state_.origin = OpenState::Origin::snapshot;
      report(path, "snapshot of " + print_utc(head.wall) + " used, with " + count_of(buckets, "bucket") +
                       "; spends since then may be forgotten");
      return true;
    }
    if (made.error().fault != Fault::invalid) return made.error();
    reason = made.error().detail;
  }
  if (auto kept = keep_aside_and_say(path, reason); !kept) return kept.error();
  (void)unlink(path.c_str());
  return false;
}

// Creates a table, in a new live file if one is configured. It replaces the table in state_ once it is complete.
Result<void> Opening::make(HashKey seed, const Fill& fill) {
  LiveFile file;
  std::unique_ptr<Table> table;
  if (options_.live.empty()) {
    auto created = Table::create(options_.table, seed);
    if (!created) return created.error();
    table = std::move(*created);
  } else {
    auto replacement = LiveFile::replacement(options_.live);
    if (!replacement) return replacement.error();
    file = std::move(*replacement);
    auto region = Region::shared(file.fd(), Table::region_bytes(options_.table));
    if (!region) return region.error();
    auto created = Table::create(options_.table, seed, std::move(*region));
    if (!created) return Error{created.error().fault, options_.live + ": " + created.error().detail};
    table = std::move(*created);
  }
  stamp(table->header());
  if (fill) {
    if (auto filled = fill(*table, now()); !filled) return filled.error();
  }
  if (file.is_open()) {
    if (auto installed = file.install(); !installed) return installed.error();
  }
  state_.table = std::move(table);
  state_.file = std::move(file);
  return {};
}

// Switches the file to this boot's clock. A store that does not change a value is harmless, so a process killed in here
// leaves a good file if the boot is the same.
void Opening::stamp(Header& header) const {
  char boot_id[sizeof header.boot_id] = {};
  std::memcpy(boot_id, boot_.id.data(), std::min(boot_.id.size(), sizeof boot_id - 1));
  if (std::memcmp(header.boot_id, boot_id, sizeof boot_id) != 0) std::memcpy(header.boot_id, boot_id, sizeof boot_id);
  header.boot_offset = state_.boot_offset.count();
  header.sealed_time = 0;
  header.wall_minus_time.store((boot_.wall.time_since_epoch() - now().time.time_since_epoch()).count());
  header.checksum = header_checksum(header);
  std::atomic_signal_fence(std::memory_order_release);  // the version tells whether the checksum is valid
  header.version = kFormatVersion;
}

Result<void> Opening::keep_aside_and_say(const std::string& path, const std::string& reason) {
  const auto aside = keep_aside(path);
  if (!aside) return aside.error();
  report(path, "set aside as " + *aside + ", because " + reason);
  return {};
}

}  // namespace

Boot Boot::read() {
  Boot boot{{}, BootClock{}.time().time_since_epoch(), BootClock::wall()};
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot.id;
  return boot;
}

Result<OpenState> open_state(const StateOptions& options, const Boot& boot) {
  if (auto checked = Table::check(options.table); !checked) return checked.error();
  return Opening(options, boot).run();
}

Result<void> OpenState::seal(Now now) {
  const std::unique_ptr<Table> ended = std::move(table);
  if (!file.is_open()) return {};
  Header& header = ended->header();
  const auto size = file.bytes();
  if (!size) return size.error();
  header.sealed_time = now.time.time_since_epoch().count();
  header.wall_minus_time.store((now.wall.time_since_epoch() - now.time.time_since_epoch()).count());
  header.sealed_bytes = *size;
  const auto checksum = file.checksum();
  if (!checksum) return checksum.error();
  // Release, so that this is the last store. A process killed before it leaves an unsealed file, which is recovered as
  // after any kill.
  header.seal.store(*checksum, std::memory_order_release);
  if (fsync(file.fd()) != 0) return system_error(file.path(), "sync");
  return {};
}

}  // namespace weir
