// Every bound of the program, in one place. Each has a test at its edge and one past it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weir/base/time.h"

namespace weir::bounds {

// A bucket may take at most this long from empty to full. Sums of two such durations and any Time stay far inside 62
// bits.
inline constexpr Duration window_max = std::chrono::days{36'525};  // 100 years

// A state's Time stays below this: with a window and a day on top it fits the 62 bits of a bucket's word.
inline constexpr Duration time_max = std::chrono::days{16'436};  // 45 years

// A calendar quota's size and what is used of it share one word with the window's end (algorithm/calendar.h).
inline constexpr std::int64_t quota_max = (std::int64_t{1} << 36) - 1;

// Buckets of one memory table.
inline constexpr std::uint64_t buckets_max = 1'000'000'000;

// State files kept aside because they could not be read; the next one takes the last one's place.
inline constexpr int damaged_files_max = 9;

// Limits charged by one request.
inline constexpr std::size_t charges_max = 16;

// A bucket key as stored: limit, ':' and id. Longer ids are hashed before they get here.
inline constexpr std::size_t key_bytes_max = 1024;

// Names of limits and routes.
inline constexpr std::size_t name_bytes_max = 63;

// An id of format text, and an attribute's value before it is replaced by its hash.
inline constexpr std::size_t id_bytes_max = 256;

// A configuration file and how deep it may nest: yaml-cpp recurses.
inline constexpr std::size_t config_bytes_max = 256u << 20;
inline constexpr int config_depth_max = 32;

}  // namespace weir::bounds
