#include "weir/config/describe.h"

#include <gtest/gtest.h>

#include "weir/config/diff.h"

namespace weir::config::describe_test {
namespace {

Loaded loaded(std::string_view yaml) {
  Outcome outcome = parse(yaml, "t.yaml", {});
  if (Loaded* made = std::get_if<Loaded>(&outcome)) return std::move(*made);
  ADD_FAILURE() << text(std::get<Problems>(outcome));
  return {};
}

std::string changes(std::string_view before, std::string_view after) {
  std::string out;
  for (const Change& change : diff(loaded(before), loaded(after))) out += change.text() + "\n";
  return out;
}

TEST(Describe, SaysWhatWasUnderstood) {
  const Loaded made = loaded(
      "limits:\n"
      "  a: {key: [header:x, path:1], rate: 300/h, number: 6, quota: 5/day, zone: Europe/London}\n"
      "  b: {key: ip, mode: shadow, schedule: [{days: mon-fri, hours: '09:00-18:00', count: 5, period: 1s}]}\n"
      "  c: {average: 0}\n"
      "names: {d: {id: regId:domain}}\n"
      "overrides: {b:10.0.0.0/8: {blocked: true}, b:10.0.0.1: {rate: 1/s}}\n");
  const std::vector<Described> rows = describe(*made.policy);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].number, "6");
  EXPECT_EQ(rows[0].key, "header:x, path:1");
  EXPECT_EQ(rows[0].id, "text");
  EXPECT_EQ(rows[0].numbers, "300 per 1h, burst 300");
  EXPECT_EQ(rows[0].quota, "5 per day (Europe/London)");
  EXPECT_EQ(rows[1].id, "ip");
  EXPECT_EQ(rows[1].numbers, "");
  EXPECT_EQ(rows[1].schedule, "mon-fri 09:00-18:00 UTC: 5 per 1s, burst 5");
  EXPECT_EQ(rows[1].mode, "shadow");
  EXPECT_EQ(rows[1].overrides, "2");
  EXPECT_EQ(rows[2].numbers, "unlimited");
  EXPECT_EQ(rows[3].id, "regId:domain");
  EXPECT_EQ(rows[3].numbers, "unlimited, except ids with an override");
}

TEST(Show, NamesTheOriginOfEveryValue) {
  const std::string shown = show(loaded("limits: {a: {rate: 5/s}}\noverrides: {a:x: {blocked: true}}\n"));
  for (const char* line :
       {"listen[0].address: 127.0.0.1:8080  # default\n", "store: memory  # default\n",
        "limits.a.rate: 5/s  # t.yaml:1:20\n", "limits.a.burst: 5  # default\n", "limits.a.mode: enforce  # default\n",
        "overrides.a:x: blocked  # t.yaml:2:13\n", "headers.ratelimit: [x-ratelimit, ietf]  # default\n"}) {
    EXPECT_NE(shown.find(line), std::string::npos) << line << "is not in\n" << shown;
  }
}

TEST(Show, HidesIdsThatOnlyTheirOwnersMayRead) {
  const std::string yaml =
      "limits: {h: {rate: 1/s, hashed: true}, k: {rate: 1/s, key: apikey}, o: {rate: 1/s}}\n"
      "overrides: {h:SECRET1: {blocked: true}, k:SECRET2: {blocked: true}, o:open: {blocked: true}}\n"
      "access: {deny: [{limit: h, id: SECRET3}, {limit: k, id: SECRET4}, {limit: o, id: open}]}\n"
      "hash_key: abc\n";
  const std::string shown = show(loaded(yaml));
  EXPECT_EQ(shown.find("SECRET"), std::string::npos) << shown;
  for (const char* line : {"overrides.h:(hidden): blocked", "access.deny[1].id: (hidden)", "access.deny[2].id: open",
                           "overrides.o:open: blocked"}) {
    EXPECT_NE(shown.find(line), std::string::npos) << line << " is not in\n" << shown;
  }
  const std::string changed = changes(
      "limits: {h: {rate: 1/s, hashed: true}, k: {rate: 1/s, key: apikey}, o: {rate: 1/s}}\n"
      "hash_key: abc\n",
      yaml);
  EXPECT_EQ(changed.find("SECRET"), std::string::npos) << changed;
}

