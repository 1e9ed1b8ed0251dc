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

// A calendar quota's size and what is used of it share one word with the window's end (algorithm/calendar.h).
inline constexpr std::int64_t quota_max = (std::int64_t{1} << 36) - 1;

// Buckets of one memory table.
inline constexpr std::uint64_t buckets_max = 1'000'000'000;

// A connection is not read while more than this waits to be written, or more answers are owed.
inline constexpr std::size_t unsent_bytes_max = 1u << 20;
inline constexpr std::size_t owed_max = 4096;

// Connections of one event loop.
inline constexpr std::size_t connections_max = 65'536;

// A key of a bucket that the caller brings along.
inline constexpr std::size_t own_key_bytes_max = 64u << 10;

// Questions decoded from one connection before the next one has its turn.
inline constexpr std::size_t queries_per_turn_max = 256;

// Limits charged by one request.
inline constexpr std::size_t charges_max = 16;

// A bucket key as stored: limit, ':' and id. Longer ids are hashed before they get here.
inline constexpr std::size_t key_bytes_max = 1024;

// Names of limits and routes.
inline constexpr std::size_t name_bytes_max = 63;

// An id of format text, and an attribute's value before it is replaced by its hash.
inline constexpr std::size_t id_bytes_max = 256;

// Ids of other formats (identify/): parts of a composite, names (RFC 1035 §2.3.4), sets of names, addresses of mail
// (RFC 5321 §4.5.3.1).
inline constexpr std::size_t id_parts_max = 8;
inline constexpr std::size_t domain_bytes_max = 253;
inline constexpr std::size_t domain_labels_max = 10;
inline constexpr std::size_t label_bytes_max = 63;
inline constexpr std::size_t fqdn_set_names_max = 100;
inline constexpr std::size_t email_bytes_max = 254;
inline constexpr std::size_t email_local_bytes_max = 64;

// Address prefixes in one map: overrides or an access list.
inline constexpr std::size_t prefixes_max = 1u << 20;

// A configuration file and how deep it may nest: yaml-cpp recurses.
inline constexpr std::size_t config_bytes_max = 256u << 20;
inline constexpr int config_depth_max = 32;

// A JSON text, a line of a trace among them, and how deep it may nest.
inline constexpr std::size_t json_bytes_max = 1u << 20;
inline constexpr std::size_t json_depth_max = 64;

// The latest instant a replayed trace may name, in the year 2160. A window later, instants still fit into 64 bits.
inline constexpr Duration trace_time_max = std::chrono::seconds{6'000'000'000};

// Values of a configuration that aliases repeat, all together: aliases of aliases grow exponentially.
inline constexpr std::size_t config_alias_nodes_max = 100'000;

// A secret in a file of its own.
inline constexpr std::size_t secret_bytes_max = 64u << 10;

// A time zone's name and its file: the largest of the system's is under 4 KiB.
inline constexpr std::size_t zone_name_bytes_max = 255;
inline constexpr std::size_t zone_bytes_max = 64u << 10;

}  // namespace weir::bounds
