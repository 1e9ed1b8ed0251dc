#include "weir/config/fields.h"

#include <algorithm>
#include <array>

#include "weir/base/bounds.h"

namespace weir::config {
namespace {

using enum Type;
using enum Shape;

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1000 * kMillisecond;
constexpr std::int64_t kWindowMax = bounds::window_max.count();
constexpr auto kBucketsMax = static_cast<std::int64_t>(bounds::buckets_max);

constexpr std::array kLease = std::to_array<Field>({
    {.name = "tokens", .type = integer, .doc = "Tokens a server takes at once.", .required = true, .min = 1},
    {.name = "servers",
     .type = integer,
     .doc = "How many servers may hold a lease of one bucket.",
     .required = true,
     .min = 1,
     .max = bounds::lease_servers_max},
});

constexpr std::array kClientTls = std::to_array<Field>({
    {.name = "enabled", .type = flag, .fallback = "false", .doc = "Whether the connection is encrypted."},
    {.name = "ca_file", .type = text, .doc = "Certificates that may sign the peer's; empty: the system's."},
    {.name = "cert_file", .type = text, .doc = "Our own certificate, if the peer asks for one."},
    {.name = "key_file", .type = text, .doc = "The private key of our certificate."},
    {.name = "server_name", .type = text, .doc = "The name the peer's certificate must have; empty: the host we dial."},
});

constexpr std::array kExternalHttp = std::to_array<Field>({
    {.name = "url", .type = text, .doc = "Where to POST the question.", .required = true},
    {.name = "headers", .type = secret, .shape = map, .doc = "Headers sent with every question."},
    {.name = "ca_file", .type = text, .doc = "Certificates that may sign the service's; empty: the system's."},
    {.name = "cert_file", .type = text, .doc = "Our own certificate, if the service asks for one."},
    {.name = "key_file", .type = text, .doc = "The private key of our certificate."},
});

constexpr std::array kExternalGrpc = std::to_array<Field>({
    {.name = "address", .type = text, .doc = "Host and port of the service.", .required = true},
    {.name = "method", .type = text, .fallback = "/weir.limits.v1.LimitService/GetLimits", .doc = "The method's path."},
    {.name = "codec",
     .type = choice,
     .fallback = "protobuf",
     .doc = "How messages are written.",
     .choices = "protobuf json"},
    {.name = "metadata", .type = secret, .shape = map, .doc = "Metadata sent with every question."},
    {.name = "tls", .type = section, .doc = "Encryption towards the service.", .fields = kClientTls},
});

constexpr std::array kHeaderFilter = std::to_array<Field>({
    {.name = "allow_list", .type = text, .shape = list, .doc = "Only these headers are sent."},
    {.name = "deny_list", .type = text, .shape = list, .doc = "These headers are never sent."},
});

constexpr std::array kExternal = std::to_array<Field>({
    {.name = "enabled", .type = flag, .fallback = "false", .doc = "Whether the service is asked."},
    {.name = "limit", .type = text, .doc = "At the top level: the limit whose numbers the service decides."},
    {.name = "timeout", .type = duration, .fallback = "5s", .doc = "How long one call may take.", .min = 1},
    {.name = "cache_ttl",
     .type = duration,
     .fallback = "60s",
     .doc = "How long an answer is kept that does not say.",
     .min = 0},
    {.name = "max_concurrent_requests", .type = integer, .fallback = "50", .doc = "Calls in flight at once.", .min = 1},
    {.name = "max_waiting",
     .type = integer,
     .fallback = "10000",
     .doc = "Requests that wait for a call; more use the limit's own numbers at once.",
     .min = 0},
    {.name = "backend_required",
     .type = flag,
     .fallback = "false",
     .doc = "Whether a request without a backend_url is refused with 503."},
    {.name = "http",
     .type = section,
     .doc = "A service that speaks HTTP; exactly one of http and grpc.",
     .fields = kExternalHttp},
    {.name = "grpc", .type = section, .doc = "A service that speaks gRPC.", .fields = kExternalGrpc},
    {.name = "allowed_hosts", .type = text, .shape = list, .doc = "Private hosts an answer's backend_url may name."},
    {.name = "header_filter",
     .type = section,
     .doc = "Which request headers the service sees.",
     .fields = kHeaderFilter},
});

constexpr std::array kSchedule = std::to_array<Field>({
    {.name = "days",
     .type = days,
     .fallback = "mon-sun",
     .doc = "Days of the week in the zone, such as mon-fri or sat,sun."},
    {.name = "hours",
     .type = hours,
     .fallback = "00:00-24:00",
     .doc = "Hours of the day; past midnight they belong to the day they began on."},
    {.name = "zone", .type = zone, .fallback = "UTC", .doc = "The time zone of days and hours."},
    {.name = "count", .type = integer, .doc = "Tokens added every period.", .min = 1},
    {.name = "period", .type = duration, .doc = "How often count tokens are added.", .min = 1},
    {.name = "burst", .type = integer, .doc = "The most tokens a bucket holds; defaults to count.", .min = 1},
    {.name = "rate", .type = rate, .doc = "Shorthand for count and period, such as 100/s or 20 per minute."},
});

constexpr std::array kLimitBlock = std::to_array<Field>({
    {.name = "after", .type = integer, .doc = "So many denials by this limit.", .required = true, .min = 1},
    {.name = "within", .type = duration, .fallback = "1m", .doc = "In this time.", .min = 1},
    {.name = "for", .type = duration, .fallback = "10m", .doc = "How long the id is denied.", .min = 1},
});

constexpr std::array kTier = std::to_array<Field>({
    {.name = "count", .type = integer, .doc = "Tokens added every period.", .min = 1},
    {.name = "period", .type = duration, .doc = "How often count tokens are added.", .min = 1},
    {.name = "burst", .type = integer, .doc = "The most tokens a bucket holds.", .min = 1},
    {.name = "rate", .type = rate, .doc = "Shorthand for count and period, such as 100/s or 20 per minute."},
    {.name = "average", .type = integer, .doc = "Another word for count; 0 means unlimited.", .min = 0},
    {.name = "capacity", .type = integer, .doc = "Another word for burst.", .min = 1},
    {.name = "addTokenMs",
     .type = integer,
     .doc = "One token is added every so many milliseconds.",
     .min = 1,
     .max = kWindowMax / kMillisecond},
    {.name = "quota", .type = quota, .doc = "A quota in place of the limit's own, in the same calendar window."},
    {.name = "unlimited", .type = flag, .doc = "Clients of this tier are never limited."},
});

constexpr std::array kLimit = std::to_array<Field>({
    {.name = "key",
     .type = key_source,
     .shape = one_or_list,
     .doc = "Where in a request the bucket's identity comes from; absent: callers name the limit and give the id."},
    {.name = "count", .type = integer, .doc = "Tokens added every period.", .min = 1},
    {.name = "period", .type = duration, .doc = "How often count tokens are added.", .min = 1},
    {.name = "burst", .type = integer, .doc = "The most tokens a bucket holds; defaults to count.", .min = 1},
    {.name = "rate", .type = rate, .doc = "Shorthand for count and period, such as 100/s or 20 per minute."},
    {.name = "average", .type = integer, .doc = "Another word for count; 0 means unlimited.", .min = 0},
    {.name = "capacity", .type = integer, .doc = "Another word for burst.", .min = 1},
    {.name = "addTokenMs",
     .type = integer,
     .doc = "One token is added every so many milliseconds.",
     .min = 1,
     .max = kWindowMax / kMillisecond},
    {.name = "maximumTimeBeforeTokenExpiry",
     .type = integer,
     .doc = "Idle buckets are kept at least so many seconds.",
     .min = 0,
     .max = kWindowMax / kSecond},
    {.name = "quota", .type = quota, .doc = "At most so many in a calendar window, such as 100000/month."},
    {.name = "zone", .type = zone, .fallback = "UTC", .doc = "The time zone of the quota's windows."},
    {.name = "schedule",
     .type = section,
     .shape = list,
     .doc = "Other numbers at some hours; the first that matches wins.",
     .fields = kSchedule},
    {.name = "number",
     .type = integer,
     .doc = "Bucket keys begin with it instead of the name, so a rename keeps its buckets.",
     .min = 1,
     .max = 0xffff'ffff},
    {.name = "id",
     .type = id_format,
     .doc =
         "The format of ids: ipAddress, ipv6RangeCIDR, regId, domain, fqdnSet, email, text, or several joined by ':'."},
    {.name = "mode",
     .type = choice,
     .fallback = "enforce",
     .doc = "Whether the limit denies (enforce), only counts (shadow), or rests (off).",
     .choices = "enforce shadow off"},
    {.name = "hashed",
     .type = flag,
     .fallback = "false",
     .doc = "Ids are stored, logged and exported only as a keyed hash."},
    {.name = "per_route", .type = flag, .fallback = "false", .doc = "One bucket per route and key."},
    {.name = "missing",
     .type = choice,
     .fallback = "skip",
     .doc = "What a request without the key gets.",
     .choices = "skip reject"},
    {.name = "failure_policy",
     .type = choice_any,
     .doc = "What this limit's requests get when the store cannot be asked.",
     .choices = "passThrough failClosed inMemoryFallback"},
    {.name = "failure_code", .type = integer, .doc = "What failClosed answers for this limit.", .min = 400, .max = 599},
    {.name = "lease",
     .type = section,
     .doc = "Tokens a server may take from a shared bucket at once.",
     .fields = kLease},
    {.name = "tier",
     .type = key_source,
     .doc = "Where a request's tier comes from: header:NAME, descriptor:KEY or jwt:CLAIM."},
    {.name = "tiers",
     .type = section,
     .shape = map,
     .doc = "Other numbers by the client's tier; what a tier does not set is the limit's.",
     .fields = kTier},
    {.name = "block",
     .type = section,
     .doc = "An id that this limit denies often is deny-listed for a while.",
     .fields = kLimitBlock},
    {.name = "external", .type = section, .doc = "A service that decides this limit's numbers.", .fields = kExternal},
});

constexpr std::array kName = std::to_array<Field>({
    {.name = "number",
     .type = integer,
     .doc = "Bucket keys begin with it instead of the name, so a rename keeps its buckets.",
     .min = 1,
     .max = 0xffff'ffff},
    {.name = "id",
     .type = id_format,
     .doc =
         "The format of ids: ipAddress, ipv6RangeCIDR, regId, domain, fqdnSet, email, text, or several joined by ':'."},
});

constexpr std::array kOverride = std::to_array<Field>({
    {.name = "count", .type = integer, .doc = "Tokens added every period.", .min = 1},
    {.name = "period", .type = duration, .doc = "How often count tokens are added.", .min = 1},
    {.name = "burst", .type = integer, .doc = "The most tokens a bucket holds; defaults to count.", .min = 1},
    {.name = "rate", .type = rate, .doc = "Shorthand for count and period, such as 100/s or 20 per minute."},
    {.name = "average", .type = integer, .doc = "Another word for count; 0 means unlimited.", .min = 0},
    {.name = "capacity", .type = integer, .doc = "Another word for burst.", .min = 1},
    {.name = "addTokenMs",
     .type = integer,
     .doc = "One token is added every so many milliseconds.",
     .min = 1,
     .max = kWindowMax / kMillisecond},
    {.name = "quota", .type = quota, .doc = "A quota in place of the limit's own, such as 100000/month."},
    {.name = "tier", .type = text, .doc = "This id has that tier of the limit, and no numbers of its own."},
    {.name = "unlimited", .type = flag, .doc = "This id is never limited."},
    {.name = "blocked", .type = flag, .doc = "This id is always denied."},
});

constexpr std::array kListenTls = std::to_array<Field>({
    {.name = "cert", .type = text, .doc = "The file of the certificate chain.", .required = true},
    {.name = "key", .type = text, .doc = "The file of its private key.", .required = true},
    {.name = "client_ca", .type = text, .doc = "Certificates that may sign a client's; empty: none is asked for."},
    {.name = "client_auth",
     .type = choice,
     .doc = "Whether a client needs a certificate; with client_ca the default is require.",
     .choices = "require optional"},
    {.name = "min_version", .type = choice, .doc = "The oldest TLS spoken; default 1.2.", .choices = "1.2 1.3"},
});

constexpr std::array kListen = std::to_array<Field>({
    {.name = "address", .type = text, .doc = "Address and port, or unix: and a path.", .required = true},
    {.name = "speak",
     .type = choice,
     .shape = one_or_list,
     .doc = "What the port speaks.",
     .choices = "http grpc resp admin proxy",
     .required = true},
    {.name = "token",
     .type = secret,
     .shape = one_or_list,
     .doc = "What callers of the decision API must show; two while one takes the other's place."},
    {.name = "write_token", .type = secret, .doc = "What callers of refund and reset must show."},
    {.name = "password", .type = secret, .doc = "What RESP clients must AUTH with; empty: nothing."},
    {.name = "write_password", .type = secret, .doc = "What WEIR.REFUND, WEIR.RESET and DEL need."},
    {.name = "tls",
     .type = section,
     .shape = one_or_list,
     .doc = "Certificates; several are chosen by server name.",
     .fields = kListenTls},
    {.name = "proxy_protocol",
     .type = flag,
     .fallback = "false",
     .doc = "Whether connections begin with a PROXY header."},
    {.name = "idle_timeout",
     .type = duration,
     .doc = "How long a connection may be idle; 0s: forever. Absent: 120s, with resp 0s.",
     .min = 0},
});

constexpr std::array kMatch = std::to_array<Field>({
    {.name = "path", .type = text, .doc = "The path; * is one segment, ** the rest."},
    {.name = "methods", .type = text, .shape = one_or_list, .doc = "Methods; absent: any."},
    {.name = "host", .type = text, .doc = "The host; *. at the start stands for any label."},
    {.name = "headers", .type = text, .shape = map, .doc = "Headers and the values they must have."},
});

constexpr std::array kRoute = std::to_array<Field>({
    {.name = "name", .type = text, .doc = "The route's name in metrics and bucket keys.", .required = true},
    {.name = "match", .type = section, .doc = "Which requests take this route.", .fields = kMatch, .required = true},
    {.name = "limits",
     .type = text,
     .shape = one_or_list,
     .doc = "The limits that apply, in order, or none.",
     .word = "none"},
    {.name = "charge",
     .type = choice,
     .fallback = "together",
     .doc = "All limits or none, or one after another.",
     .choices = "together in-order"},
    {.name = "mode",
     .type = choice,
     .fallback = "enforce",
     .doc = "Of a limit's and a route's mode the laxer wins.",
     .choices = "enforce shadow off"},
    {.name = "cost",
     .type = integer,
     .fallback = "1",
     .doc = "Tokens a request takes, or header: and the header that says it.",
     .word = "header:",
     .min = 1},
    {.name = "backend", .type = text, .shape = one_or_list, .doc = "Where the proxy forwards to."},
});

constexpr std::array kAccessEntry = std::to_array<Field>({
    {.name = "ip", .type = prefix, .doc = "An address or a CIDR."},
    {.name = "apikey", .type = secret, .doc = "An API key."},
    {.name = "limit", .type = text, .doc = "A limit's name; id says whose bucket."},
    {.name = "id", .type = text, .doc = "The id, together with limit."},
    {.name = "reason", .type = text, .doc = "Why; shown in lists."},
    {.name = "expires", .type = instant, .doc = "When the entry ends."},
});

constexpr std::array kBlock = std::to_array<Field>({
    {.name = "after", .type = integer, .fallback = "0", .doc = "So many denials; 0: never.", .min = 0},
    {.name = "within", .type = duration, .fallback = "1m", .doc = "In this time.", .min = 1},
    {.name = "for", .type = duration, .fallback = "10m", .doc = "How long the client is denied.", .min = 1},
    {.name = "times", .type = integer, .fallback = "0", .doc = "So many times its rate; 0: by denials only.", .min = 0},
});

constexpr std::array kAccess = std::to_array<Field>({
    {.name = "trusted_proxies", .type = prefix, .shape = list, .doc = "Peers whose X-Forwarded-For is believed."},
    {.name = "ipv6_prefix",
     .type = integer,
     .fallback = "64",
     .doc = "IPv6 clients are counted by a prefix of this length.",
     .min = 1,
     .max = 128},
    {.name = "allow", .type = section, .shape = list, .doc = "Who passes and takes no token.", .fields = kAccessEntry},
    {.name = "deny", .type = section, .shape = list, .doc = "Who is refused before any limit.", .fields = kAccessEntry},
    {.name = "block", .type = section, .doc = "Clients denied often are deny-listed for a while.", .fields = kBlock},
});

constexpr std::array kMemory = std::to_array<Field>({
    {.name = "max_buckets",
     .type = size,
     .fallback = "50M",
     .doc = "Buckets kept at most; beyond, those nearest to full go first.",
     .min = 1,
     .max = kBucketsMax},
    {.name = "names", .type = flag, .fallback = "true", .doc = "Whether the texts of keys are kept, for lists."},
    {.name = "cleanup",
     .type = duration,
     .fallback = "5m",
     .doc = "How often memory of full buckets is given back.",
     .min = kMillisecond},
});

constexpr std::array kState = std::to_array<Field>({
    {.name = "live", .type = text, .doc = "A file on tmpfs that survives kill -9; empty: none."},
    {.name = "snapshot", .type = text, .doc = "A file on disk that survives a reboot; empty: none."},
    {.name = "every",
     .type = duration,
     .fallback = "10s",
     .doc = "How often the snapshot is written.",
     .min = kMillisecond},
});

constexpr std::array kRedis = std::to_array<Field>({
    {.name = "endpoints",
     .type = text,
     .shape = list,
     .fallback = "127.0.0.1:6379",
     .doc = "Servers, sentinels or cluster nodes to begin with; mode single takes one."},
    {.name = "mode",
     .type = choice,
     .fallback = "single",
     .doc = "What the endpoints are.",
     .choices = "single replication sentinel cluster"},
    {.name = "username", .type = text, .doc = "The ACL user; empty: the default one."},
    {.name = "password", .type = secret, .doc = "Its password."},
    {.name = "db", .type = integer, .fallback = "0", .doc = "The database's number.", .min = 0, .max = 65535},
    {.name = "master_name", .type = text, .doc = "What sentinels call the master."},
    {.name = "tls", .type = section, .doc = "Encryption towards Redis.", .fields = kClientTls},
    {.name = "pool_size",
     .type = integer,
     .fallback = "2",
     .doc = "Pipelined connections per event loop and node.",
     .min = 1,
     .max = 1024},
    {.name = "timeout",
     .type = duration,
     .fallback = "250ms",
     .doc = "How long one question may take.",
     .min = kMillisecond},
    {.name = "key_prefix", .type = text, .fallback = "weir:", .doc = "What every key begins with."},
    {.name = "hash_tag", .type = text, .doc = "In a cluster: puts all buckets into one slot."},
    {.name = "fallback_buckets",
     .type = size,
     .fallback = "65536",
     .doc = "Buckets kept in memory while Redis is away.",
     .min = 1,
     .max = kBucketsMax},
    {.name = "share",
     .type = share,
     .fallback = "1/1",
     .doc = "What this server gives of a limit while Redis is away: 1/N of N servers."},
    {.name = "wait_replicas",
     .type = integer,
     .fallback = "0",
     .doc = "Replicas that should have a decision before it is answered.",
     .min = 0,
     .max = bounds::redis_wait_replicas_max},
});

constexpr std::array kEnvoy = std::to_array<Field>({
    {.name = "path", .type = text, .doc = "A file or a directory.", .required = true},
    {.name = "algorithm",
     .type = choice,
     .fallback = "token_bucket",
     .doc = "How its limits count.",
     .choices = "token_bucket fixed_window"},
});

constexpr std::array kProxy = std::to_array<Field>({
    {.name = "header_max", .type = size, .fallback = "64KiB", .doc = "Bytes of a request's headers.", .min = 1},
    {.name = "request_line_max", .type = size, .fallback = "8KiB", .doc = "Bytes of a request's first line.", .min = 1},
    {.name = "body_max", .type = size, .fallback = "0", .doc = "Bytes of a request's body; 0: no bound.", .min = 0},
    {.name = "header_timeout",
     .type = duration,
     .fallback = "10s",
     .doc = "How long a client may take over its headers.",
     .min = kMillisecond},
    {.name = "connect_timeout",
     .type = duration,
     .fallback = "5s",
     .doc = "How long a backend may take to answer the dial.",
     .min = kMillisecond},
    {.name = "response_timeout",
     .type = duration,
     .fallback = "60s",
     .doc = "How long a backend may take to begin its answer.",
     .min = kMillisecond},
    {.name = "idle_timeout",
     .type = duration,
     .fallback = "120s",
     .doc = "How long a connection may rest.",
     .min = kMillisecond},
    {.name = "max_concurrent_requests",
     .type = integer,
     .fallback = "10000",
     .doc = "Requests forwarded at once.",
     .min = 1},
});

constexpr std::array kHeaders = std::to_array<Field>({
    {.name = "ratelimit",
     .type = choice,
     .shape = one_or_list,
     .fallback = "x-ratelimit,ietf",
     .doc = "Which families of headers answers carry.",
     .choices = "x-ratelimit ietf"},
    {.name = "reset",
     .type = choice,
     .fallback = "epoch",
     .doc = "Whether X-RateLimit-Reset is a time or a wait.",
     .choices = "epoch delta"},
});

constexpr std::array kJwt = std::to_array<Field>({
    {.name = "keys", .type = text, .doc = "A JWK set in a file: the public keys that sign tokens."},
    {.name = "secret", .type = secret, .doc = "The shared secret of HS256; empty: HS256 is off."},
    {.name = "issuer", .type = text, .doc = "What iss must be; empty: anything."},
    {.name = "audience", .type = text, .doc = "What aud must be or contain; empty: anything."},
    {.name = "leeway", .type = duration, .fallback = "30s", .doc = "Tolerance.", .min = 0, .max = 300'000'000'000},
    {.name = "algorithms",
     .type = choice,
     .shape = one_or_list,
     .fallback = "RS256,ES256,EdDSA,HS256",
     .doc = "The algorithms that are accepted.",
     .choices = "RS256 ES256 EdDSA HS256"},
    {.name = "header", .type = text, .doc = "The header that holds the token; empty: the bearer token."},
    {.name = "cookie", .type = text, .doc = "The cookie that holds the token."},
    {.name = "require_exp", .type = flag, .fallback = "true", .doc = "Whether a token must have exp."},
});

constexpr std::array kAdmin = std::to_array<Field>({
    {.name = "read_token", .type = secret, .doc = "The token that may read."},
    {.name = "write_token", .type = secret, .doc = "The token that may also write."},
});

constexpr std::array kLog = std::to_array<Field>({
    {.name = "level",
     .type = choice,
     .fallback = "info",
     .doc = "The least that is logged.",
     .choices = "trace debug info warn error off"},
    {.name = "format", .type = choice, .fallback = "text", .doc = "How a line is written.", .choices = "text json"},
});

constexpr std::array kFile = std::to_array<Field>({
    {.name = "listen",
     .type = section,
     .shape = list,
     .doc = "Ports; absent: HTTP and gRPC on 8080, RESP on 6380 and admin on 9090, loopback only.",
     .fields = kListen},
    {.name = "threads",
     .type = integer,
     .fallback = "auto",
     .doc = "Event loops; auto: one per core.",
     .word = "auto",
     .min = 1,
     .max = 1024},
    {.name = "limits",
     .type = section,
     .shape = map_or_path,
     .doc = "Limits by name, or the path of a file that holds them.",
     .fields = kLimit},
    {.name = "names",
     .type = section,
     .shape = map_or_path,
     .doc = "Numbers and id formats of limits by name, or the path of a file that holds them.",
     .fields = kName},
    {.name = "overrides",
     .type = section,
     .shape = map_or_path,
     .doc = "Other numbers for one id, by Name:id, or the path of a file that holds them.",
     .fields = kOverride},
    {.name = "routes",
     .type = section,
     .shape = list,
     .doc = "Which limits apply to which requests; the first match wins.",
     .fields = kRoute},
    {.name = "access",
     .type = section,
     .doc = "Who is asking, who always passes and who never does.",
     .fields = kAccess},
    {.name = "store", .type = choice, .fallback = "memory", .doc = "Where buckets live.", .choices = "memory redis"},
    {.name = "memory", .type = section, .doc = "The memory store.", .fields = kMemory},
    {.name = "state", .type = section, .doc = "What survives a restart.", .fields = kState},
    {.name = "hash_key", .type = secret, .doc = "The key of hashed ids; empty: made once and kept with the state."},
    {.name = "redis", .type = section, .doc = "The Redis store.", .fields = kRedis},
    {.name = "cache_redis",
     .type = section,
     .doc = "A second Redis for the external service's answers.",
     .fields = kRedis},
    {.name = "failure_policy",
     .type = choice_any,
     .fallback = "passThrough",
     .doc = "What requests get when the store cannot be asked.",
     .choices = "passThrough failClosed inMemoryFallback"},
    {.name = "failure_code",
     .type = integer,
     .fallback = "429",
     .doc = "What failClosed answers.",
     .min = 400,
     .max = 599},
    {.name = "external", .type = section, .doc = "A service that decides a limit's numbers.", .fields = kExternal},
    {.name = "envoy",
     .type = section,
     .shape = list,
     .doc = "Files of envoyproxy/ratelimit, loaded as they are.",
     .fields = kEnvoy,
     .word = "path"},
    {.name = "proxy", .type = section, .doc = "The edge proxy.", .fields = kProxy},
    {.name = "drain_timeout", .type = duration, .fallback = "30s", .doc = "How long requests may finish.", .min = 0},
    {.name = "drain_delay",
     .type = duration,
     .fallback = "0s",
     .doc = "How long a server that was told to end goes on serving, not ready, before it drains.",
     .min = 0},
    {.name = "headers", .type = section, .doc = "Headers of answers.", .fields = kHeaders},
    {.name = "jwt", .type = section, .doc = "Tokens whose claims are keys of limits.", .fields = kJwt},
    {.name = "admin", .type = section, .doc = "Tokens of the admin API.", .fields = kAdmin},
    {.name = "log", .type = section, .doc = "The log.", .fields = kLog},
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

const Field* find_field(std::span<const Field> fields, std::string_view name) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace weir::config
