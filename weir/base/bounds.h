// Every fixed bound of the program: sizes, counts and times. Each has a test at the bound and one beyond it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weir/base/time.h"

namespace weir::bounds {

// Longest time from empty to full. Sums of two such durations and any Time stay well below 62 bits.
inline constexpr Duration window_max = std::chrono::days{36'525};  // 100 years

// Upper limit of Time: plus a window and a day it fits the 62 bits of a bucket's word.
inline constexpr Duration time_max = std::chrono::days{16'436};  // 45 years

// A calendar quota's size and what is used of it share one word with the window's end (algorithm/calendar.h).
inline constexpr std::int64_t quota_max = (std::int64_t{1} << 36) - 1;
// The same where the word also has the second at which the window ends. More than 10^9, which is the fastest rate.
inline constexpr std::int64_t quick_quota_max = (std::int64_t{1} << 30) - 1;

// Servers that may share a limit's numbers while the store is unavailable.
inline constexpr std::int64_t share_max = 10'000;

// Redis: a server's host name, masters of a cluster.
inline constexpr std::size_t redis_host_bytes_max = 253;
inline constexpr std::size_t redis_nodes_max = 1000;
// Redis servers or sentinels that are queried for the topology.
inline constexpr std::size_t redis_probes_max = 16;

// Buckets of one memory table.
inline constexpr std::uint64_t buckets_max = 1'000'000'000;

// A connection is not read while it has more unsent bytes or more unanswered queries.
inline constexpr std::size_t unsent_bytes_max = 1u << 20;
inline constexpr std::size_t owed_max = 4096;

// Name lookups that may wait, and addresses of one name that are tried.
inline constexpr std::size_t lookups_max = 1024;
inline constexpr std::size_t resolved_addresses_max = 16;
// Names whose addresses are remembered for a few seconds (net/name_cache.h).
inline constexpr std::size_t names_cached_max = 1024;

// Bytes queued on a connection to a Redis that does not read.
inline constexpr std::size_t redis_unsent_bytes_max = 8u << 20;

// TLS: size of a certificate or key file, certificates of one listener, duration of a handshake.
inline constexpr std::size_t pem_bytes_max = 1u << 20;
inline constexpr std::size_t listener_certificates_max = 256;
inline constexpr Duration tls_handshake_time_max = std::chrono::seconds{10};

// Tokens of one listener: an old one and a new one.
inline constexpr std::size_t listener_tokens_max = 2;

// Connections of one listener on one event loop; fewer if the system allows fewer descriptors. Idle time of HTTP and
// admin connections.
inline constexpr std::size_t connections_max = 65'536;
inline constexpr Duration http_idle_time_max = std::chrono::seconds{120};

// A PROXY header (net/proxy_header.h) with its TLVs, and the time to receive it.
inline constexpr std::size_t proxy_header_bytes_max = 16 + 4096;
inline constexpr Duration proxy_header_time_max = std::chrono::seconds{10};
// Connections of one event loop whose PROXY header is incomplete.
inline constexpr std::size_t proxy_headers_pending_max = 1024;

// The edge proxy (proxy/): the body that is read for a `form:` key, backends of one route, error headers, and one
// client's X-Request-Id.
inline constexpr std::size_t proxy_form_bytes_max = 64u << 10;
inline constexpr std::size_t proxy_backends_max = 64;
inline constexpr std::size_t proxy_error_headers_max = 16;
inline constexpr std::size_t request_id_bytes_max = 128;

// A key of a caller's own bucket.
inline constexpr std::size_t own_key_bytes_max = 64u << 10;

// Queries decoded from one connection per turn.
inline constexpr std::size_t queries_per_turn_max = 256;
// Damaged state files kept; the next one replaces the last.
inline constexpr int damaged_files_max = 9;

// Attributes of one request: 100 headers, form fields and others.
inline constexpr std::size_t attributes_max = 128;

// Routes of one policy.
inline constexpr std::size_t routes_max = 10'000;

// Limits charged by one request, and their buckets: a limit's rate and its quota are two.
inline constexpr std::size_t charges_max = 16;
inline constexpr std::size_t charged_buckets_max = 2 * charges_max;

// Tiers of one limit. A reset covers the limit's own bucket and that of every tier in one query.
inline constexpr std::size_t tiers_max = charges_max - 2;

// Overrides of one Limiter.
inline constexpr std::size_t overrides_max = 1'000'000;

// Descriptors of one query, and entries of one descriptor: rules nest no deeper.
inline constexpr std::size_t descriptors_max = 64;
inline constexpr std::size_t descriptor_entries_max = 32;

// A bucket key as stored: limit, ':' and id. Longer ids are hashed before they get here.
inline constexpr std::size_t key_bytes_max = 1024;

// Names of limits and routes.
inline constexpr std::size_t name_bytes_max = 63;

// An id of format text, and an attribute's value before it is replaced by its hash.
inline constexpr std::size_t id_bytes_max = 256;

// Ids of other formats (identify/): parts of a composite, names (RFC 1035 §2.3.4), sets of names, email addresses (RFC
// 5321 §4.5.3.1).
inline constexpr std::size_t id_parts_max = 8;
inline constexpr std::size_t domain_bytes_max = 253;
inline constexpr std::size_t domain_labels_max = 10;
inline constexpr std::size_t label_bytes_max = 63;
inline constexpr std::size_t fqdn_set_names_max = 100;
inline constexpr std::size_t email_bytes_max = 254;
inline constexpr std::size_t email_local_bytes_max = 64;

// RESP: a client's command (the name counts as an argument) and a server's reply.
inline constexpr std::size_t resp_argument_bytes_max = 64u << 10;
inline constexpr std::size_t resp_arguments_max = 32;
inline constexpr std::size_t resp_command_bytes_max = 1u << 20;
inline constexpr std::size_t resp_reply_bytes_max = 1u << 20;
// Commands queued between MULTI and EXEC, and their bytes.
inline constexpr std::size_t resp_transaction_commands_max = 1000;
inline constexpr std::size_t resp_transaction_bytes_max = 1u << 20;
inline constexpr std::size_t resp_reply_values_max = 1u << 16;
inline constexpr int resp_reply_depth_max = 8;

// Names of RESP clients and their libraries.
inline constexpr std::size_t client_name_bytes_max = 256;

// Output bytes that a session holds behind an unanswered query, and that one receive() may write by itself.
inline constexpr std::size_t session_held_bytes_max = 64u << 10;

// Questions of one connection that wait for a remote store; a connection with that many is not read.
inline constexpr std::size_t waiting_max = 64;
// Buckets of one connection sent per turn while others wait, and buckets of one question.
inline constexpr std::size_t buckets_per_turn = 16;
// Connections skipped in one turn because their part of a cluster is busy.
inline constexpr std::size_t passed_over_max = 64;
// Question objects kept for reuse; others are freed.
inline constexpr std::size_t spare_questions_max = 256;

// Redis: buckets of one event loop in flight to one node: initial, minimum, maximum (flight_window.h).
inline constexpr std::size_t flight_window_first = 64;
inline constexpr std::size_t flight_window_min = 16;
inline constexpr std::size_t flight_window_max = 8192;

// Redis: commands of one connection without a reply, and their bytes; beyond that a request is answered `overloaded`.
// Sends of one command, including redirections.
inline constexpr std::size_t redis_unanswered_max = 16'384;
inline constexpr std::size_t redis_unanswered_bytes_max = 16u << 20;
inline constexpr int redis_sends_max = 5;
// Questions per command to Redis, and their buckets. Denials cached by one event loop.
inline constexpr std::size_t redis_batch_questions_max = 8;
inline constexpr std::size_t redis_batch_buckets_max = 16;
inline constexpr std::size_t denials_remembered_max = 65'536;
// Causes of one outage that are logged.
inline constexpr std::size_t redis_causes_max = 8;
// Buckets that one server leases at a time, and servers that lease one bucket.
inline constexpr std::size_t leases_max = 4'096;
inline constexpr std::int64_t lease_servers_max = 1'000;
// Refunded or reset buckets that are announced to other event loops individually; a loop that missed more drops all
// cached denials.
inline constexpr std::size_t denials_voided_max = 256;
// Keys per step of a scan on Redis, and per step after a reply that was too large.
inline constexpr std::size_t redis_scan_keys = 256;
inline constexpr std::size_t redis_scan_keys_few = 8;
// Replicas that may be required to confirm a decision.
inline constexpr std::int64_t redis_wait_replicas_max = 16;
// A window on Redis is below 2^53 ns, because Lua's numbers are doubles.
inline constexpr Duration redis_window_max = std::chrono::days{104};

// Address prefixes in one map: overrides or an access list.
inline constexpr std::size_t prefixes_max = 1u << 20;

// Adjustments and access entries made at run time, and the length of their texts.
inline constexpr std::size_t adjustments_max = 10'000;
inline constexpr std::size_t access_entries_max = 10'000;
inline constexpr std::size_t reason_bytes_max = 256;
inline constexpr std::size_t added_by_bytes_max = 256;
// Length of the mark that identifies the key of hashed ids.
inline constexpr std::size_t hash_mark_bytes = 8;

// Automatic blocks in force, and blocks that wait to be published together. Below the third limit of items in Known,
// blocks are published at once.
inline constexpr std::size_t blocks_max = 16'384;
inline constexpr std::size_t blocks_waiting_max = 4096;
inline constexpr std::size_t known_at_once_max = 256;

// Fields of one hash that servers share through Redis, including expired ones that are not removed yet.
inline constexpr std::size_t shared_fields_max = 65'536;

// Clients whose denials are counted for automatic blocks.
inline constexpr std::size_t denial_counters_max = 65'536;

// The file with adjustments and access entries.
inline constexpr std::size_t known_file_bytes_max = 64u << 20;

// Files of envoyproxy/ratelimit that are loaded.
inline constexpr std::size_t envoy_files_max = 10'000;

// A configuration file and how deep it may nest: yaml-cpp recurses.
inline constexpr std::size_t config_bytes_max = 256u << 20;
inline constexpr int config_depth_max = 32;

// Symbolic links followed in a path, the same as in the kernel.
inline constexpr int symlinks_max = 40;

// Changes by the admin API since the last reload or replaced policy.
inline constexpr std::size_t amendments_max = 64;

// A JSON text, including a line of a trace, and its nesting.
inline constexpr std::size_t json_bytes_max = 1u << 20;
inline constexpr std::size_t json_depth_max = 64;

// JSON Web Tokens (RFC 7519): length, keys, keys tried for a token without a kid, and cached outcomes.
inline constexpr std::size_t jwt_bytes_max = 8u << 10;
inline constexpr std::size_t jwt_keys_max = 100;
inline constexpr std::size_t jwt_keys_tried_max = 4;
inline constexpr std::size_t jwt_remembered_max = 16'384;

// The latest instant in a replayed trace, in 2096: the last window that a quota's state can represent ends in 2097.
inline constexpr Duration trace_time_max = std::chrono::seconds{4'000'000'000};

// Values that aliases of a configuration repeat in total: aliases of aliases grow exponentially.
inline constexpr std::size_t config_alias_nodes_max = 100'000;

// A secret in its own file.
inline constexpr std::size_t secret_bytes_max = 64u << 10;

// A time zone's name and its file: the largest of the system's is under 4 KiB.
inline constexpr std::size_t zone_name_bytes_max = 255;
inline constexpr std::size_t zone_bytes_max = 64u << 10;

// HTTP: a request line, a head and its fields, content, chunk lines, and all chunk extensions and trailers together.
inline constexpr std::size_t http_request_line_bytes_max = 63u << 10;
inline constexpr std::size_t http_head_bytes_max = 64u << 10;
inline constexpr std::size_t http_headers_max = 100;
inline constexpr std::size_t http_body_bytes_max = 1u << 20;
inline constexpr std::size_t http_chunk_line_bytes_max = 1024;
inline constexpr std::size_t http_chunk_spare_bytes_max = 16u << 10;

// Checks in one call of the HTTP API. A connection with that many unanswered queries, or with http_pipeline_max
// unanswered requests, is not read.
inline constexpr std::size_t http_checks_max = 1000;
inline constexpr std::size_t http_pipeline_max = 256;

// How long a peer may take to send a head, and then the content.
inline constexpr Duration http_head_time_max = std::chrono::seconds{10};
inline constexpr Duration http_body_time_max = std::chrono::seconds{30};

// HTTP exchanges: open ones of one loop, further ones for the 503 of requests that find no room, closed ones kept for
// reuse, and body bytes of one exchange and direction that are delivered and not consumed, or written and not drained.
// A response that is written whole may be longer: this long.
inline constexpr std::size_t http_refusals_max = 64;
inline constexpr std::size_t http_exchanges_max = (1u << 20) - http_refusals_max;
inline constexpr std::size_t http_spare_exchanges_max = 1024;
inline constexpr std::size_t http_window_bytes = 64u << 10;
inline constexpr std::size_t http_response_bytes_max = 16u << 20;

// Content of incomplete requests that are gathered on one connection.
inline constexpr std::size_t http_kept_bytes_max = 16u << 20;
// Memory of each text that a closed exchange or call keeps for the next one.
inline constexpr std::size_t http_spare_text_bytes_max = 16u << 10;

// HTTP calls (http/client_pool.h): closed ones kept for reuse, interim responses before a response, writes of one
// HTTP/1 request whose credit is returned separately, and how long a client waits until it sends a PING to a silent
// HTTP/2 server, and then for the answer.
inline constexpr std::size_t http_spare_calls_max = 1024;
inline constexpr int http_interim_responses_max = 32;
inline constexpr std::size_t http_unsent_parts_max = 64;
inline constexpr Duration http2_silence_max = std::chrono::seconds{30};
inline constexpr Duration http2_ping_time_max = std::chrono::seconds{10};
// Streams of one connection to a server whose settings are not known yet.
inline constexpr std::size_t http2_streams_before_settings = 100;

// HTTP/2 (wire/http2.h): bytes of one call of receive(), streams of one connection, windows of a stream and of the
// connection, and what all fields that one call decodes may take.
inline constexpr std::size_t http2_receive_bytes_max = 16u << 10;
inline constexpr std::size_t http2_streams_max = 128;
inline constexpr std::size_t http2_stream_window_bytes = 64u << 10;
inline constexpr std::size_t http2_connection_window_bytes = http2_streams_max * http2_stream_window_bytes;
inline constexpr std::size_t http2_fields_bytes_max = 1u << 20;
// Fields of one block, as a list (RFC 9113 §6.5.2). Above http_head_bytes_max the answer is 431. Above this bound the
// stream is reset: one byte can name a field of 4 KiB, and validating 16,000 of those takes a tenth of a second. A
// block without references to the table can hold about this much.
inline constexpr std::size_t http2_list_bytes_max = 256u << 10;
// Response bytes that wait on one connection: above this a stream may add only http2_crowded_stream_bytes, and above
// http_response_bytes_max new streams are refused.
inline constexpr std::size_t http2_buffered_bytes = 1u << 20;
inline constexpr std::size_t http2_crowded_stream_bytes = 8u << 10;
// How long a client may read nothing of a stream's response, and how long an answer to a PING may take.
inline constexpr Duration http2_write_time_max = std::chrono::seconds{30};
inline constexpr Duration http2_pong_time_max = std::chrono::seconds{1};
// A header block that is sent.
inline constexpr std::size_t http2_sent_block_bytes_max = 256u << 10;

// HTTP/2 floods (wire/http2_meter.h). A header block that is received and its CONTINUATION frames.
inline constexpr std::size_t http2_block_bytes_max = 256u << 10;
inline constexpr std::size_t http2_continuations_max = 16;
// Frames without content: how many at once, the time to regain one, and how many a frame with content or a completed
// exchange earns.
inline constexpr std::int64_t http2_idle_frames_max = 1000;
inline constexpr Duration http2_idle_frame_every = std::chrono::seconds{1};
inline constexpr std::int64_t http2_frames_earned_by_content = 2;
inline constexpr std::int64_t http2_frames_earned_by_exchange = 8;
// Streams that the peer makes end without a response. One that waited on us this long is a timeout and does not count.
inline constexpr std::int64_t http2_resets_max = 200;
inline constexpr Duration http2_reset_every = std::chrono::milliseconds{50};  // 20 a second
inline constexpr Duration http2_reset_excused_after = std::chrono::milliseconds{10};
// nghttp2's own limits, a second line of defense: resets at once and each second, settings of one frame, unsent
// acknowledgments.
inline constexpr std::uint64_t http2_library_resets_max = 20'000;
inline constexpr std::uint64_t http2_library_resets_per_second = 2'000;
inline constexpr std::size_t http2_settings_max = 32;
inline constexpr std::size_t http2_unsent_acks_max = 1000;

// gRPC: a message of a call.
inline constexpr std::size_t grpc_message_bytes_max = 256u << 10;
// How often a health watch checks the status.
inline constexpr Duration grpc_watch_every = std::chrono::seconds{1};

// Clients in each of a loop's three sketches, and denials kept per client.
inline constexpr std::size_t top_keys_max = 1024;
inline constexpr std::size_t denials_kept = 8;

// Subscribers to events, and bytes queued for one of them.
inline constexpr std::size_t event_subscribers_max = 64;
inline constexpr std::size_t event_queue_bytes_max = 256u << 10;

// Clients in one page of a list, and in one list of heavy hitters.
inline constexpr std::size_t admin_page_max = 1000;

// Reloads and changes that wait for the background thread.
inline constexpr std::size_t background_tasks_max = 64;

// Replays of access logs: one line, fields that a reader offers, lines read ahead to detect a log's format, bytes of
// lines that wait for earlier ones, clients in one list, malformed lines shown, and columns of a plot.
inline constexpr std::size_t log_line_bytes_max = 64u << 10;
inline constexpr std::size_t log_fields_max = 64;
inline constexpr std::size_t log_sample_lines = 1000;
inline constexpr std::size_t log_pending_bytes_max = 256u << 20;
inline constexpr std::size_t log_clients_shown_max = 1000;
inline constexpr std::size_t log_malformed_shown = 5;
inline constexpr std::size_t log_plot_columns = 240;
// Bytes of requests that an advice search keeps in memory; the rest goes to a temporary file.
inline constexpr std::size_t log_spool_memory_bytes_max = 4u << 20;

// Limits from a service (external/). Size of a reply, and of the tenant key and backend_url in it; how long an answer
// may be kept, and how much longer while the service fails.
inline constexpr std::size_t service_reply_bytes_max = 64u << 10;
inline constexpr std::size_t tenant_key_bytes_max = 256;
inline constexpr std::size_t backend_url_bytes_max = 2048;
inline constexpr Duration service_ttl_max = std::chrono::hours{24 * 7};
inline constexpr Duration stale_time = std::chrono::minutes{5};
// Connections of one loop to one service.
inline constexpr std::size_t service_connections_max = 100;
// Answers kept in the process.
inline constexpr std::size_t service_answers_max = 100'000;
inline constexpr std::size_t service_answer_stripes = 64;
// Timeout for reading the copy that servers share.
inline constexpr Duration shared_read_time_max = std::chrono::milliseconds{250};
// Breakers of single keys, and of a whole service.
inline constexpr int breaker_failures_max = 5;
inline constexpr Duration breaker_open_time = std::chrono::seconds{30};
inline constexpr Duration breaker_idle_time = std::chrono::seconds{60};
inline constexpr std::size_t breakers_max = 10'000;
inline constexpr std::uint32_t service_breaker_calls_min = 20;
inline constexpr Duration service_breaker_window = std::chrono::seconds{10};
inline constexpr Duration service_probe_every = std::chrono::seconds{1};
// A service none of whose calls has succeeded for this long is slow: a request with a stale answer does not wait for
// it.
inline constexpr Duration service_slow_time = std::chrono::milliseconds{100};

}  // namespace weir::bounds
