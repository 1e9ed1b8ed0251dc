#include "weir/observe/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string>

namespace weir {
namespace {

constexpr std::size_t kFileBytesMax = 64 << 10;  // /proc/stat has a line per CPU

std::string read_whole(const char* path) {
  std::string text(kFileBytesMax, '\0');
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  std::size_t size = 0;
  while (fd >= 0 && size < text.size()) {
    const ssize_t got = read(fd, text.data() + size, text.size() - size);
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (fd >= 0) close(fd);
  text.resize(size);
  return text;
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Returns the word at that index, from 0.
std::string_view word(std::string_view text, std::size_t index) {
  for (; index > 0 && !text.empty(); --index) text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  return text.substr(0, text.find(' '));
}

std::uint64_t count_fds() {
  constexpr const char* kPath = "/proc/self/fd";
  // Linux 6.2 and later report the number without listing.
  struct stat about {};
  if (stat(kPath, &about) == 0 && about.st_size > 0) return static_cast<std::uint64_t>(about.st_size);
  DIR* const folder = opendir(kPath);
  if (folder == nullptr) return 0;
  std::uint64_t count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count < 3 ? 0 : count - 3;  // ".", ".." and the descriptor of the directory itself
}

}  // namespace

ProcessStats process_stats_from(std::string_view self_stat, std::string_view proc_stat, std::uint64_t ticks,
                                std::uint64_t page) {
  ProcessStats stats;
  // The second field is the program's name in parentheses and may contain anything. After it comes the third (proc(5)).
  const std::size_t name_end = self_stat.rfind(')');
  if (name_end == self_stat.npos || name_end + 2 > self_stat.size() || ticks == 0) return stats;
  const std::string_view fields = self_stat.substr(name_end + 2);
  const auto field = [&](std::size_t of_manual) { return number(word(fields, of_manual - 3)); };
  const auto seconds = [&](std::uint64_t in_ticks) {
    const auto per_tick = std::chrono::nanoseconds{1'000'000'000 / static_cast<std::int64_t>(ticks)};
    return per_tick * static_cast<std::int64_t>(in_ticks);
  };
  stats.cpu = seconds(field(14) + field(15));
  stats.virtual_bytes = field(23);
  stats.resident_bytes = field(24) * page;
  constexpr std::string_view kBootTime = "\nbtime ";
  const std::size_t boot = proc_stat.find(kBootTime);
  if (boot == proc_stat.npos) return stats;
  const auto booted =
      std::chrono::seconds{static_cast<std::int64_t>(number(proc_stat.substr(boot + kBootTime.size())))};
  stats.started = Wall{booted} + seconds(field(22));
  return stats;
}

ProcessStats read_process_stats() {
  ProcessStats stats = process_stats_from(read_whole("/proc/self/stat"), read_whole("/proc/stat"),
                                          static_cast<std::uint64_t>(std::max(sysconf(_SC_CLK_TCK), 0L)),
                                          static_cast<std::uint64_t>(std::max(sysconf(_SC_PAGESIZE), 0L)));
  stats.open_fds = count_fds();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) stats.max_fds = limit.rlim_cur;
  return stats;
}

}  // namespace weir
