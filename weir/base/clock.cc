#include "weir/base/clock.h"

#include <ctime>

namespace weir {
namespace {

Duration read(clockid_t id) noexcept {
  timespec ts{};
  clock_gettime(id, &ts);  // cannot fail for these two clocks
  return std::chrono::seconds{ts.tv_sec} + Duration{ts.tv_nsec};
}

}  // namespace

Time BootClock::time() const noexcept {
  return Time{read(CLOCK_BOOTTIME) + offset_};
}

Wall BootClock::wall() noexcept {
  return Wall{read(CLOCK_REALTIME)};
}

}  // namespace weir
