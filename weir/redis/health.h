// Whether the store is up, for all loops together. Logs each change once, never per request, and counts for /metrics.
//
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/log.h"
#include "weir/base/time.h"
#include "weir/redis/refusal.h"

namespace weir::redis {

// Why the failure policy was applied to a request: the label `kind` of weir_store_errors_total.
enum class Trouble : unsigned char {
  unreachable,  // no connection, or Redis counts as down
  timeout,
  lost,  // the connection was lost before the reply
  overloaded,
  malformed,      // a reply that is neither a decision nor an error
  first_refusal,  // followed by one per Refusal, in the same order
};
inline constexpr std::size_t kTroubles = static_cast<std::size_t>(Trouble::first_refusal) + kRefusals;
constexpr Trouble trouble_of(Refusal refusal) noexcept {
  return static_cast<Trouble>(static_cast<unsigned char>(Trouble::first_refusal) + static_cast<unsigned char>(refusal));
}
std::string_view print(Trouble trouble) noexcept;

class Health {
 public:
  // Writes one log message. Called from any thread.
  using Log = std::function<void(LogLevel, std::string_view)>;
  explicit Health(Log log) : log_(std::move(log)) {}

  // The configured failure_policy, for the log line of an outage.
  void set_failure_policy(std::string_view policy);

  // Adds a loop. Its store counts as down until came_up().
  void joined();
  // A loop's store is down; `was_up` says whether it was up before. Logs each cause of an outage once, at most
  // bounds::redis_causes_max of them.
  void went_down(bool was_up, std::string_view why, Time now);
  // A loop's store is up again.
  void came_up(Time now);
  void left(bool was_up);

  bool is_up() const noexcept { return down_.load(std::memory_order_relaxed) == 0; }

  void count(Trouble trouble) noexcept {
    troubles_[static_cast<std::size_t>(trouble)].fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t troubles(Trouble trouble) const noexcept {
    return troubles_[static_cast<std::size_t>(trouble)].load(std::memory_order_relaxed);
  }
  void count_denial_hit() noexcept { denial_hits_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t denial_hits() const noexcept { return denial_hits_.load(std::memory_order_relaxed); }
  // Writes to Redis that too few replicas confirmed in time. One write covers one or more requests.
  void count_unreplicated() noexcept { unreplicated_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t unreplicated() const noexcept { return unreplicated_.load(std::memory_order_relaxed); }
  void count_leased() noexcept { leased_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t leased() const noexcept { return leased_.load(std::memory_order_relaxed); }

  // Logs a reply that is not a decision, once per kind and minute.
  void log_odd_reply(Trouble kind, std::string_view reply, Time now);

  // Logs `message` unless it is the same as the last one: several links report the same problem.
  void warn(std::string_view message);

 private:
  Log log_;
  std::mutex mutex_;
  std::atomic<int> down_{0};  // loops
  bool down_logged_ = false;
  bool up_logged_ = false;
  Time down_since_{};
  std::vector<std::string> causes_;  // of this outage, those logged so far
  std::string warned_;
  std::string failure_policy_ = "passThrough";
  std::array<Time, kTroubles> odd_logged_{};  // when each kind was last logged; Time{}: never
  std::array<std::atomic<std::uint64_t>, kTroubles> troubles_{};
  std::atomic<std::uint64_t> denial_hits_{0};
  std::atomic<std::uint64_t> leased_{0};
  std::atomic<std::uint64_t> unreplicated_{0};
};

}  // namespace weir::redis
