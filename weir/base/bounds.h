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

// Servers that may divide a limit's numbers among themselves while the store cannot be asked.
inline constexpr std::int64_t share_max = 10'000;

// Redis: a server's host name, masters of a cluster.
inline constexpr std::size_t redis_host_bytes_max = 253;
inline constexpr std::size_t redis_nodes_max = 1000;
// Servers that are asked where the others are.
inline constexpr std::size_t redis_scouts_max = 16;

// Buckets of one memory table.
inline constexpr std::uint64_t buckets_max = 1'000'000'000;

// A connection is not read while more than this waits to be written, or more answers are owed.
inline constexpr std::size_t unsent_bytes_max = 1u << 20;
inline constexpr std::size_t owed_max = 4096;

// Names that wait for somebody to look up their addresses, and addresses of one name that are tried.
inline constexpr std::size_t lookups_max = 1024;
inline constexpr std::size_t resolved_addresses_max = 16;

// What a connection that we opened may hold back for a peer that does not read.
inline constexpr std::size_t stream_unsent_bytes_max = 8u << 20;

// TLS: a file of certificates or a key, certificates of one listener, and how long a peer may take over the handshake.
inline constexpr std::size_t pem_bytes_max = 1u << 20;
inline constexpr std::size_t listener_certificates_max = 256;
inline constexpr Duration tls_handshake_time_max = std::chrono::seconds{10};

// Tokens that callers of one listener may show: an old one and a new one.
inline constexpr std::size_t listener_tokens_max = 2;

// Connections of one listener on one event loop; fewer where the system grants fewer descriptors. How long a connection
// of the HTTP and admin APIs may be idle.
inline constexpr std::size_t connections_max = 65'536;
inline constexpr Duration http_idle_time_max = std::chrono::seconds{120};

// A key of a bucket that the caller brings along.
inline constexpr std::size_t own_key_bytes_max = 64u << 10;

// Questions decoded from one connection before the next one has its turn.
inline constexpr std::size_t queries_per_turn_max = 256;
// State files kept aside because they could not be read; the next one takes the last one's place.
inline constexpr int damaged_files_max = 9;

// Attributes of one request: 100 headers, what comes with them, and fields of a form.
inline constexpr std::size_t attributes_max = 128;

// Routes of one policy.
inline constexpr std::size_t routes_max = 10'000;

// Limits charged by one request, and their buckets: a limit's rate and its quota are two.
inline constexpr std::size_t charges_max = 16;
inline constexpr std::size_t charged_buckets_max = 2 * charges_max;

// Tiers of one limit. A reset names the limit's own bucket and that of every tier in one question.
inline constexpr std::size_t tiers_max = charges_max - 2;

// Keys of one Limiter that have numbers of their own.
inline constexpr std::size_t overrides_max = 1'000'000;

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

// RESP: what a client may send as one command, the name counted among the arguments, and what a server may answer.
inline constexpr std::size_t resp_argument_bytes_max = 64u << 10;
inline constexpr std::size_t resp_arguments_max = 32;
inline constexpr std::size_t resp_command_bytes_max = 1u << 20;
inline constexpr std::size_t resp_reply_bytes_max = 1u << 20;
// Commands queued between MULTI and EXEC, and their bytes.
inline constexpr std::size_t resp_transaction_commands_max = 1000;
inline constexpr std::size_t resp_transaction_bytes_max = 1u << 20;
inline constexpr std::size_t resp_reply_values_max = 1u << 16;
inline constexpr int resp_reply_depth_max = 8;

// Names that RESP clients give themselves and their libraries.
inline constexpr std::size_t client_name_bytes_max = 256;

// Answers that wait in a session behind an answer that is owed, and what one call of receive() answers by itself.
inline constexpr std::size_t session_held_bytes_max = 64u << 10;

// Questions of one connection that wait to be sent to a store elsewhere: from here on the connection is not read.
inline constexpr std::size_t waiting_max = 64;
// Buckets of one connection that are sent per turn, while others wait: a question has at most as many.
inline constexpr std::size_t buckets_per_turn = 16;
// Connections passed over in one turn because the part of a cluster that they ask is busy.
inline constexpr std::size_t passed_over_max = 64;
// Objects for unanswered questions that are kept for the next ones; the others are freed.
inline constexpr std::size_t spare_questions_max = 256;

// Redis: buckets of one event loop in flight to one node, at first, at least and at most (flight_window.h).
inline constexpr std::size_t flight_window_first = 64;
inline constexpr std::size_t flight_window_min = 16;
inline constexpr std::size_t flight_window_max = 8192;

// Redis: commands of one connection without a reply, and their bytes; beyond, a request is answered `overloaded`.
// Times that one command is sent, redirections included. Denials remembered by one event loop.
inline constexpr std::size_t redis_unanswered_max = 16'384;
inline constexpr std::size_t redis_unanswered_bytes_max = 16u << 20;
inline constexpr int redis_sends_max = 5;
// Questions that share one command to Redis, and their buckets.
inline constexpr std::size_t redis_batch_questions_max = 8;
inline constexpr std::size_t redis_batch_buckets_max = 16;
inline constexpr std::size_t denials_remembered_max = 65'536;
// Causes of one outage that are logged.
inline constexpr std::size_t redis_causes_max = 8;
// Hot buckets that one server leases at a time, and servers that lease one bucket.
inline constexpr std::size_t leases_max = 4'096;
inline constexpr std::int64_t lease_servers_max = 1'000;
// Buckets refunded or reset that other event loops are told of one by one; who has missed more forgets all denials.
inline constexpr std::size_t denials_voided_max = 256;
// Keys that one step of a list asks Redis for, and after a reply that was too large.
inline constexpr std::size_t redis_scan_keys = 256;
inline constexpr std::size_t redis_scan_keys_few = 8;
// Replicas whose word for a decision may be waited for.
inline constexpr std::int64_t redis_wait_replicas_max = 16;
// Lua's numbers are doubles: a window on Redis is below 2^53 ns.
inline constexpr Duration redis_window_max = std::chrono::days{104};

