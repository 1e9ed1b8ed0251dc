// The text that identifies a bucket. The memory table hashes it, Redis uses it as the key, and lists show it.
#pragma once

#include <string_view>

namespace weir {

// What a bucket's word holds. A limit with a rate and a quota has two buckets, which may have the same text.
enum class Kind : unsigned char {
  bucket,  // a TAT (algorithm/gcra.h)
  quota,   // a calendar window's end and how much of it is used (algorithm/calendar.h)
};

// The key of a bucket that a caller supplies is "*:" plus the caller's name for it. No limit's name contains a '*', so
// such a key cannot collide with a configured limit's bucket.
inline constexpr std::string_view kOwnPrefix = "*:";

// The bucket that a store probe spends from. No limit's name begins with a '~'.
inline constexpr std::string_view kProbeBucket = "~probe";

// A view: the text must outlive the call it is passed to. "6:12345678" or "per-ip:203.0.113.9".
struct Key {
  std::string_view text;
  Kind kind = Kind::bucket;

  friend constexpr bool operator==(const Key&, const Key&) = default;
};

}  // namespace weir
