// Parses the times of access logs exactly. If the text is not a time, the Error quotes it.
#pragma once

#include <string_view>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/base/zone.h"

namespace weir::simulate {

struct Stamp {
  Wall time;
  Duration resolution;  // of the last digit written
};

// Caches the last minute it has parsed, because consecutive lines share it. Use it on one thread.
class ClfTime {
 public:
  // `zone` is for times without an offset.
  explicit ClfTime(Zone zone = {}) : zone_(std::move(zone)) {}

  // "18/Nov/2026:05:26:32 +0000", with or without a fraction and the offset.
  Result<Stamp> read(std::string_view text);

 private:
  Zone zone_;
  char minute_[17] = {};  // "18/Nov/2026:05:26"
  Wall local_{};          // the same, as if it were UTC
};

// "2026-11-18T05:26:32.123456Z", with an offset instead of Z, or in `zone` without either.
Result<Stamp> read_rfc3339(std::string_view text, const Zone& zone);

// Seconds since 1970 with an optional fraction; milli-, micro- or nanoseconds if there are more than 11, 14 or 17
// digits before the point.
Result<Stamp> read_epoch(std::string_view number);

}  // namespace weir::simulate
