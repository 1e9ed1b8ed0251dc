#include "weir/config/fields.h"

#include <array>

#include "weir/base/bounds.h"
#include "weir/config/server_rows.h"
#include "weir/config/settings_reader.h"

namespace weir::config {
namespace {

using namespace rows;
using enum Type;
using enum Shape;
using enum Applies;

constexpr std::int64_t kWindowMax = bounds::window_max.count();

// Rows that several sections have.
constexpr Field kCount = row("count", integer, "Tokens added every period.").at_least(1);
constexpr Field kPeriod = row("period", duration, "The time in which count tokens are added, evenly.").at_least(1);
constexpr Field kBurst =
    row("burst", integer, "The most tokens a bucket holds: what may pass at once; defaults to count.").at_least(1);
constexpr Field kRate = row("rate", rate, "Shorthand for count and period, such as 100/s or 20 per minute.");
constexpr Field kAverage =
    row("average", integer, "The same as count, in the words of EdgeQuota; 0 means unlimited.").at_least(0);
constexpr Field kCapacity = row("capacity", integer, "The same as burst, in the words of Guardian.").at_least(1);
constexpr Field kAddTokenMs = row("addTokenMs", integer, "One token is added after this many milliseconds.")
                                  .between(1, kWindowMax / kMillisecond);
constexpr Field kNumber =
    row("number", integer,
        "Bucket keys start with this number instead of the name, so that a renamed limit keeps its buckets.")
        .between(1, 0xffff'ffff);
constexpr Field kId =
    row("id", id_format,
        "The format of ids: ipAddress, ipv6RangeCIDR, regId, domain, fqdnSet, email, text, or several joined by ':'.");

constexpr std::array kLease = std::to_array<Field>({
    row("tokens", integer, "The most tokens that a server takes from the bucket at once.").must().at_least(1),
    row("servers", integer, "How many servers can hold a lease of one bucket at the same time.")
        .must()
        .between(1, bounds::lease_servers_max),
});

constexpr std::array kExternalHttp = std::to_array<Field>({
    row("url", text, "The http:// or https:// URL to which questions are posted.").must(),
    row("headers", secret, "Headers of every question, such as a token of the service.").as(map),
    row("ca_file", text,
        "File of CA certificates that the service's certificate is checked against; empty: those of the system."),
    row("cert_file", text, "File of the client certificate, if the service requires one."),
    row("key_file", text, "File of the private key of the client certificate."),
});

constexpr std::array kExternalGrpc = std::to_array<Field>({
    row("address", address, "Host and port of the service.").must(),
    row("method", text, "The path of the method.", "/weir.limits.v1.LimitService/GetLimits"),
    row("codec", choice, "The encoding of messages.", "protobuf").of("protobuf json"),
    row("metadata", secret, "Metadata of every question, such as a token of the service.").as(map),
    row("tls", section, "TLS to the service.").of(kClientTls).optional(),
});

constexpr std::array kHeaderFilter = std::to_array<Field>({
    row("allow_list", text, "The only headers that the service gets.").as(list),
    row("deny_list", text, "Headers that the service never gets.").as(list),
});

constexpr std::array kExternal = std::to_array<Field>({
    row("enabled", flag, "Whether the service is asked.", "false"),
    row("limit", text, "The limit whose numbers the service decides; at the top level only."),
    row("timeout", duration, "How long one call of the service can take.", "5s").at_least(1),
    row("cache_ttl", duration, "How long an answer is kept that does not say so itself.", "60s").at_least(0),
    row("max_concurrent_requests", integer, "The most calls in progress.", "50").at_least(1),
    row("max_waiting", integer,
        "The most requests that wait for an answer; further ones use the limit's own numbers at once.", "10000")
        .at_least(0),
    row("backend_required", flag, "Whether a request is refused with 503 if the answer has no backend_url.", "false"),
    row("http", section, "A service that speaks HTTP; set either this or grpc.").of(kExternalHttp).optional(),
    row("grpc", section, "A service that speaks gRPC; set either this or http.").of(kExternalGrpc).optional(),
    row("allowed_hosts", text, "Private hosts that the backend_url of an answer can name.").as(list),
    row("header_filter", section, "Which headers of a request the service gets.").of(kHeaderFilter).optional(),
});

constexpr std::array kSchedule = std::to_array<Field>({
    row("days", days, "Days of the week in the zone, such as mon-fri or 'sat,sun'.", "mon-sun"),
    row("hours", hours, "Hours of the day; hours that cross midnight belong to the day on which they begin.",
        "00:00-24:00"),
    row("zone", zone, "The time zone of days and hours.", "UTC"),
    kCount,
    kPeriod,
    kBurst,
    kRate,
});

constexpr std::array kLimitBlock = std::to_array<Field>({
    row("after", integer, "The number of denials by this limit that lead to a block.").must().at_least(1),
    row("within", duration, "The time in which they must occur.", "1m").at_least(1),
    row("for", duration, "How long the id stays on the deny list.", "10m").at_least(1),
});

constexpr std::array kTier = std::to_array<Field>({
    kCount,
    kPeriod,
    kBurst.saying("The most tokens a bucket holds."),
    kRate,
    kAverage,
    kCapacity,
    kAddTokenMs,
    row("quota", quota, "A quota in place of the limit's own, in the same calendar window."),
    row("unlimited", flag, "Clients of this tier are never limited."),
});

constexpr std::array kLimit = std::to_array<Field>({
    row("key", key_source, "Where in a request the id comes from; absent: callers name the limit and send the id.")
        .as(one_or_list),
    kCount,
    kPeriod,
    kBurst,
    kRate,
    kAverage,
    kCapacity,
    kAddTokenMs,
    row("maximumTimeBeforeTokenExpiry", integer,
        "Seconds for which a full, idle bucket stays in lists (memory store only).")
        .between(0, kWindowMax / kSecond),
    row("quota", quota, "The most tokens in a calendar window, such as 100000/month."),
    row("zone", zone, "The time zone of the quota's windows.", "UTC"),
    row("schedule", section, "Other numbers at some hours; the first entry that matches applies.")
        .of(kSchedule)
        .as(list),
    kNumber,
    kId,
    row("mode", choice,
        "Whether the limit denies (enforce), decides and charges but never denies (shadow), or does nothing (off).",
        "enforce")
        .of("enforce shadow off"),
    row("hashed", flag, "Whether ids are stored, logged and shown only as a keyed hash (see hash_key).", "false"),
    row("per_route", flag, "Whether each route has its own bucket for an id.", "false"),
    row("missing", choice,
        "What happens to a request without the key: ignore this limit (skip), or answer 400 missing_key (reject).",
        "skip")
        .of("skip reject"),
    row("failure_policy", choice_any, "The failure_policy of this limit; absent: the one of the file.")
        .of("passThrough failClosed inMemoryFallback"),
    row("failure_code", integer, "The failure_code of this limit; absent: the one of the file.").between(400, 599),
    row("lease", section, "Lets each server take several tokens of a shared bucket with one question to Redis.")
        .of(kLease),
    row("tier", key_source, "Where a request's tier comes from: header:NAME, descriptor:KEY or jwt:CLAIM."),
    row("tiers", section, "Other numbers by the client's tier; what a tier does not set comes from the limit.")
        .of(kTier)
        .as(map),
    row("block", section, "Puts an id that this limit denies often on the deny list for a while.").of(kLimitBlock),
    row("external", section, "A service that decides this limit's numbers.").of(kExternal),
});

constexpr std::array kName = std::to_array<Field>({
    kNumber,
    kId,
});

constexpr std::array kOverride = std::to_array<Field>({
    kCount,
    kPeriod,
    kBurst,
    kRate,
    kAverage,
    kCapacity,
    kAddTokenMs,
    row("quota", quota, "A quota in place of the limit's own, such as 100000/month."),
    row("tier", text, "The tier that this id always has, instead of numbers of its own."),
    row("unlimited", flag, "This id is never limited."),
    row("blocked", flag, "This id is always denied."),
});

constexpr std::array kMatch = std::to_array<Field>({
    row("path", text, "The path; * is one segment, ** at the end is the rest."),
    row("ignore_case", flag, "Whether the path matches in any case, as it does in Express and IIS.", "false"),
    row("methods", text, "The methods; absent: any method.").as(one_or_list),
    row("host", text, "The host without a port; *.example.com is every name below example.com."),
    row("headers", text, "Headers and the value that each must have.").as(map),
});

// Of requests to backends. The configuration has them for all routes, and a route may have its own.
constexpr std::array kBackendTls = std::to_array<Field>({
    row("ca_file", text,
        "File of CA certificates that a backend's certificate is checked against; empty: those of the system."),
    row("cert_file", text, "File of the client certificate, if the backend requires one."),
    row("key_file", text, "File of the private key of the client certificate."),
    row("server_name", text, "The name that the backend's certificate must have; empty: the host of its URL."),
});
constexpr Field kBackend =
    row("backend", text, "The URL of the backend (http://, https:// or h2://); several take turns.")
        .as(one_or_list)
        .ordered();
constexpr Field kBackendTlsRow =
    row("backend_tls", section, "TLS to https:// backends, whose certificates are always verified.")
        .of(kBackendTls)
        .optional();
constexpr Field kErrorHeaders =
    row("error_headers", text, "Headers of every response that the proxy itself makes.").as(map);
constexpr Field kPreflight =
    row("preflight", choice, "Whether a CORS preflight request takes a token (limit, the default) or none (pass).")
        .of("limit pass");

constexpr std::array kRoute = std::to_array<Field>({
    row("name", text, "The name of the route in metrics, logs and bucket keys.").must(),
    row("match", section, "Which requests take this route; all conditions must hold.").of(kMatch).must(),
    row("limits", text,
        "The limits that apply, in the order in which they are charged; absent: every limit with a key.")
        .as(one_or_list)
        .or_word("none"),
    row("charge", choice, "Charge all limits or none (together), or one after another until one denies (in-order).",
        "together")
        .of("together in-order"),
    row("mode", choice, "The mode of every limit here; the more permissive of this and the limit's own applies.",
        "enforce")
        .of("enforce shadow off"),
    row("cost", integer, "Tokens that a request takes, or the header that holds their number.", "1")
        .or_word("header:")
        .at_least(1),
    kBackend,
    kBackendTlsRow,
    row("host", choice, "The Host that a backend gets: the client's (keep) or that of the backend's URL (backend).",
        "keep")
        .of("keep backend"),
    row("response_timeout", duration, "Replaces proxy.response_timeout for this route.").at_least(kMillisecond),
    row("stream_idle_timeout", duration, "Replaces proxy.stream_idle_timeout for this route.").at_least(kMillisecond),
    row("body_max", size, "Replaces proxy.body_max for this route.").at_least(0),
    kErrorHeaders,
    kPreflight,
});

constexpr std::array kAccessEntry = std::to_array<Field>({
    row("ip", prefix, "An address or a CIDR."),
    row("apikey", secret, "An API key."),
    row("limit", text, "The name of a limit, together with id."),
    row("id", text, "One id of that limit."),
    row("reason", text, "A note for operators; clients never see it."),
    row("expires", instant, "When the entry ends; absent: never."),
});

constexpr std::array kBlock = std::to_array<Field>({
    row("after", integer, "The number of denials that lead to a block; 0: denials never do.", "0")
        .at_least(0)
        .into<&BlockRule::after>(),
    row("within", duration, "The time in which they must occur.", "1m").at_least(1).into<&BlockRule::within>(),
    row("for", duration, "How long the client stays on the deny list.", "10m").at_least(1).into<&BlockRule::lasts>(),
    row("times", integer, "Also block a client that asks for more than this many times what its limit gives; 0: never.",
        "0")
        .at_least(0)
        .into<&BlockRule::times>(),
});

constexpr std::array kAccess = std::to_array<Field>({
    row("trusted_proxies", prefix,
        "Peers whose X-Forwarded-For is used to find the client; unix: peers on UNIX sockets.")
        .as(list)
        .or_word("unix")
        .into<&Access::trusted_proxies>(),
    row("ipv6_prefix", integer, "IPv6 addresses that share a prefix of this many bits count as one client.", "64")
        .between(1, 128)
        .into<&Access::ipv6_prefix>(),
    row("allow", section, "Clients that pass and take no token.").of(kAccessEntry).as(list).whole(),
    row("deny", section, "Clients that are refused before any limit is asked.").of(kAccessEntry).as(list).whole(),
    row("block", section, "Puts clients that are denied often on the deny list for a while.")
        .of(kBlock)
        .opens<&Access::block>(),
});

constexpr std::array kEnvoy = std::to_array<Field>({
    row("path", text, "A file of rules, or a directory of such files.").must(),
    row("algorithm", choice, "How its limits count; absent: as buckets up to an hour, in fixed windows from a day on.")
        .of("token_bucket fixed_window"),
});

constexpr std::array kFile = std::to_array<Field>({
    row("listen", section, "Where Weir listens; absent: HTTP and gRPC on 127.0.0.1:8080, RESP on 6380, admin on 9090.")
        .of(kListen)
        .as(list)
        .applies(on_restart)
        .opens<&Settings::listen>(),
    row("threads", integer, "The number of event loops; auto: one per core.", "auto")
        .or_word("auto")
        .between(1, 1024)
        .applies(on_restart)
        .into<&Settings::threads>(),
    row("limits", section, "Limits by name, or the path of a file that holds them.").of(kLimit).as(map_or_path),
    row("names", section, "Numbers and id formats of limits by name, or the path of a file that holds them.")
        .of(kName)
        .as(map_or_path),
    row("overrides", section, "Other numbers for single ids, by NAME:ID, or the path of a file that holds them.")
        .of(kOverride)
        .as(map_or_path),
    row("routes", section, "Which limits apply to which requests; the first route that matches decides.")
        .of(kRoute)
        .as(list)
        .whole(),
    row("access", section, "How clients are identified, and which always pass or never do.")
        .of(kAccess)
        .opens<&Settings::access>(),
    row("store", choice, "Where buckets live: in this process, or in a Redis that several servers share.", "memory")
        .of("memory redis")
        .applies(on_restart)
        .into<&Settings::store>(),
    row("memory", section, "Settings of the memory store.").of(kMemory).opens<&Settings::memory>(),
    row("state", section, "Files with which buckets survive a restart.").of(kState).opens<&Settings::state>(),
    row("hash_key", secret, "The key of hashed ids; empty: Weir creates one and keeps it with the state or on Redis.")
        .into<&Settings::hash_key>(),
    row("redis", section, "Settings of the Redis store.").of(kRedis).applies(on_restart).opens<&Settings::redis>(),
    row("cache_redis", section, "A second Redis for the external service's answers.")
        .of(kRedis)
        .optional()
        .applies(on_restart)
        .opens<&Settings::cache_redis>(),
    row("failure_policy", choice_any,
        "What happens while Redis is down: requests pass (passThrough), are refused (failClosed), or are counted by "
        "this server alone (inMemoryFallback).",
        "passThrough")
        .of("passThrough failClosed inMemoryFallback")
        .into<&Settings::failure_policy>(),
    row("failure_code", integer, "The HTTP status of a request that failClosed refuses.", "429")
        .between(400, 599)
        .into<&Settings::failure_code>(),
    row("external", section, "A service that decides a limit's numbers.").of(kExternal).optional(),
    row("envoy", section, "Files or directories of envoyproxy/ratelimit rules, loaded unchanged.")
        .of(kEnvoy)
        .as(list)
        .or_word("path"),
    row("merge_domains", flag, "Whether several files of `envoy` can have rules of one domain.", "false")
        .into<&Settings::merge_domains>(),
    row("envoy_headers", flag, "Whether responses of the gRPC service have RateLimit-Limit, -Remaining and -Reset.",
        "false")
        .into<&Settings::envoy_headers>(),
    row("envoy_metadata", flag, "Whether responses of the gRPC service describe the request in dynamic_metadata.",
        "false")
        .into<&Settings::envoy_metadata>(),
    row("proxy", section, "Bounds and timeouts of the edge proxy.").of(kProxy).opens<&Settings::proxy>(),
    kBackend,
    kBackendTlsRow,
    kErrorHeaders,
    kPreflight,
    row("drain_timeout", duration, "How long a server that shuts down waits for requests in progress.", "30s")
        .at_least(0)
        .into<&Settings::drain_timeout>(),
    row("drain_delay", duration,
        "How long a server that shuts down keeps serving, not ready, before it stops listening.", "0s")
        .at_least(0)
        .into<&Settings::drain_delay>(),
    row("headers", section, "Rate limit headers of HTTP answers.").of(kHeaders).opens<&Settings::headers>(),
    row("jwt", section, "How JSON Web Tokens are verified, whose claims can be keys of limits.")
        .of(kJwt)
        .opens<&Settings::jwt>(),
    row("admin", section, "Tokens of the admin API.").of(kAdmin).opens<&Settings::admin>(),
    row("log", section, "The log, and the access log of the proxy.").of(kLog).opens<&Settings::log>(),
});

}  // namespace

std::span<const Field> file_fields() {
  return kFile;
}
std::span<const Field> limit_fields() {
  return kLimit;
}
std::span<const Field> name_fields() {
  return kName;
}
std::span<const Field> override_fields() {
  return kOverride;
}
std::span<const Field> schedule_fields() {
  return kSchedule;
}

}  // namespace weir::config