TEST(Diff, OfTheSameIsEmpty) {
  const char* yaml = "limits: {a: {rate: 5/s}}\noverrides: {a:x: {blocked: true}}\nhash_key: k\n";
  EXPECT_EQ(changes(yaml, yaml), "");
  EXPECT_EQ(changes("limits: {a: {rate: 5/s}}", "limits: {a: {count: 5, period: 1s, burst: 5}}"), "")
      << "the same numbers in other words";
}

TEST(Diff, SpellingAndDefaultsThatAreSpelledOutMakeNoDifference) {
  for (const char* yaml : {
           "headers: {ratelimit: [x-ratelimit, ietf], reset: epoch}",
           "headers: {ratelimit: [ietf, x-ratelimit]}",
           "listen: [{address: '127.0.0.1:8080', speak: [http, grpc]}, {address: '127.0.0.1:6380', speak: resp}, "
           "{address: '127.0.0.1:9090', speak: admin}]",
           "listen: [{address: 'localhost:8080', speak: [grpc, http], password: '', proxy_protocol: false}, "
           "{address: '127.0.0.1:6380', speak: [resp]}, {address: '127.0.0.1:9090', speak: admin}]",
           "listen:",
           "drain_timeout: 30000ms",
           "memory: {max_buckets: 50000000, cleanup: 300s}",
           "proxy: {header_max: 65536}",
           "failure_policy: PASSTHROUGH",
           "external: {enabled: false, timeout: 5000ms}",
           "access: {trusted_proxies: [], allow: []}",
           "redis: {endpoints: ['127.0.0.1:6379'], password: ''}",
       }) {
    EXPECT_EQ(changes("", yaml), "") << yaml;
    EXPECT_EQ(changes(yaml, ""), "") << yaml;
  }
  EXPECT_EQ(changes("access: {trusted_proxies: [10.0.0.1, 10.0.0.0/24]}",
                    "access: {trusted_proxies: [10.0.0.0/24, 10.0.0.1/32]}"),
            "");
}

TEST(Diff, SeesWhatIsMeantToChange) {
  EXPECT_EQ(changes("drain_timeout: 30s", "drain_timeout: 31000ms"), "changed setting drain_timeout: 30s -> 31000ms\n");
  EXPECT_EQ(changes("redis: {endpoints: ['a:1', 'b:1']}", "redis: {endpoints: ['b:1', 'a:1']}"),
            "changed setting redis.endpoints: [a:1, b:1] -> [b:1, a:1] (needs a restart)\n");
  EXPECT_EQ(changes("", "cache_redis: {db: 0}"),
            "added setting cache_redis.endpoints: [127.0.0.1:6379] (needs a restart)\n")
      << "it means something by being there";
  EXPECT_EQ(changes("limits: {a: {rate: 1/s}}",
                    "limits: {a: {rate: 1/s, external: {enabled: true, http: {url: 'http://x'}}}}"),
            "added setting limits.a.external.enabled: true\n"
            "added setting limits.a.external.http.url: http://x\n");
  EXPECT_EQ(changes("limits: {a: {rate: 1/s, external: {http: {url: 'http://x'}}}}",
                    "limits: {a: {rate: 1/s, external: {http: {url: 'http://y'}, timeout: 5s}}}"),
            "changed setting limits.a.external.http.url: http://x -> http://y\n");
}

TEST(Diff, ComparesAccessListsAsSets) {
  const char* before =
      "limits: {a: {rate: 1/s}}\n"
      "access: {deny: [{ip: 1.2.3.4}, {limit: a, id: x, reason: old}, {apikey: secret}]}";
  EXPECT_EQ(changes(before,
                    "limits: {a: {rate: 1/s}}\n"
                    "access: {deny: [{apikey: secret}, {limit: a, id: x, reason: old}, {ip: 1.2.3.4/32}]}"),
            "");
  EXPECT_EQ(changes(before,
                    "limits: {a: {rate: 1/s}}\n"
                    "access: {allow: [{ip: 10.0.0.0/8}], deny: [{apikey: other}, {ip: 1.2.3.4}, {limit: a, id: x, "
                    "reason: new, expires: 2027-01-01T00:00:00Z}]}"),
            "changed access deny a:x: refused, reason \"old\" -> refused until 2027-01-01T00:00:00Z, reason \"new\"\n"
            "removed access deny apikey (hidden): refused\n"
            "added access allow 10.0.0.0/8: passes\n"
            "added access deny apikey (hidden): refused\n");
}

