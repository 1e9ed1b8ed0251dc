#include "bench/machine.h"

#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "weir/base/assert.h"
#include "weir/base/clock.h"

namespace weir::bench {
namespace {

Duration read_clock(clockid_t id) noexcept {
  timespec ts{};
  clock_gettime(id, &ts);
  return std::chrono::seconds{ts.tv_sec} + Duration{ts.tv_nsec};
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

struct alignas(64) ChainLine {
  std::uint64_t next;
};

}  // namespace

std::string machine_line() {
  utsname system{};
  uname(&system);
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  return cpu_name() + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores, Linux " + system.release +
         ", " + WEIR_BENCH_COMPILER + ", " + date;
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

Duration wall_time() noexcept {
  return read_clock(CLOCK_MONOTONIC);
}
Duration thread_cpu_time() noexcept {
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

std::vector<double> run_apart(const std::function<std::vector<double>()>& measure) {
  int ends[2];
  WEIR_ASSERT(pipe(ends) == 0);
  const pid_t child = fork();
  WEIR_ASSERT(child >= 0);
  if (child == 0) {
    close(ends[0]);
    const std::vector<double> numbers = measure();
    const std::size_t bytes = numbers.size() * sizeof(double);
    const bool written = write(ends[1], numbers.data(), bytes) == static_cast<ssize_t>(bytes);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::vector<double> numbers;
  double number = 0;
  while (read(ends[0], &number, sizeof number) == sizeof number) numbers.push_back(number);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return {};
  return numbers;
}

void maintain_until(Table& table, const std::atomic<bool>& stop) {
  const BootClock clock;
  while (!stop.load(std::memory_order_relaxed)) {
    table.maintain(clock.now());
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  // Memory that stayed free between two calls goes back to the system.
  for (int rounds = 0; rounds < 3;) rounds += table.maintain(clock.now()) ? 1 : 0;
}

double dependent_line_ns(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  bytes = std::max(bytes, kHugePage) / kHugePage * kHugePage;
  void* const raw =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  WEIR_ASSERT(raw != MAP_FAILED);
  const auto address = reinterpret_cast<std::size_t>(raw);
  auto* const lines = reinterpret_cast<ChainLine*>((address + kHugePage - 1) / kHugePage * kHugePage);
  madvise(lines, bytes, MADV_HUGEPAGE);
  const std::size_t count = bytes / sizeof(ChainLine);
  for (std::size_t i = 0; i < count; ++i) lines[i].next = i;
  // Sattolo's shuffle: one cycle through every line.
  std::mt19937_64 random(1);
  for (std::size_t i = count - 1; i > 0; --i) std::swap(lines[i].next, lines[random() % i].next);

  const std::size_t steps = std::min<std::size_t>(count, 1'000'000);
  double best = 1e9;
  std::uint64_t at = 0;
  for (int rep = 0; rep < 5; ++rep) {
    const Duration start = thread_cpu_time();
    for (std::size_t i = 0; i < steps; ++i) at = lines[at].next;
    asm volatile("" : : "r"(at));
    best = std::min(best, static_cast<double>((thread_cpu_time() - start).count()) / static_cast<double>(steps));
  }
  munmap(raw, bytes + kHugePage);
  return best;
}

void progress(const std::string& what) {
  if (isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r\033[K%s", what.c_str());
  std::fflush(stderr);
}

}  // namespace weir::bench
