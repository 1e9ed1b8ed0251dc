// Classifies Redis's error replies by what the caller can do. Redis's error codes are not used outside this file.
#pragma once

#include <cstddef>
#include <string_view>

#include "weir/base/result.h"

namespace weir::redis {

enum class Refusal : unsigned char {
  moved,         // MOVED: the slot has moved to another node
  ask,           // ASK: send this command to another node, after ASKING
  try_again,     // TRYAGAIN: some keys of the command have moved already
  cluster_down,  // CLUSTERDOWN
  loading,       // LOADING, MASTERDOWN: not ready yet
  read_only,     // READONLY: the server is a replica
  no_script,     // NOSCRIPT: load the script and repeat the command
  no_memory,     // OOM
  not_writable,  // MISCONF, NOREPLICAS: writes are refused
  not_allowed,   // NOAUTH, WRONGPASS, NOPERM: wrong credentials or permissions
  busy,          // BUSY: another script is running too long
  clock,         // WEIRCLOCK, from our script: the clocks differ by more than a quota's window
  other,
};
inline constexpr std::size_t kRefusals = static_cast<std::size_t>(Refusal::other) + 1;

struct Refused {
  Refusal refusal = Refusal::other;
  int slot = -1;             // of moved and ask; -1: unreadable
  std::string_view address;  // of moved and ask: "10.0.0.1:6379"; a view into the error's text
};

// Parses the text of an error reply, without its '-'.
Refused parse_refusal(std::string_view error) noexcept;

// Returns the name used in metrics and log lines.
std::string_view print(Refusal refusal) noexcept;

// Returns whether Redis did not apply the command, so that it may be sent again.
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

// The error for the caller when the command is not sent again. Always `unavailable`, which the failure policy handles.
Error to_error(Refusal refusal, std::string_view text);

}  // namespace weir::redis
