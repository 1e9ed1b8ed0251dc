#include "weir/base/zone.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/posix_tz.h"
#include "weir/base/text.h"

namespace weir {
namespace {

constexpr std::int64_t kBeginning = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

}  // namespace

// A table of changes, optionally followed by a rule for all later times. All in seconds.
struct Zone::Rules {
  struct Change {
    std::int64_t at;
    std::int32_t offset;  // from then on
  };

  std::string name;
  std::int32_t first_offset = 0;  // before the table
  std::vector<Change> changes;    // strictly ascending
  std::optional<PosixTz> after;   // after the last change; for all times if there is no table

  OffsetSpan span_at(std::int64_t utc) const noexcept {
    const auto next = std::upper_bound(changes.begin(), changes.end(), utc,
                                       [](std::int64_t t, const Change& change) { return t < change.at; });
    const std::int64_t since = next == changes.begin() ? kBeginning : (next - 1)->at;
    if (next == changes.end() && after) {
      OffsetSpan span = after->span_at(utc);
      span.since = std::max(span.since, since);
      return span;
    }
    return {since, next == changes.end() ? kEnd : next->at,
            next == changes.begin() ? first_offset : (next - 1)->offset};
  }
};

namespace {

// The range of an offset (RFC 8536 §3.2), on which all later code relies.
constexpr std::int32_t kOffsetMin = -89'999;
constexpr std::int32_t kOffsetMax = 93'599;

constexpr std::size_t kHeaderBytes = 44;

constexpr std::int64_t kWallSecondsMax = Wall::max().time_since_epoch() / std::chrono::seconds{1};

Error broken(std::string_view name, std::string_view why) {
  return Error{Fault::invalid, "time zone " + quote(name) + " cannot be read: " + std::string(why)};
}

std::int64_t big_endian(std::string_view bytes) noexcept {
  std::uint64_t value = static_cast<unsigned char>(bytes.front()) >= 0x80 ? ~std::uint64_t{0} : 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return static_cast<std::int64_t>(value);
}

// RFC 8536 §3.1. The counts are untrusted; sizes are checked against the available bytes before any is read.
struct Header {
  bool has_second_block = false;
  std::uint64_t utc_flags = 0, standard_flags = 0, leaps = 0, changes = 0, types = 0, name_bytes = 0;

  // Each count is below 2^32, so the sum cannot overflow.
  std::uint64_t block_bytes(std::uint64_t time_bytes) const noexcept {
    return changes * (time_bytes + 1) + types * 6 + name_bytes + leaps * (time_bytes + 4) + standard_flags + utc_flags;
  }
};

std::optional<Header> read_header(std::string_view bytes) noexcept {
  if (bytes.size() < kHeaderBytes || bytes.substr(0, 4) != "TZif") return std::nullopt;
  const auto count = [&](std::size_t at) {
    return static_cast<std::uint64_t>(big_endian(bytes.substr(at, 4))) & 0xffffffff;
  };
  return Header{bytes[4] >= '2', count(20), count(24), count(28), count(32), count(36), count(40)};
}

// "\n" rule "\n" at the end of the file; an empty rule means none. RFC 8536 §3.3.
Result<std::optional<PosixTz>> read_footer(std::string_view name, std::string_view bytes) {
  if (bytes.empty() || bytes.front() != '\n') return broken(name, "its footer is missing");
  const std::size_t end = bytes.find('\n', 1);
  if (end == std::string_view::npos) return broken(name, "its footer is cut off");
  const std::string_view text = bytes.substr(1, end - 1);
  if (text.empty()) return std::optional<PosixTz>{};
  const std::optional<PosixTz> rule = PosixTz::parse(text);
  if (!rule) return broken(name, "its footer " + quote(text) + " is not a POSIX TZ rule");
  return rule;
}

bool is_zone_name_character(char c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("/_+-.").find(c) != std::string_view::npos;
}

// Returns whether the name stays inside the directory: relative, without ".", ".." and empty parts.
bool is_zone_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > bounds::zone_name_bytes_max) return false;
  if (!std::all_of(name.begin(), name.end(), is_zone_name_character)) return false;
  while (true) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part.front() == '.') return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

class File {
 public:
  // Non-blocking, because the name might be a pipe.
  explicit File(const char* path) noexcept : fd_(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_regular() const noexcept {
    struct stat status {};
    return fd_ >= 0 && ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
  }

  // Reads one byte more than the limit, so that the caller notices a larger file.
  std::optional<std::string> read() const {
    std::string bytes(bounds::zone_bytes_max + 1, '\0');
    std::size_t size = 0;
    while (size < bytes.size()) {
      const ssize_t got = ::read(fd_, bytes.data() + size, bytes.size() - size);
      if (got < 0) return std::nullopt;
      if (got == 0) break;
      size += static_cast<std::size_t>(got);
    }
    bytes.resize(size);
    return bytes;
  }

 private:
  int fd_;
};

}  // namespace

