#include "weir/store/memory/snapshot.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/files.h"
#include "weir/store/memory/live_file.h"

namespace weir {
namespace {

constexpr char kSnapshotMagic[8] = {'W', 'E', 'I', 'R', 'S', 'N', 'P', '\n'};
constexpr std::uint32_t kSnapshotVersion = 1;

struct Tail {
  std::uint64_t records;
  std::uint64_t checksum;  // of everything before it
};

constexpr std::size_t kBufferBytes = std::size_t{64} << 10;
// Buckets are copied after the head was written. No TAT can be later than the head's time plus a window plus this.
constexpr Duration kWritingMax = std::chrono::days{1};

static_assert(std::is_trivially_copyable_v<SnapshotReader::Head> && sizeof(SnapshotReader::Head) == 64);

template <class T>
void put(std::string& out, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T get(std::string_view bytes, std::size_t at = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// A snapshot while it is being written. Deleted unless it is published.
class Draft {
 public:
  explicit Draft(const std::string& path) : path_(path), temporary_(path + ".tmp") {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (fd_ < 0) return;
    if (!published_) (void)unlink(temporary_.c_str());
    close(fd_);
  }

  Result<void> start() {
    const int fd = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return system_error(temporary_, "create");
    // Lock before truncating, because another process may be writing the same snapshot.
    const bool alone = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!alone || ftruncate(fd, 0) != 0) {
      const Error error = alone ? system_error(temporary_, "truncate")
                                : Error{Fault::unavailable, temporary_ + ": another process is writing this snapshot"};
      close(fd);
      return error;
    }
    fd_ = fd;
    return {};
  }

  Result<void> write(std::string_view bytes) {
    checksum_.add(bytes);
    bytes_ += bytes.size();
    while (!bytes.empty()) {
      const ssize_t wrote = ::write(fd_, bytes.data(), bytes.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return system_error(temporary_, "write");
      bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return {};
  }

  Result<void> publish() {
    if (fsync(fd_) != 0) return system_error(temporary_, "sync");
    if (rename(temporary_.c_str(), path_.c_str()) != 0) return system_error(path_, "replace");
    published_ = true;
    return sync_directory(path_);
  }

  std::uint64_t checksum() const { return checksum_.value(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  const std::string& path_;
  std::string temporary_;
  int fd_ = -1;
  bool published_ = false;
  Checksum checksum_;
  std::uint64_t bytes_ = 0;
};

SnapshotReader::Head head_of(const Table& table, Now now) {
  const Header& header = table.header();
  SnapshotReader::Head head{};
  std::memcpy(head.magic, kSnapshotMagic, sizeof head.magic);
  head.version = kSnapshotVersion;
  head.names = header.names;
  head.buckets_max = header.buckets_max;
  head.seed = header.seed;
  head.time = now.time.time_since_epoch().count();
  head.wall = now.wall.time_since_epoch().count();
  head.evicted = header.evicted.load(std::memory_order_relaxed);
  return head;
}

bool full(const Table::Bucket& bucket, Time now) {
  // For a quota the table decides: its window ends by the wall clock, which may still go back.
  return bucket.kind == Kind::bucket && Time{Duration{static_cast<std::int64_t>(bucket.state)}} <= now;
}

Error bad_snapshot(std::string reason) {
  return Error{Fault::invalid, std::move(reason)};
}

}  // namespace

Result<SnapshotWritten> write_snapshot(const Table& table, const std::string& path, Now now) {
  Draft draft(path);
  if (auto started = draft.start(); !started) return started.error();
  const SnapshotReader::Head head = head_of(table, now);
  std::string records;
  put(records, head);
  std::uint64_t count = 0;
  for (std::size_t group = 0; group < table.groups(); ++group) {
    table.visit(group, [&](const Table::Bucket& bucket) {
      if (full(bucket, now.time)) return;
      put(records, bucket.h);
      put(records, bucket.state | (bucket.kind == Kind::quota ? kQuota : 0));
      ++count;
      if (head.names == 0) return;
      put(records, static_cast<std::uint16_t>(bucket.name.size()));
      records.append(bucket.name);
    });
    // Written only now, so that the group's lock is not held while waiting for the disk.
    if (records.size() < kBufferBytes) continue;
    if (auto written = draft.write(records); !written) return written.error();
    records.clear();
  }
  put(records, count);
  if (auto written = draft.write(records); !written) return written.error();
  std::string end;
  put(end, draft.checksum());
  if (auto written = draft.write(end); !written) return written.error();
  if (auto published = draft.publish(); !published) return published.error();
  return SnapshotWritten{count, draft.bytes()};
}

SnapshotReader::SnapshotReader(int fd) : fd_(fd), buffer_(std::make_unique<char[]>(kBufferBytes)) {}

SnapshotReader::SnapshotReader(SnapshotReader&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      bytes_(other.bytes_),
      left_(other.left_),
      head_(other.head_),
      buffer_(std::move(other.buffer_)),
      from_(other.from_),
      to_(other.to_),
      checksum_(other.checksum_) {}

SnapshotReader::~SnapshotReader() {
  if (fd_ >= 0) close(fd_);
}

Result<SnapshotReader> SnapshotReader::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 && errno == ENOENT) return Error{Fault::unknown, path + ": there is no snapshot"};
  if (fd < 0) return system_error(path, "open");
  auto reader = read(fd);
  if (!reader && reader.error().fault != Fault::invalid)
    return Error{reader.error().fault, path + ": " + reader.error().detail};
  return reader;
}

Result<SnapshotReader> SnapshotReader::read(int fd) {
  SnapshotReader reader(fd);
  struct stat status {};
  if (fstat(fd, &status) != 0)
    return Error{Fault::unavailable, std::string("cannot read the snapshot's size: ") + std::strerror(errno)};
  if (!S_ISREG(status.st_mode)) return Error{Fault::unavailable, "a snapshot must be a regular file"};
  reader.bytes_ = static_cast<std::uint64_t>(status.st_size);
  if (auto read = reader.read_head(); !read) return read.error();
  return reader;
}

Result<void> SnapshotReader::read_head() {
  constexpr std::size_t kLeast = sizeof(Head) + sizeof(Tail);
  left_ = bytes_;
  const std::size_t magic_bytes = bytes_ < sizeof kSnapshotMagic ? bytes_ : sizeof kSnapshotMagic;
  const auto begin = take(bytes_ < kLeast ? magic_bytes : sizeof(Head));
  if (!begin) return begin.error();
  if (std::memcmp(begin->data(), kSnapshotMagic, magic_bytes) != 0) return bad_snapshot("it is not a snapshot of Weir");
  if (bytes_ < kLeast) return bad_snapshot("it is cut short at " + std::to_string(bytes_) + " bytes");
  head_ = get<Head>(*begin);
  left_ -= sizeof(Tail);
  if (head_.version != kSnapshotVersion) {
    return bad_snapshot("it is of version " + std::to_string(head_.version) + " and this program reads version " +
                        std::to_string(kSnapshotVersion));
  }
  const bool sound = head_.names <= 1 && head_.buckets_max >= 1 && head_.buckets_max <= bounds::buckets_max &&
                     head_.time >= 0 && head_.time <= bounds::time_max.count();
  if (!sound) return bad_snapshot("its head holds numbers that no table has");
  return {};
}

// Returns the next bytes, valid until the next call. REQUIRES: bytes <= kBufferBytes.
Result<std::string_view> SnapshotReader::take(std::size_t bytes) {
  if (bytes > left_) return bad_snapshot("a record goes beyond its end");
  while (to_ - from_ < bytes) {
    std::memmove(buffer_.get(), buffer_.get() + from_, to_ - from_);
    to_ -= from_;
    from_ = 0;
    const ssize_t got = ::read(fd_, buffer_.get() + to_, kBufferBytes - to_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{Fault::unavailable, std::string("cannot read the snapshot: ") + std::strerror(errno)};
    if (got == 0) return bad_snapshot("it was cut short while it was read");
    to_ += static_cast<std::size_t>(got);
  }
  const std::string_view taken(buffer_.get() + from_, bytes);
  from_ += bytes;
  left_ -= bytes;
  checksum_.add(taken);
  return taken;
}

// Returns the number of records that the end of the file states, which is not verified yet, capped at what fits in the
// file.
std::uint64_t SnapshotReader::records() const {
  std::uint64_t records = 0;
  const auto at = static_cast<off_t>(bytes_ - sizeof(Tail));
  if (pread(fd_, &records, sizeof records, at) != sizeof records) return 0;
  return std::min(records, left_ / (2 * sizeof(std::uint64_t)));
}

Result<std::uint64_t> SnapshotReader::restore(Table& table, Duration shift, Now now) {
  table.reserve(records());
  std::uint64_t records = 0;
  std::uint64_t restored = 0;
  for (; left_ > 0; ++records) {
    const auto alive = restore_one(table, shift, now);
    if (!alive) return alive.error();
    restored += *alive ? 1 : 0;
  }
  left_ = sizeof(Tail);
  const auto count = take(sizeof(Tail::records));
  if (!count) return count.error();
  const auto expected = get<std::uint64_t>(*count);
  const std::uint64_t computed = checksum_.value();
  const auto checksum = take(sizeof(Tail::checksum));
  if (!checksum) return checksum.error();
  if (get<std::uint64_t>(*checksum) != computed) return bad_snapshot("its checksum does not match its content");
  if (expected != records) return bad_snapshot("it does not hold as many buckets as it says");
  return restored;
}

// Returns false if the bucket is full by now.
Result<bool> SnapshotReader::restore_one(Table& table, Duration shift, Now now) {
  const auto numbers = take(2 * sizeof(std::uint64_t));
  if (!numbers) return numbers.error();
  const auto h = get<std::uint64_t>(*numbers);
  const auto word = get<std::uint64_t>(*numbers, sizeof h);
  Table::Bucket bucket{h, kind_of(word), word & kStateMask, {}};
  if (head_.names != 0) {
    const auto length = take(sizeof(std::uint16_t));
    if (!length) return length.error();
    const auto name = take(get<std::uint16_t>(*length));
    if (!name) return name.error();
    if (name->size() > bounds::key_bytes_max) return bad_snapshot("it holds a name that is too long");
    bucket.name = *name;
  }
  const Duration latest = Duration{head_.time} + bounds::window_max + kWritingMax;
  if (h == 0 || (word & kBusy) != 0) return bad_snapshot("it holds a bucket that no table has");
  if (bucket.kind == Kind::bucket) {
    const auto tat = Duration{static_cast<std::int64_t>(bucket.state)};
    if (tat > latest) return bad_snapshot("it holds a bucket that no table has");
    bucket.state = static_cast<State>(std::max(tat + shift, Duration::zero()).count());
  }
  if (full(bucket, now.time) || bucket.state == 0) return false;
  table.restore(bucket, now);
  return true;
}

}  // namespace weir
