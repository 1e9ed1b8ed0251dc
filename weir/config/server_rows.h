// The rows of the table that fill Settings: listeners, stores, the proxy, tokens and logs. Private to fields.cc, which
// has the other rows: limits, routes and access lists.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/ascii.h"
#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/config/fields.h"
#include "weir/config/settings_reader.h"

namespace weir::config::rows {

using enum Type;
using enum Shape;
using enum Applies;

inline constexpr std::int64_t kMillisecond = 1'000'000;
inline constexpr std::int64_t kSecond = 1000 * kMillisecond;
inline constexpr auto kBucketsMax = static_cast<std::int64_t>(bounds::buckets_max);

constexpr Field row(std::string_view name, Type type, std::string_view doc, std::string_view fallback = {}) {
  return {name, type, doc, fallback};
}

inline bool requires_client(const Given& given, void*) {
  return given.text != "optional";
}

inline bool is_tls13(const Given& given, void*) {
  return given.text == "1.3";
}

inline std::string lower_case(const Given& given, void*) {
  return to_lower(given.text);
}

inline Duration read_idle_timeout(const Given& given, void* section) {
  if (given.text.empty()) return default_idle_timeout(static_cast<const Listener*>(section)->speak);
  return parse_duration(given.text).value();
}

inline constexpr std::array kClientTls = std::to_array<Field>({
    row("enabled", flag, "Whether the connection is encrypted.", "false").into<&RedisTls::enabled>(),
    row("ca_file", text,
        "File of CA certificates that the server's certificate is checked against; empty: those of the system.")
        .into<&RedisTls::ca_file>(),
    row("cert_file", text, "File of the client certificate, if the server requires one.").into<&RedisTls::cert_file>(),
    row("key_file", text, "File of the private key of the client certificate.").into<&RedisTls::key_file>(),
    row("server_name", text, "The name that the server's certificate must have; empty: the host of the address.")
        .into<&RedisTls::server_name>(),
});

inline constexpr std::array kListenTls = std::to_array<Field>({
    row("cert", text, "PEM file of the certificate chain.").must().into<&Tls::cert>(),
    row("key", text, "PEM file of its private key, without a password.").must().into<&Tls::key>(),
    row("client_ca", text, "File of CA certificates for client certificates; empty: clients are not asked for one.")
        .into<&Tls::client_ca>(),
    row("client_auth", choice,
        "Whether a client needs a certificate or may have one; with client_ca the default is require.")
        .of("require optional")
        .into<&Tls::require_client, requires_client>(),
    row("min_version", choice, "The oldest version of TLS that is accepted; default 1.2.")
        .of("1.2 1.3")
        .into<&Tls::only_tls13, is_tls13>(),
});

inline constexpr std::array kListen = std::to_array<Field>({
    row("address", address, "127.0.0.1:8080, :8080 (all IPv4 addresses), or a socket such as unix:/run/weir/weir.sock.")
        .must()
        .into<&Listener::address>(),
    row("speak", choice, "The protocol of the port; grpc is the same port as http.")
        .of("http grpc resp admin proxy")
        .as(one_or_list)
        .must()
        .into<&Listener::speak>(),
    row("token", secret, "The token that callers of the decision API must send; a list of two during a rotation.")
        .as(one_or_list)
        .applies(on_reload)
        .into<&Listener::tokens>(),
    row("write_token", secret, "The token for /v1/refund and /v1/reset, which also allows every other call.")
        .applies(on_reload)
        .into<&Listener::write_token>(),
    row("password", secret, "The password that RESP clients send with AUTH; empty: none is needed.")
        .applies(to_new_connections)
        .into<&Listener::password>(),
    row("write_password", secret,
        "The password for WEIR.REFUND, WEIR.RESET and DEL, which also allows every other command.")
        .applies(to_new_connections)
        .into<&Listener::write_password>(),
    row("tls", section, "The certificate; of a list, the client's server name chooses one.")
        .of(kListenTls)
        .as(one_or_list)
        .opens<&Listener::tls>(),
    row("proxy_protocol", flag, "Whether every connection begins with a header of the PROXY protocol (speak: proxy).",
        "false")
        .into<&Listener::proxy_protocol>(),
    row("idle_timeout", duration, "How long a connection can be idle; 0s: forever. Absent: 120s, and 0s for resp.")
        .at_least(0)
        .applies(on_reload)
        .into<&Listener::idle_timeout, read_idle_timeout>(),
    row("max_connection_age", duration,
        "How old an HTTP/2 connection gets, give or take a tenth, before its client must open a new one; 0s: no bound.",
        "0s")
        .at_least(0)
        .applies(to_new_connections)
        .into<&Listener::max_connection_age>(),
});

inline constexpr std::array kMemory = std::to_array<Field>({
    row("max_buckets", size, "The most buckets in memory; a full table evicts buckets that are close to full.", "50M")
        .between(1, kBucketsMax)
        .applies(on_restart)
        .into<&Memory::max_buckets>(),
    row("names", flag, "Whether the text of keys is kept, for lists in the admin API.", "true")
        .applies(on_restart)
        .into<&Memory::names>(),
    row("cleanup", duration, "How often the memory of full buckets is freed.", "5m")
        .at_least(kMillisecond)
        .into<&Memory::cleanup>(),
});

inline constexpr std::array kState = std::to_array<Field>({
    row("live", text, "A file, best on tmpfs, with which buckets survive the end of the process; empty: none.")
        .applies(on_restart)
        .into<&State::live>(),
    row("snapshot", text, "A file on disk with which buckets survive a reboot; empty: none.")
        .applies(on_restart)
        .into<&State::snapshot>(),
    row("every", duration, "How often the snapshot is written.", "10s").at_least(kMillisecond).into<&State::every>(),
});

inline constexpr std::array kRedis = std::to_array<Field>({
    row("endpoints", text, "Servers, sentinels or cluster nodes to connect to first; mode single takes one.",
        "127.0.0.1:6379")
        .as(list)
        .ordered()
        .into<&Redis::endpoints>(),
    row("mode", choice, "What the endpoints are.", "single")
        .of("single replication sentinel cluster")
        .into<&Redis::mode>(),
    row("username", text, "The ACL user; empty: the default user.").into<&Redis::username>(),
    row("password", secret, "The password of the user.").into<&Redis::password>(),
    row("db", integer, "The number of the database; 0 on a cluster.", "0").between(0, 65535).into<&Redis::db>(),
    row("master_name", text, "The name of the master, for mode sentinel.").into<&Redis::master_name>(),
    row("tls", section, "TLS to Redis.").of(kClientTls).opens<&Redis::tls>(),
    row("pool_size", integer, "Connections per event loop and master.", "2").between(1, 1024).into<&Redis::pool_size>(),
    row("timeout", duration, "How long one question to Redis can take; use at least eight round trips.", "250ms")
        .at_least(kMillisecond)
        .into<&Redis::timeout>(),
    row("key_prefix", text, "The prefix of every key.", "weir:").into<&Redis::key_prefix>(),
    row("hash_tag", text, "On a cluster: puts all buckets into one slot.").into<&Redis::hash_tag>(),
    row("fallback_buckets", size, "The most buckets in memory while Redis is down (inMemoryFallback).", "65536")
        .between(1, kBucketsMax)
        .into<&Redis::fallback_buckets>(),
    row("share", share, "The part of each limit that this server grants while Redis is down; 1/N for N servers.", "1/1")
        .into<&Redis::share>(),
    row("wait_replicas", integer, "Replicas that should confirm a decision before it is answered.", "0")
        .between(0, bounds::redis_wait_replicas_max)
        .into<&Redis::wait_replicas>(),
});

inline constexpr std::array kProxy = std::to_array<Field>({
    row("header_max", size, "The most bytes of a request's headers; can be lowered, not raised.", "64KiB")
        .between(1024, static_cast<std::int64_t>(bounds::http_head_bytes_max))
        .into<&Proxy::header_max>(),
    row("request_line_max", size, "The most bytes of a request's first line.", "8KiB")
        .between(256, static_cast<std::int64_t>(bounds::http_request_line_bytes_max))
        .into<&Proxy::request_line_max>(),
    row("body_max", size, "The most bytes of a request's body; 0: no bound.", "0").at_least(0).into<&Proxy::body_max>(),
    row("header_timeout", duration, "How long a client can take to send its headers.", "10s")
        .at_least(kMillisecond)
        .into<&Proxy::header_timeout>(),
    row("body_timeout", duration, "How long a client can pause within a body.", "30s")
        .at_least(kMillisecond)
        .into<&Proxy::body_timeout>(),
    row("connect_timeout", duration,
        "How long a connection to a backend can take, and how long a request waits for a free one.", "5s")
        .at_least(kMillisecond)
        .into<&Proxy::connect_timeout>(),
    row("response_timeout", duration, "How long a backend can take to begin its response.", "60s")
        .at_least(kMillisecond)
        .into<&Proxy::response_timeout>(),
    row("stream_idle_timeout", duration, "How long both sides can be silent once a response or tunnel has begun.", "5m")
        .at_least(kMillisecond)
        .into<&Proxy::stream_idle_timeout>(),
    row("idle_timeout", duration, "How long a connection can stay open without a request.", "120s")
        .at_least(kMillisecond)
        .into<&Proxy::idle_timeout>(),
    row("max_concurrent_requests", integer, "The most requests in progress in the whole process, tunnels included.",
        "10000")
        .at_least(1)
        .into<&Proxy::max_concurrent_requests>(),
    row("backend_connections", integer, "The most connections to one backend per event loop.", "1024")
        .between(1, static_cast<std::int64_t>(bounds::connections_max))
        .applies(on_restart)
        .into<&Proxy::backend_connections>(),
});

inline constexpr std::array kHeaders = std::to_array<Field>({
    row("ratelimit", choice,
        "Which rate limit headers HTTP answers have: X-RateLimit-* (x-ratelimit), RateLimit and RateLimit-Policy "
        "(ietf).",
        "x-ratelimit,ietf")
        .of("x-ratelimit ietf")
        .as(one_or_list)
        .into<&Headers::ratelimit>(),
    row("reset", choice, "Whether X-RateLimit-Reset is a time (seconds since 1970) or a wait (seconds from now).",
        "epoch")
        .of("epoch delta")
        .into<&Headers::reset>(),
});

inline constexpr std::array kJwt = std::to_array<Field>({
    row("keys", text, "File of a JWK set: the public keys of those who sign tokens.").into<&Jwt::keys>(),
    row("secret", secret, "The shared secret of HS256; empty: HS256 is off.").into<&Jwt::secret>(),
    row("issuer", text, "The value that iss must have; empty: any.").into<&Jwt::issuer>(),
    row("audience", text, "The value that aud must have or contain; empty: any.").into<&Jwt::audience>(),
    row("leeway", duration, "Tolerance for exp and nbf, because clocks differ.", "30s")
        .between(0, 300'000'000'000)
        .into<&Jwt::leeway>(),
    row("algorithms", choice, "The algorithms that are accepted.", "RS256,ES256,EdDSA,HS256")
        .of("RS256 ES256 EdDSA HS256")
        .as(one_or_list)
        .into<&Jwt::algorithms>(),
    row("header", text, "The header that holds the token; empty: the bearer token of Authorization.")
        .into<&Jwt::header, lower_case>(),
    row("cookie", text, "The cookie that holds the token.").into<&Jwt::cookie>(),
    row("require_exp", flag, "Whether a token must have exp, the time when it expires.", "true")
        .into<&Jwt::require_exp>(),
});

inline constexpr std::array kAdmin = std::to_array<Field>({
    row("read_token", secret, "The token for calls that only read.").into<&Admin::read_token>(),
    row("write_token", secret, "The token for every call.").into<&Admin::write_token>(),
});

inline constexpr std::array kLog = std::to_array<Field>({
    row("level", choice, "The least severe messages that are logged.", "info")
        .of("trace debug info warn error off")
        .into<&Log::level>(),
    row("format", choice, "Lines as text or as JSON objects.", "text").of("text json").into<&Log::format>(),
    row("access", choice, "The proxy's access log: off, Common Log Format, or JSON lines.", "off")
        .of("off common json")
        .into<&Log::access>(),
    row("access_file", text, "The file of the access log, reopened on SIGHUP; empty: standard output.")
        .into<&Log::access_file>(),
});

}  // namespace weir::config::rows