// Address prefixes in one map: overrides or an access list.
inline constexpr std::size_t prefixes_max = 1u << 20;

// What operators may make at run time: adjustments, entries of the access lists, and how long their texts may be.
inline constexpr std::size_t adjustments_max = 10'000;
inline constexpr std::size_t access_entries_max = 10'000;
inline constexpr std::size_t reason_bytes_max = 256;
inline constexpr std::size_t added_by_bytes_max = 256;
// What tells one key of hashed ids from another.
inline constexpr std::size_t hash_mark_bytes = 8;

// Clients blocked automatically at one time, and blocks that wait to be published together. While less than that is
// known in all, blocks do not wait.
inline constexpr std::size_t blocks_max = 16'384;
inline constexpr std::size_t blocks_waiting_max = 4096;
inline constexpr std::size_t known_at_once_max = 256;

// Fields of one hash that servers share through Redis: adjustments, or entries and blocks, those that have ended not
// yet removed among them.
inline constexpr std::size_t shared_fields_max = 65'536;

// Clients whose denials are counted at one time, for automatic blocks.
inline constexpr std::size_t denial_counters_max = 65'536;

// The file that keeps adjustments and entries.
inline constexpr std::size_t known_file_bytes_max = 64u << 20;

// A configuration file and how deep it may nest: yaml-cpp recurses.
inline constexpr std::size_t config_bytes_max = 256u << 20;
inline constexpr int config_depth_max = 32;

// Symbolic links followed on the way to a file, as the kernel does.
inline constexpr int symlinks_max = 40;

// Changes by the admin API on top of each other, until a reload or a whole policy takes their place.
inline constexpr std::size_t amendments_max = 64;

// A JSON text, a line of a trace among them, and how deep it may nest.
inline constexpr std::size_t json_bytes_max = 1u << 20;
inline constexpr std::size_t json_depth_max = 64;

// A token that says who asks (RFC 7519), the keys it may be signed with, those of one kind that are tried for a token
// that names none, and the tokens whose outcome is remembered.
inline constexpr std::size_t jwt_bytes_max = 8u << 10;
inline constexpr std::size_t jwt_keys_max = 100;
inline constexpr std::size_t jwt_keys_tried_max = 4;
inline constexpr std::size_t jwt_remembered_max = 16'384;

// The latest instant a replayed trace may name, in the year 2096: the last window that a quota's state can name ends in
// 2097.
inline constexpr Duration trace_time_max = std::chrono::seconds{4'000'000'000};

// Values of a configuration that aliases repeat, all together: aliases of aliases grow exponentially.
inline constexpr std::size_t config_alias_nodes_max = 100'000;

// A secret in a file of its own.
inline constexpr std::size_t secret_bytes_max = 64u << 10;

// A time zone's name and its file: the largest of the system's is under 4 KiB.
inline constexpr std::size_t zone_name_bytes_max = 255;
inline constexpr std::size_t zone_bytes_max = 64u << 10;

// HTTP: a request line, a head and its fields, content, chunk lines, and what chunk extensions and trailers may take
// all together.
inline constexpr std::size_t http_request_line_bytes_max = 63u << 10;
inline constexpr std::size_t http_head_bytes_max = 64u << 10;
inline constexpr std::size_t http_headers_max = 100;
inline constexpr std::size_t http_body_bytes_max = 1u << 20;
inline constexpr std::size_t http_chunk_line_bytes_max = 1024;
inline constexpr std::size_t http_chunk_spare_bytes_max = 16u << 10;

// Checks in one call of the HTTP API; beyond as many questions, or requests, without an answer a connection is not
// read.
inline constexpr std::size_t http_checks_max = 1000;
inline constexpr std::size_t http_pipeline_max = 256;

// How long a peer may take to send a head, and then the content.
inline constexpr Duration http_head_time_max = std::chrono::seconds{10};
inline constexpr Duration http_body_time_max = std::chrono::seconds{30};

// Clients that a loop keeps in each of its two sketches, and the denials that it remembers of each of them.
inline constexpr std::size_t top_keys_max = 1024;
inline constexpr std::size_t denials_kept = 8;

// Those who watch decisions, and what waits for one of them.
inline constexpr std::size_t event_subscribers_max = 64;
inline constexpr std::size_t event_queue_bytes_max = 256u << 10;

// Clients in one page of a list, and in one list of heavy hitters.
inline constexpr std::size_t admin_page_max = 1000;

// Reloads, replaced configurations, and changes of adjustments and access lists that wait for their turn.
inline constexpr std::size_t background_tasks_max = 64;

}  // namespace weir::bounds
