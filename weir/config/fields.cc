#include "weir/config/fields.h"

#include <algorithm>
#include <array>

#include "weir/base/ascii.h"
#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/config/settings_reader.h"

namespace weir::config {
namespace {

using enum Type;
using enum Shape;
using enum Applies;

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1000 * kMillisecond;
constexpr std::int64_t kWindowMax = bounds::window_max.count();
constexpr auto kBucketsMax = static_cast<std::int64_t>(bounds::buckets_max);

constexpr Field row(std::string_view name, Type type, std::string_view doc, std::string_view fallback = {}) {
  return {name, type, doc, fallback};
}

bool requires_client(const Given& given, void*) {
  return given.text != "optional";
}

bool is_tls13(const Given& given, void*) {
  return given.text == "1.3";
}

std::string lower_case(const Given& given, void*) {
  return to_lower(given.text);
}

Duration read_idle_timeout(const Given& given, void* section) {
  if (given.text.empty()) return default_idle_timeout(static_cast<const Listener*>(section)->speak);
  return parse_duration(given.text).value();
}

// Rows that several sections have.
constexpr Field kCount = row("count", integer, "Tokens added every period.").at_least(1);
constexpr Field kPeriod = row("period", duration, "How often count tokens are added.").at_least(1);
constexpr Field kBurst = row("burst", integer, "The most tokens a bucket holds; defaults to count.").at_least(1);
constexpr Field kRate = row("rate", rate, "Shorthand for count and period, such as 100/s or 20 per minute.");
constexpr Field kAverage = row("average", integer, "Another word for count; 0 means unlimited.").at_least(0);
constexpr Field kCapacity = row("capacity", integer, "Another word for burst.").at_least(1);
constexpr Field kAddTokenMs =
    row("addTokenMs", integer, "One token is added every so many milliseconds.").between(1, kWindowMax / kMillisecond);
constexpr Field kNumber =
    row("number", integer, "Bucket keys begin with it instead of the name, so a rename keeps its buckets.")
        .between(1, 0xffff'ffff);
constexpr Field kId =
    row("id", id_format,
        "The format of ids: ipAddress, ipv6RangeCIDR, regId, domain, fqdnSet, email, text, or several joined by ':'.");

constexpr std::array kLease = std::to_array<Field>({
    row("tokens", integer, "Tokens a server takes at once.").must().at_least(1),
    row("servers", integer, "How many servers may hold a lease of one bucket.")
        .must()
        .between(1, bounds::lease_servers_max),
});

constexpr std::array kClientTls = std::to_array<Field>({
    row("enabled", flag, "Whether the connection is encrypted.", "false").into<&RedisTls::enabled>(),
    row("ca_file", text, "Certificates that may sign the peer's; empty: the system's.").into<&RedisTls::ca_file>(),
    row("cert_file", text, "Our own certificate, if the peer asks for one.").into<&RedisTls::cert_file>(),
    row("key_file", text, "The private key of our certificate.").into<&RedisTls::key_file>(),
    row("server_name", text, "The name the peer's certificate must have; empty: the host we dial.")
        .into<&RedisTls::server_name>(),
});

constexpr std::array kExternalHttp = std::to_array<Field>({
    row("url", text, "Where to POST the question.").must(),
    row("headers", secret, "Headers sent with every question.").as(map),
    row("ca_file", text, "Certificates that may sign the service's; empty: the system's."),
    row("cert_file", text, "Our own certificate, if the service asks for one."),
    row("key_file", text, "The private key of our certificate."),
});

constexpr std::array kExternalGrpc = std::to_array<Field>({
    row("address", address, "Host and port of the service.").must(),
    row("method", text, "The method's path.", "/weir.limits.v1.LimitService/GetLimits"),
    row("codec", choice, "How messages are written.", "protobuf").of("protobuf json"),
    row("metadata", secret, "Metadata sent with every question.").as(map),
    row("tls", section, "Encryption towards the service.").of(kClientTls).optional(),
});

constexpr std::array kHeaderFilter = std::to_array<Field>({
    row("allow_list", text, "Only these headers are sent.").as(list),
    row("deny_list", text, "These headers are never sent.").as(list),
});

constexpr std::array kExternal = std::to_array<Field>({
    row("enabled", flag, "Whether the service is asked.", "false"),
    row("limit", text, "At the top level: the limit whose numbers the service decides."),
    row("timeout", duration, "How long one call may take.", "5s").at_least(1),
    row("cache_ttl", duration, "How long an answer is kept that does not say.", "60s").at_least(0),
    row("max_concurrent_requests", integer, "Calls in flight at once.", "50").at_least(1),
    row("max_waiting", integer, "Requests that wait for a call; more use the limit's own numbers at once.", "10000")
        .at_least(0),
    row("backend_required", flag, "Whether a request without a backend_url is refused with 503.", "false"),
    row("http", section, "A service that speaks HTTP; exactly one of http and grpc.").of(kExternalHttp).optional(),
    row("grpc", section, "A service that speaks gRPC.").of(kExternalGrpc).optional(),
    row("allowed_hosts", text, "Private hosts an answer's backend_url may name.").as(list),
    row("header_filter", section, "Which request headers the service sees.").of(kHeaderFilter).optional(),
});

constexpr std::array kSchedule = std::to_array<Field>({
    row("days", days, "Days of the week in the zone, such as mon-fri or sat,sun.", "mon-sun"),
    row("hours", hours, "Hours of the day; past midnight they belong to the day they began on.", "00:00-24:00"),
    row("zone", zone, "The time zone of days and hours.", "UTC"),
    kCount,
    kPeriod,
    kBurst,
    kRate,
});

constexpr std::array kLimitBlock = std::to_array<Field>({
    row("after", integer, "So many denials by this limit.").must().at_least(1),
    row("within", duration, "In this time.", "1m").at_least(1),
    row("for", duration, "How long the id is denied.", "10m").at_least(1),
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
    row("key", key_source,
        "Where in a request the bucket's identity comes from; absent: callers name the limit and give the id.")
        .as(one_or_list),
    kCount,
    kPeriod,
    kBurst,
    kRate,
    kAverage,
    kCapacity,
    kAddTokenMs,
    row("maximumTimeBeforeTokenExpiry", integer, "Idle buckets are kept at least so many seconds.")
        .between(0, kWindowMax / kSecond),
    row("quota", quota, "At most so many in a calendar window, such as 100000/month."),
    row("zone", zone, "The time zone of the quota's windows.", "UTC"),
    row("schedule", section, "Other numbers at some hours; the first that matches wins.").of(kSchedule).as(list),
    kNumber,
    kId,
    row("mode", choice, "Whether the limit denies (enforce), only counts (shadow), or rests (off).", "enforce")
        .of("enforce shadow off"),
    row("hashed", flag, "Ids are stored, logged and exported only as a keyed hash.", "false"),
    row("per_route", flag, "One bucket per route and key.", "false"),
    row("missing", choice, "What a request without the key gets.", "skip").of("skip reject"),
    row("failure_policy", choice_any, "What this limit's requests get when the store cannot be asked.")
        .of("passThrough failClosed inMemoryFallback"),
    row("failure_code", integer, "What failClosed answers for this limit.").between(400, 599),
    row("lease", section, "Tokens a server may take from a shared bucket at once.").of(kLease),
    row("tier", key_source, "Where a request's tier comes from: header:NAME, descriptor:KEY or jwt:CLAIM."),
    row("tiers", section, "Other numbers by the client's tier; what a tier does not set is the limit's.")
        .of(kTier)
        .as(map),
    row("block", section, "An id that this limit denies often is deny-listed for a while.").of(kLimitBlock),
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
    row("tier", text, "This id has that tier of the limit, and no numbers of its own."),
    row("unlimited", flag, "This id is never limited."),
    row("blocked", flag, "This id is always denied."),
});

constexpr std::array kListenTls = std::to_array<Field>({
    row("cert", text, "The file of the certificate chain.").must().into<&Tls::cert>(),
    row("key", text, "The file of its private key.").must().into<&Tls::key>(),
    row("client_ca", text, "Certificates that may sign a client's; empty: none is asked for.").into<&Tls::client_ca>(),
    row("client_auth", choice, "Whether a client needs a certificate; with client_ca the default is require.")
        .of("require optional")
        .into<&Tls::require_client, requires_client>(),
    row("min_version", choice, "The oldest TLS spoken; default 1.2.").of("1.2 1.3").into<&Tls::only_tls13, is_tls13>(),
});

constexpr std::array kListen = std::to_array<Field>({
    row("address", address, "Address and port, or unix: and a path.").must().into<&Listener::address>(),
    row("speak", choice, "What the port speaks.")
        .of("http grpc resp admin proxy")
        .as(one_or_list)
        .must()
        .into<&Listener::speak>(),
    row("token", secret, "What callers of the decision API must show; two while one takes the other's place.")
        .as(one_or_list)
        .applies(on_reload)
        .into<&Listener::tokens>(),
    row("write_token", secret, "What callers of refund and reset must show.")
        .applies(on_reload)
        .into<&Listener::write_token>(),
    row("password", secret, "What RESP clients must AUTH with; empty: nothing.")
        .applies(to_new_connections)
        .into<&Listener::password>(),
    row("write_password", secret, "What WEIR.REFUND, WEIR.RESET and DEL need.")
        .applies(to_new_connections)
        .into<&Listener::write_password>(),
    row("tls", section, "Certificates; several are chosen by server name.")
        .of(kListenTls)
        .as(one_or_list)
        .opens<&Listener::tls>(),
    row("proxy_protocol", flag, "Whether connections begin with a PROXY header.", "false")
        .into<&Listener::proxy_protocol>(),
    row("idle_timeout", duration, "How long a connection may be idle; 0s: forever. Absent: 120s, with resp 0s.")
        .at_least(0)
        .into<&Listener::idle_timeout, read_idle_timeout>(),
});

constexpr std::array kMatch = std::to_array<Field>({
    row("path", text, "The path; * is one segment, ** the rest."),
    row("ignore_case", flag, "Whether the path matches in any case, as it does in Express and IIS.", "false"),
    row("methods", text, "Methods; absent: any.").as(one_or_list),
    row("host", text, "The host; *. at the start stands for any label."),
    row("headers", text, "Headers and the values they must have.").as(map),
});

// Of requests to backends. The configuration has them for all routes, and a route may have its own.
constexpr std::array kBackendTls = std::to_array<Field>({
    row("ca_file", text, "Certificates that may sign the backend's; empty: the system's."),
    row("cert_file", text, "Our own certificate, if the backend asks for one."),
    row("key_file", text, "The private key of our certificate."),
    row("server_name", text, "The name the backend's certificate must have; empty: the URL's host."),
});
constexpr Field kBackend =
    row("backend", text, "URL of the backend, or a list: http://, https:// or h2://.").as(one_or_list).ordered();
constexpr Field kBackendTlsRow =
    row("backend_tls", section, "TLS towards https:// backends, which are always verified.").of(kBackendTls).optional();
constexpr Field kErrorHeaders =
    row("error_headers", text, "Headers of every response that the proxy makes itself.").as(map);
constexpr Field kPreflight =
    row("preflight", choice, "Whether a CORS preflight takes a token (limit) or none (pass).").of("limit pass");

constexpr std::array kRoute = std::to_array<Field>({
    row("name", text, "The route's name in metrics and bucket keys.").must(),
    row("match", section, "Which requests take this route.").of(kMatch).must(),
    row("limits", text, "The limits that apply, in order, or none.").as(one_or_list).or_word("none"),
    row("charge", choice, "All limits or none, or one after another.", "together").of("together in-order"),
    row("mode", choice, "Of a limit's and a route's mode the laxer wins.", "enforce").of("enforce shadow off"),
    row("cost", integer, "Tokens a request takes, or header: and the header that says it.", "1")
        .or_word("header:")
        .at_least(1),
    kBackend,
    kBackendTlsRow,
    row("host", choice, "The Host a backend gets: the client's (keep) or the URL's (backend).", "keep")
        .of("keep backend"),
    row("response_timeout", duration, "As proxy.response_timeout.").at_least(kMillisecond),
    row("stream_idle_timeout", duration, "As proxy.stream_idle_timeout.").at_least(kMillisecond),
    row("body_max", size, "As proxy.body_max.").at_least(0),
    kErrorHeaders,
    kPreflight,
});

constexpr std::array kAccessEntry = std::to_array<Field>({
    row("ip", prefix, "An address or a CIDR."),
    row("apikey", secret, "An API key."),
    row("limit", text, "A limit's name; id says whose bucket."),
    row("id", text, "The id, together with limit."),
    row("reason", text, "Why; shown in lists."),
    row("expires", instant, "When the entry ends."),
});

constexpr std::array kBlock = std::to_array<Field>({
    row("after", integer, "So many denials; 0: never.", "0").at_least(0).into<&BlockRule::after>(),
    row("within", duration, "In this time.", "1m").at_least(1).into<&BlockRule::within>(),
    row("for", duration, "How long the client is denied.", "10m").at_least(1).into<&BlockRule::lasts>(),
    row("times", integer, "So many times its rate; 0: by denials only.", "0").at_least(0).into<&BlockRule::times>(),
});

constexpr std::array kAccess = std::to_array<Field>({
    row("trusted_proxies", prefix, "Peers whose X-Forwarded-For is believed; unix: those on UNIX sockets.")
        .as(list)
        .or_word("unix")
        .into<&Access::trusted_proxies>(),
    row("ipv6_prefix", integer, "IPv6 clients are counted by a prefix of this length.", "64")
        .between(1, 128)
        .into<&Access::ipv6_prefix>(),
    row("allow", section, "Who passes and takes no token.").of(kAccessEntry).as(list).whole(),
    row("deny", section, "Who is refused before any limit.").of(kAccessEntry).as(list).whole(),
    row("block", section, "Clients denied often are deny-listed for a while.").of(kBlock).opens<&Access::block>(),
});

constexpr std::array kMemory = std::to_array<Field>({
    row("max_buckets", size, "Buckets kept at most; beyond, those nearest to full go first.", "50M")
        .between(1, kBucketsMax)
        .applies(on_restart)
        .into<&Memory::max_buckets>(),
    row("names", flag, "Whether the texts of keys are kept, for lists.", "true")
        .applies(on_restart)
        .into<&Memory::names>(),
    row("cleanup", duration, "How often memory of full buckets is given back.", "5m")
        .at_least(kMillisecond)
        .into<&Memory::cleanup>(),
});

constexpr std::array kState = std::to_array<Field>({
    row("live", text, "A file on tmpfs that survives kill -9; empty: none.").applies(on_restart).into<&State::live>(),
    row("snapshot", text, "A file on disk that survives a reboot; empty: none.")
        .applies(on_restart)
        .into<&State::snapshot>(),
    row("every", duration, "How often the snapshot is written.", "10s").at_least(kMillisecond).into<&State::every>(),
});

constexpr std::array kRedis = std::to_array<Field>({
    row("endpoints", text, "Servers, sentinels or cluster nodes to begin with; mode single takes one.",
        "127.0.0.1:6379")
        .as(list)
        .ordered()
        .into<&Redis::endpoints>(),
    row("mode", choice, "What the endpoints are.", "single")
        .of("single replication sentinel cluster")
        .into<&Redis::mode>(),
    row("username", text, "The ACL user; empty: the default one.").into<&Redis::username>(),
    row("password", secret, "Its password.").into<&Redis::password>(),
    row("db", integer, "The database's number.", "0").between(0, 65535).into<&Redis::db>(),
    row("master_name", text, "What sentinels call the master.").into<&Redis::master_name>(),
    row("tls", section, "Encryption towards Redis.").of(kClientTls).opens<&Redis::tls>(),
    row("pool_size", integer, "Pipelined connections per event loop and node.", "2")
        .between(1, 1024)
        .into<&Redis::pool_size>(),
    row("timeout", duration, "How long one question may take.", "250ms").at_least(kMillisecond).into<&Redis::timeout>(),
    row("key_prefix", text, "What every key begins with.", "weir:").into<&Redis::key_prefix>(),
    row("hash_tag", text, "In a cluster: puts all buckets into one slot.").into<&Redis::hash_tag>(),
    row("fallback_buckets", size, "Buckets kept in memory while Redis is away.", "65536")
        .between(1, kBucketsMax)
        .into<&Redis::fallback_buckets>(),
    row("share", share, "What this server gives of a limit while Redis is away: 1/N of N servers.", "1/1")
        .into<&Redis::share>(),
    row("wait_replicas", integer, "Replicas that should have a decision before it is answered.", "0")
        .between(0, bounds::redis_wait_replicas_max)
        .into<&Redis::wait_replicas>(),
});

constexpr std::array kEnvoy = std::to_array<Field>({
    row("path", text, "A file or a directory.").must(),
    row("algorithm", choice, "How its limits count.", "token_bucket").of("token_bucket fixed_window"),
});

constexpr std::array kProxy = std::to_array<Field>({
    row("header_max", size, "Bytes of a request's headers; may be lowered, not raised.", "64KiB")
        .between(1024, static_cast<std::int64_t>(bounds::http_head_bytes_max))
        .into<&Proxy::header_max>(),
    row("request_line_max", size, "Bytes of a request's first line.", "8KiB")
        .between(256, static_cast<std::int64_t>(bounds::http_request_line_bytes_max))
        .into<&Proxy::request_line_max>(),
    row("body_max", size, "Bytes of a request's body; 0: no bound.", "0").at_least(0).into<&Proxy::body_max>(),
    row("header_timeout", duration, "How long a client may take to send its headers.", "10s")
        .at_least(kMillisecond)
        .into<&Proxy::header_timeout>(),
    row("body_timeout", duration, "How long a client may send no byte of an unfinished body.", "30s")
        .at_least(kMillisecond)
        .into<&Proxy::body_timeout>(),
    row("connect_timeout", duration, "How long connecting to a backend may take, and waiting for a connection.", "5s")
        .at_least(kMillisecond)
        .into<&Proxy::connect_timeout>(),
    row("response_timeout", duration, "How long a backend may take to begin its response.", "60s")
        .at_least(kMillisecond)
        .into<&Proxy::response_timeout>(),
    row("stream_idle_timeout", duration, "How long no byte may pass in either direction once a response has begun.",
        "5m")
        .at_least(kMillisecond)
        .into<&Proxy::stream_idle_timeout>(),
    row("idle_timeout", duration, "How long a connection may stay open without a request.", "120s")
        .at_least(kMillisecond)
        .into<&Proxy::idle_timeout>(),
    row("max_concurrent_requests", integer, "Requests in progress in the whole process, tunnels included.", "10000")
        .at_least(1)
        .into<&Proxy::max_concurrent_requests>(),
    row("backend_connections", integer, "Connections to one backend per event loop.", "1024")
        .between(1, static_cast<std::int64_t>(bounds::connections_max))
        .applies(on_restart)
        .into<&Proxy::backend_connections>(),
});

constexpr std::array kHeaders = std::to_array<Field>({
    row("ratelimit", choice, "Which families of headers answers carry.", "x-ratelimit,ietf")
        .of("x-ratelimit ietf")
        .as(one_or_list)
        .into<&Headers::ratelimit>(),
    row("reset", choice, "Whether X-RateLimit-Reset is a time or a wait.", "epoch")
        .of("epoch delta")
        .into<&Headers::reset>(),
});

constexpr std::array kJwt = std::to_array<Field>({
    row("keys", text, "A JWK set in a file: the public keys that sign tokens.").into<&Jwt::keys>(),
    row("secret", secret, "The shared secret of HS256; empty: HS256 is off.").into<&Jwt::secret>(),
    row("issuer", text, "What iss must be; empty: anything.").into<&Jwt::issuer>(),
    row("audience", text, "What aud must be or contain; empty: anything.").into<&Jwt::audience>(),
    row("leeway", duration, "Tolerance.", "30s").between(0, 300'000'000'000).into<&Jwt::leeway>(),
    row("algorithms", choice, "The algorithms that are accepted.", "RS256,ES256,EdDSA,HS256")
        .of("RS256 ES256 EdDSA HS256")
        .as(one_or_list)
        .into<&Jwt::algorithms>(),
    row("header", text, "The header that holds the token; empty: the bearer token.").into<&Jwt::header, lower_case>(),
    row("cookie", text, "The cookie that holds the token.").into<&Jwt::cookie>(),
    row("require_exp", flag, "Whether a token must have exp.", "true").into<&Jwt::require_exp>(),
});

constexpr std::array kAdmin = std::to_array<Field>({
    row("read_token", secret, "The token that may read.").into<&Admin::read_token>(),
    row("write_token", secret, "The token that may also write.").into<&Admin::write_token>(),
});

constexpr std::array kLog = std::to_array<Field>({
    row("level", choice, "The least that is logged.", "info").of("trace debug info warn error off").into<&Log::level>(),
    row("format", choice, "How a line is written.", "text").of("text json").into<&Log::format>(),
    row("access", choice, "The proxy's access log: off, Common Log Format, or JSON lines.", "off")
        .of("off common json")
        .into<&Log::access>(),
    row("access_file", text, "The access log's file, reopened on SIGHUP; empty: standard output.")
        .into<&Log::access_file>(),
});

constexpr std::array kFile = std::to_array<Field>({
    row("listen", section, "Ports; absent: HTTP and gRPC on 8080, RESP on 6380 and admin on 9090, loopback only.")
        .of(kListen)
        .as(list)
        .applies(on_restart)
        .opens<&Settings::listen>(),
    row("threads", integer, "Event loops; auto: one per core.", "auto")
        .or_word("auto")
        .between(1, 1024)
        .applies(on_restart)
        .into<&Settings::threads>(),
    row("limits", section, "Limits by name, or the path of a file that holds them.").of(kLimit).as(map_or_path),
    row("names", section, "Numbers and id formats of limits by name, or the path of a file that holds them.")
        .of(kName)
        .as(map_or_path),
    row("overrides", section, "Other numbers for one id, by Name:id, or the path of a file that holds them.")
        .of(kOverride)
        .as(map_or_path),
    row("routes", section, "Which limits apply to which requests; the first match wins.").of(kRoute).as(list).whole(),
    row("access", section, "Who is asking, who always passes and who never does.")
        .of(kAccess)
        .opens<&Settings::access>(),
    row("store", choice, "Where buckets live.", "memory")
        .of("memory redis")
        .applies(on_restart)
        .into<&Settings::store>(),
    row("memory", section, "The memory store.").of(kMemory).opens<&Settings::memory>(),
    row("state", section, "What survives a restart.").of(kState).opens<&Settings::state>(),
    row("hash_key", secret, "The key of hashed ids; empty: made once and kept with the state.")
        .into<&Settings::hash_key>(),
    row("redis", section, "The Redis store.").of(kRedis).applies(on_restart).opens<&Settings::redis>(),
    row("cache_redis", section, "A second Redis for the external service's answers.")
        .of(kRedis)
        .optional()
        .applies(on_restart),
    row("failure_policy", choice_any, "What requests get when the store cannot be asked.", "passThrough")
        .of("passThrough failClosed inMemoryFallback")
        .into<&Settings::failure_policy>(),
    row("failure_code", integer, "What failClosed answers.", "429").between(400, 599).into<&Settings::failure_code>(),
    row("external", section, "A service that decides a limit's numbers.").of(kExternal).optional(),
    row("envoy", section, "Files of envoyproxy/ratelimit, loaded as they are.").of(kEnvoy).as(list).or_word("path"),
    row("proxy", section, "The edge proxy.").of(kProxy).opens<&Settings::proxy>(),
    kBackend,
    kBackendTlsRow,
    kErrorHeaders,
    kPreflight,
    row("drain_timeout", duration, "How long requests may finish.", "30s").at_least(0).into<&Settings::drain_timeout>(),
    row("drain_delay", duration, "How long a server that was told to end goes on serving, not ready, before it drains.",
        "0s")
        .at_least(0)
        .into<&Settings::drain_delay>(),
    row("headers", section, "Headers of answers.").of(kHeaders).opens<&Settings::headers>(),
    row("jwt", section, "Tokens whose claims are keys of limits.").of(kJwt).opens<&Settings::jwt>(),
    row("admin", section, "Tokens of the admin API.").of(kAdmin).opens<&Settings::admin>(),
    row("log", section, "The log.").of(kLog).opens<&Settings::log>(),
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

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size() && !text.empty();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string join(std::span<const std::string_view> parts, std::string_view separator) {
  std::string out;
  for (const std::string_view part : parts) out.append(out.empty() ? "" : separator).append(part);
  return out;
}

std::string_view find_choice(const Field& field, std::string_view text) {
  for (const std::string_view word : split(field.choices, ' ')) {
    if (word == text || (field.type == Type::choice_any && equals_ignoring_case(word, text))) return word;
  }
  return {};
}

const Field* find_field(std::span<const Field> fields, std::string_view name) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace weir::config
