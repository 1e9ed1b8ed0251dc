#include "weir/redis/refusal.h"

#include <array>
#include <charconv>
#include <string>

#include "weir/base/text.h"
#include "weir/redis/slots.h"

namespace weir::redis {
namespace {

struct ErrorCode {
  std::string_view code;
  Refusal refusal;
};

constexpr std::array kErrorCodes = {
    ErrorCode{"MOVED", Refusal::moved},
    ErrorCode{"ASK", Refusal::ask},
    ErrorCode{"TRYAGAIN", Refusal::try_again},
    ErrorCode{"CLUSTERDOWN", Refusal::cluster_down},
    ErrorCode{"LOADING", Refusal::loading},
    ErrorCode{"MASTERDOWN", Refusal::loading},
    ErrorCode{"READONLY", Refusal::read_only},
    ErrorCode{"NOSCRIPT", Refusal::no_script},
    ErrorCode{"OOM", Refusal::no_memory},
    ErrorCode{"MISCONF", Refusal::not_writable},
    ErrorCode{"NOREPLICAS", Refusal::not_writable},
    ErrorCode{"NOAUTH", Refusal::not_allowed},
    ErrorCode{"WRONGPASS", Refusal::not_allowed},
    ErrorCode{"NOPERM", Refusal::not_allowed},
    ErrorCode{"BUSY", Refusal::busy},
    ErrorCode{"WEIRCLOCK", Refusal::clock},
};

std::string_view take_word(std::string_view& text) noexcept {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

Refusal find(std::string_view code) noexcept {
  for (const ErrorCode& known : kErrorCodes) {
    if (known.code == code) return known.refusal;
  }
  return Refusal::other;
}

// Before Redis 7 an error inside a script is wrapped: "ERR Error running script (call to f_…): @user_script: 49: -OOM
// command not allowed …".
Refusal find_wrapped(std::string_view text) noexcept {
  for (std::size_t dash = text.find(" -"); dash != std::string_view::npos; dash = text.find(" -", dash + 1)) {
    std::string_view rest = text.substr(dash + 2);
    const Refusal found = find(take_word(rest));
    if (found != Refusal::other) return found;
  }
  return Refusal::other;
}

}  // namespace

Refused parse_refusal(std::string_view error) noexcept {
  std::string_view rest = error;
  Refused refused{find(take_word(rest)), -1, {}};
  if (refused.refusal == Refusal::other) refused.refusal = find_wrapped(rest);
  if (refused.refusal != Refusal::moved && refused.refusal != Refusal::ask) return refused;
  const std::string_view slot = take_word(rest);
  int number = -1;
  const auto [end, failure] = std::from_chars(slot.data(), slot.data() + slot.size(), number);
  if (failure != std::errc{} || end != slot.data() + slot.size() || number < 0 || number >= static_cast<int>(kSlots))
    return refused;
  refused.slot = number;
  refused.address = take_word(rest);
  return refused;
}

std::string_view print(Refusal refusal) noexcept {
  switch (refusal) {
    case Refusal::moved:
      return "moved";
    case Refusal::ask:
      return "ask";
    case Refusal::try_again:
      return "try_again";
    case Refusal::cluster_down:
      return "cluster_down";
    case Refusal::loading:
      return "loading";
    case Refusal::read_only:
      return "read_only";
    case Refusal::no_script:
      return "no_script";
    case Refusal::no_memory:
      return "no_memory";
    case Refusal::not_writable:
      return "not_writable";
    case Refusal::not_allowed:
      return "not_allowed";
    case Refusal::busy:
      return "busy";
    case Refusal::clock:
      return "clock";
    case Refusal::other:
      break;
  }
  return "other";
}

Error to_error(Refusal refusal, std::string_view text) {
  return {Fault::unavailable, "Redis refused (" + std::string(print(refusal)) + "): " + quote(text)};
}

}  // namespace weir::redis
