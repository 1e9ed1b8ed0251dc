// Which bucket. The text names it everywhere: in the memory table it is hashed, in Redis it is the key, in lists it is
// shown.
#pragma once

#include <string_view>

namespace weir {

// What a bucket's word holds. A limit may have a rate and a quota: two buckets, which may have the same text.
enum class Kind : unsigned char {
  bucket,  // a TAT (algorithm/gcra.h)
  quota,   // a calendar window's end and what is used of it (algorithm/calendar.h)
};

// Buckets that callers bring along are "*:" and what they call it. No limit's name holds a '*', so they can never meet
// a configured limit's bucket.
inline constexpr std::string_view kOwnPrefix = "*:";

// The bucket that a probe of the store spends from. No limit's name begins with a '~'.
inline constexpr std::string_view kProbeBucket = "~probe";

// A view: the text must outlive the call it is passed to. "6:12345678" or "per-ip:203.0.113.9".
struct Key {
  std::string_view text;
  Kind kind = Kind::bucket;

  friend constexpr bool operator==(const Key&, const Key&) = default;
};

}  // namespace weir