Result<Zone> Zone::parse(std::string_view name, std::string_view bytes) {
  if (bytes.size() > bounds::zone_bytes_max) {
    return Error{Fault::too_large, "time zone " + quote(name) + " cannot be read: it has more than 64 KiB"};
  }
  std::optional<Header> header = read_header(bytes);
  if (!header) return broken(name, "it is not a TZif file");
  std::size_t time_bytes = 4;
  std::string_view rest = bytes.substr(kHeaderBytes);
  if (header->has_second_block) {
    // The first block is for readers that know only 32 bits.
    if (header->block_bytes(4) > rest.size()) return broken(name, "it is cut off");
    rest.remove_prefix(header->block_bytes(4));
    header = read_header(rest);
    if (!header) return broken(name, "its second header is missing");
    rest.remove_prefix(kHeaderBytes);
    time_bytes = 8;
  }
  if (header->block_bytes(time_bytes) > rest.size()) return broken(name, "it is cut off");
  if (header->types == 0) return broken(name, "it has no local time");
  if (header->leaps != 0) return broken(name, "it counts leap seconds, which the system's clock does not");

  const std::string_view times = rest.substr(0, header->changes * time_bytes);
  const std::string_view type_of = rest.substr(times.size(), header->changes);
  const std::string_view types = rest.substr(times.size() + type_of.size(), header->types * 6);
  const auto offset_of = [&](std::size_t type) {
    return static_cast<std::int32_t>(big_endian(types.substr(type * 6, 4)));
  };
  for (std::size_t i = 0; i < header->types; ++i) {
    if (offset_of(i) < kOffsetMin || offset_of(i) > kOffsetMax) return broken(name, "an offset exceeds 26 hours");
  }

  auto rules = std::make_shared<Rules>();
  rules->name = name;
  rules->first_offset = offset_of(0);
  rules->changes.reserve(header->changes);
  for (std::size_t i = 0; i < header->changes; ++i) {
    const std::int64_t at = big_endian(times.substr(i * time_bytes, time_bytes));
    const std::size_t type = static_cast<unsigned char>(type_of[i]);
    if (type >= header->types) return broken(name, "a change names a local time that is not there");
    if (i > 0 && at <= rules->changes.back().at) return broken(name, "its changes are not in order");
    rules->changes.push_back({at, offset_of(type)});
  }
  if (time_bytes == 8) {
    const auto footer = read_footer(name, rest.substr(header->block_bytes(time_bytes)));
    if (!footer) return footer.error();
    rules->after = *footer;
  }
  return Zone(std::move(rules));
}

Result<Zone> Zone::load(std::string_view name) {
  if (name == "UTC") return Zone();
  if (!is_zone_name(name)) {
    return Error{Fault::invalid, "time zone " + quote(name) + " must be a name like Europe/London or UTC"};
  }
  const char* directory = std::getenv("TZDIR");
  if (directory == nullptr || *directory == '\0') directory = "/usr/share/zoneinfo";
  const std::string path = std::string(directory) + "/" + std::string(name);
  const File file(path.c_str());
  if (!file.is_regular()) {
    return Error{Fault::unknown, "time zone " + quote(name) + " is not known: there is no file " + quote(path)};
  }
  const std::optional<std::string> bytes = file.read();
  if (!bytes) return Error{Fault::unavailable, "time zone " + quote(name) + " cannot be read from " + quote(path)};
  return parse(name, *bytes);
}

std::string_view Zone::name() const noexcept {
  return rules_ ? std::string_view(rules_->name) : "UTC";
}

ZoneSpan Zone::span_at(Wall wall) const noexcept {
  using namespace std::chrono;
  if (!rules_) return {Wall::min(), Wall::max(), seconds{0}};
  const OffsetSpan span = rules_->span_at(floor<seconds>(wall).time_since_epoch().count());
  return {span.since < -kWallSecondsMax ? Wall::min() : Wall{seconds{span.since}},
          span.until > kWallSecondsMax ? Wall::max() : Wall{seconds{span.until}}, seconds{span.offset}};
}

std::chrono::seconds Zone::offset_at(Wall wall) const noexcept {
  return span_at(wall).offset;
}

Local Zone::to_local(Wall wall) const noexcept {
  using namespace std::chrono;
  return Local{floor<seconds>(wall).time_since_epoch() + offset_at(wall)};
}

Wall Zone::to_wall(Local local) const noexcept {
  const std::int64_t wanted = std::clamp(local.time_since_epoch().count(), -kWallSecondsMax, kWallSecondsMax);
  // Whatever the offset, local clocks show at most `wanted` here. Each iteration advances to the next change of the
  // zone, within less than three days.
  std::int64_t utc = wanted - kOffsetMax;
  while (rules_) {
    const OffsetSpan span = rules_->span_at(utc);
    utc = std::max(utc, wanted - span.offset);
    if (utc < span.until) break;
    utc = span.until;
  }
  if (!rules_) utc = wanted;
  return Wall{std::chrono::seconds{std::clamp(utc, -kWallSecondsMax, kWallSecondsMax)}};
}

}  // namespace weir