TEST(Diff, SaysWhichLimitsComeGoAndChange) {
  EXPECT_EQ(
      changes("limits: {a: {rate: 5/s}, b: {rate: 1/s}}", "limits: {a: {rate: 6/s, mode: shadow}, c: {rate: 1/m}}"),
      "changed limit a: 5 per 1s, burst 5; id text -> 6 per 1s, burst 6; id text; mode shadow\n"
      "removed limit b: 1 per 1s, burst 1; id text\n"
      "added limit c: 1 per 1m, burst 1; id text\n");
}

TEST(Diff, SeesEverySettingOfALimit) {
  EXPECT_EQ(
      changes("limits: {a: {rate: 9/s}}",
              "limits: {a: {rate: 9/s, hashed: true, per_route: true, missing: reject, failure_policy: failClosed, "
              "failure_code: 503, lease: {tokens: 2, servers: 4}, maximumTimeBeforeTokenExpiry: 60}}"),
      "changed limit a: 9 per 1s, burst 9; id text -> 9 per 1s, burst 9; id text; hashed; per_route; missing reject; "
      "failure_policy failClosed; failure_code 503; lease 2 for 4 servers; idle 60s\n");
}

TEST(Diff, SeesEverySettingOfARoute) {
  EXPECT_EQ(
      changes("routes: [{name: r, match: {path: /a}}]",
              "routes: [{name: r, match: {path: /a, ignore_case: true}, backend: 'https://b', "
              "backend_tls: {server_name: c}, host: backend, response_timeout: 2s, stream_idle_timeout: 3s, "
              "body_max: 1K, error_headers: {X-A: b}, preflight: pass}]"),
      "changed route r: /a: every limit with a key -> /a, in any case: every limit with a key; backend https://b; "
      "backend_tls ca_file \"\" cert_file \"\" key_file \"\" server_name \"c\"; host backend; "
      "response_timeout 2s; stream_idle_timeout 3s; body_max 1000; error header x-a: b; preflight pass\n");
}

TEST(Diff, SaysWhichOverridesComeGoAndChange) {
  EXPECT_EQ(changes("limits: {a: {rate: 5/s}}\noverrides: {a:x: {rate: 1/s}, a:y: {blocked: true}}",
                    "limits: {a: {rate: 5/s}}\noverrides: {a:x: {rate: 2/s}, a:z: {unlimited: true}}"),
            "changed override a:x: 1 per 1s, burst 1 -> 2 per 1s, burst 2\n"
            "removed override a:y: blocked\n"
            "added override a:z: unlimited\n");
}

TEST(Diff, NamesWhatCannotChangeLive) {
  EXPECT_EQ(changes("", "store: redis\nlog: {level: warn}\nlisten: [{address: '127.0.0.1:8081', speak: http}]"),
            "changed setting listen[0].address: 127.0.0.1:8080 -> 127.0.0.1:8081 (needs a restart)\n"
            "changed setting listen[0].speak: [http, grpc] -> http (needs a restart)\n"
            "removed setting listen[1].address: 127.0.0.1:6380 (needs a restart)\n"
            "removed setting listen[1].speak: [resp] (needs a restart)\n"
            "removed setting listen[2].address: 127.0.0.1:9090 (needs a restart)\n"
            "removed setting listen[2].speak: [admin] (needs a restart)\n"
            "changed setting log.level: info -> warn\n"
            "changed setting store: memory -> redis (needs a restart)\n");
}

TEST(Diff, SeesAChangedSecretWithoutShowingIt) {
  EXPECT_EQ(changes("hash_key: one", "hash_key: two"), "changed setting hash_key: (hidden) -> (hidden)\n");
}

}  // namespace
}  // namespace weir::config::describe_test
