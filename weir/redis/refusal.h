// What an error reply of Redis means for whoever asked. The words of Redis stop here.
#pragma once

#include <cstddef>
#include <string_view>

#include "weir/base/result.h"

namespace weir::redis {

enum class Refusal : unsigned char {
  moved,         // MOVED: the slot lives elsewhere, for good
  ask,           // ASK: this once elsewhere, after ASKING
  try_again,     // TRYAGAIN: some keys of the command have moved already
  cluster_down,  // CLUSTERDOWN
  loading,       // LOADING, MASTERDOWN: not yet
  read_only,     // READONLY: a replica, after a failover
  no_script,     // NOSCRIPT: load it and ask again
  no_memory,     // OOM
  not_writable,  // MISCONF, NOREPLICAS: writes are refused
  not_allowed,   // NOAUTH, WRONGPASS, NOPERM: an operator's matter
  busy,          // BUSY: a script runs for too long
  clock,         // ours: server and Redis disagree about the time by more than a quota's window
  other,
};
inline constexpr std::size_t kRefusals = static_cast<std::size_t>(Refusal::other) + 1;

struct Refused {
  Refusal refusal = Refusal::other;
  int slot = -1;             // of moved and ask; -1: unreadable
  std::string_view address;  // of moved and ask: "10.0.0.1:6379"; a view into the error's text
};

// Takes the text of an error reply without its '-'.
Refused parse_refusal(std::string_view error) noexcept;

// The word for metrics and log lines.
std::string_view print(Refusal refusal) noexcept;

// Redis says that the command was not applied: it may be sent again.
constexpr bool is_not_applied(Refusal refusal) noexcept {
  switch (refusal) {
    case Refusal::moved:
    case Refusal::ask:
    case Refusal::try_again:
    case Refusal::loading:
    case Refusal::read_only:
    case Refusal::no_script:
      return true;
    default:
      return false;
  }
}

// For the asker, when nothing is sent again: always `unavailable`, which is what a failure policy acts on.
Error to_error(Refusal refusal, std::string_view text);

}  // namespace weir::redis
