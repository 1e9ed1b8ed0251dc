// Any bytes as a snapshot, usually with a correct checksum, so that the records are reached.
#include "weir/store/memory/snapshot.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "weir/base/assert.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

void read_back(std::string bytes, bool names) {
  const int fd = memfd_create("snapshot", 0);
  WEIR_ASSERT(fd >= 0 && write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  WEIR_ASSERT(lseek(fd, 0, SEEK_SET) == 0);
  auto reader = SnapshotReader::read(fd);
  if (!reader) {
    WEIR_ASSERT(!reader.error().detail.empty());
    return;
  }
  const auto table =
      std::move(*Table::create({.buckets_max = 100, .names = names, .huge_pages = false}, reader->head().seed));
  const Now now{Time{Duration{reader->head().time}} + 1h, Wall{1'800'000'000s}};
  const auto restored = reader->restore(*table, 30min, now);
  if (!restored) return;
  // The restored buckets can be listed, served and cleaned.
  std::uint64_t listed = 0;
  for (std::size_t g = 0; g < table->groups(); ++g) table->visit(g, [&](const Table::Bucket&) { ++listed; });
  WEIR_ASSERT(listed <= *restored);
  const Key key{"client"};
  constexpr Limit kLimit = Limit::per_second(10);
  for (int i = 0; i < 3; ++i) (void)table->spend(table->hash(key), key, kLimit, 1, now.time);
  (void)table->maintain(now);
}

}  // namespace
}  // namespace weir

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  weir::read_back(bytes, false);
  if (size < sizeof(std::uint64_t)) return 0;
  weir::Checksum checksum;
  checksum.add(std::string_view(bytes).substr(0, size - sizeof(std::uint64_t)));
  const std::uint64_t value = checksum.value();
  std::memcpy(bytes.data() + size - sizeof value, &value, sizeof value);
  weir::read_back(bytes, true);
  return 0;
}
