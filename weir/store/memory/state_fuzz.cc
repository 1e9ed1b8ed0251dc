// A live file of a killed process, damaged anywhere: it is refused or served, and nothing else happens.
#include "weir/store/memory/state.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "weir/store/memory/state_scratch.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Limit kLimit = Limit::per_hour(6).with_burst(6);
constexpr std::size_t kFront = 8192;  // of every chunk: its pages are there, and the rest is zero

void spend(Table& table, int i, Time now) {
  const std::string text = "client-" + std::to_string(i);
  (void)table.spend(table.hash(Key{text}), Key{text}, kLimit, 1, now);
}

struct Sample {
  Scratch scratch;
  Machine machine;
  StateOptions options{
      scratch.path("live"), "", {.buckets_max = 20'000, .names = true, .huge_pages = false}};  // two groups
  std::size_t size = 0;
  std::string fronts;  // the fronts of all chunks, concatenated

  Sample() {
    auto state = std::move(*open_state(options, machine.boot));
    for (int i = 0; i < 60; ++i) spend(*state.table, i, machine.now(state).time);
    state = OpenState{};
    std::string bytes = slurp(options.live);
    // The previous version, because its header has no checksum: with one, every damaged header would be refused at
    // once.
    std::memcpy(bytes.data() + offsetof(Header, version), &kVersionWithoutChecksum, sizeof kVersionWithoutChecksum);
    size = bytes.size();
    for (std::size_t at = 0; at < size; at += Pages::kChunkBytes) {
      fronts += bytes.substr(at, kFront);
      WEIR_ASSERT(bytes.find_first_not_of('\0', at + kFront) >= at + Pages::kChunkBytes);
    }
  }
};

// Each patch is a position in four bytes and a value in eight.
void damage(std::string& bytes, std::string_view patches) {
  constexpr std::size_t kPatch = 12;
  for (; patches.size() >= kPatch; patches.remove_prefix(kPatch)) {
    std::uint32_t where = 0;
    std::memcpy(&where, patches.data(), sizeof where);
    const std::size_t at = where % bytes.size();
    const std::size_t fitting = std::min<std::size_t>(8, bytes.size() - at);
    bytes.replace(at, fitting, patches.substr(sizeof where, fitting));
  }
}

void open_damaged(const Sample& sample, std::string_view patches) {
  std::string fronts = sample.fronts;
  damage(fronts, patches);
  const int fd = open(sample.options.live.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  WEIR_ASSERT(fd >= 0 && ftruncate(fd, static_cast<off_t>(sample.size)) == 0);
  for (std::size_t i = 0; i * kFront < fronts.size(); ++i) {
    WEIR_ASSERT(pwrite(fd, fronts.data() + i * kFront, kFront, static_cast<off_t>(i * Pages::kChunkBytes)) ==
                static_cast<ssize_t>(kFront));
  }
  close(fd);
  auto opened = open_state(sample.options, sample.machine.boot);
  if (!opened) {
    WEIR_ASSERT(!opened.error().detail.empty());
    return;
  }
  Now now = sample.machine.now(*opened);
  Table& table = *opened->table;
  for (int i = 0; i < 100; ++i) spend(table, i, now.time);
  for (std::size_t g = 0; g < table.groups(); ++g) table.visit(g, [](const Table::Bucket&) {});
  for (int turn = 0; turn < 3; ++turn, now.time += 2h) {
    while (!table.maintain(now)) {
    }
  }
  (void)unlink((sample.options.live + ".damaged-1").c_str());
  (void)unlink(sample.options.live.c_str());
}

}  // namespace
}  // namespace weir

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const weir::Sample sample;
  weir::open_damaged(sample, std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
