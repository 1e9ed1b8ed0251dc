#include "weir/config/import_edgequota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "weir/config/parse.h"

namespace weir::import_edgequota_test {
namespace {

using config::Imported;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Imported imported(std::string_view text) {
  auto outcome = config::import_edgequota(text, "edge.yaml");
  if (const auto* problems = std::get_if<config::Problems>(&outcome)) ADD_FAILURE() << config::text(*problems);
  return std::get<Imported>(std::move(outcome));
}

// What Weir's own parser says of the result; empty: valid.
std::string complaints_about(const Imported& result) {
  const config::Outcome outcome = config::parse(result.yaml, "weir.yaml", {});
  const auto* problems = std::get_if<config::Problems>(&outcome);
  return problems == nullptr ? "" : config::text(*problems) + result.yaml;
}

TEST(ImportEdgeQuota, TranslatesTheFlatSchema) {
  const Imported result = imported(R"(
server: {address: ":8080", drain_timeout: 20s}
backend: {url: "http://127.0.0.1:3000", timeout: 30s}
rate_limit:
  average: 100
  burst: 50
  period: "1s"
  failure_policy: failClosed
  failure_code: 503
  key_strategy: {type: composite, header_name: X-Tenant-Id, path_prefix: true}
redis:
  endpoints: ["rl-0:6379", "rl-1:6379"]
  mode: cluster
)");
  EXPECT_EQ(complaints_about(result), "");
  EXPECT_THAT(result.yaml, HasSubstr("address: \"0.0.0.0:8080\", speak: proxy"));
  EXPECT_THAT(result.yaml, HasSubstr("backend: \"http://127.0.0.1:3000\"\n"));
  EXPECT_THAT(result.yaml, HasSubstr("    key: [\"header:x-tenant-id\", \"path:1\"]\n    missing: reject\n"));
  EXPECT_THAT(result.yaml, HasSubstr("    average: 100\n    burst: 50\n    period: 1s\n"));
  EXPECT_THAT(result.yaml, HasSubstr("failure_policy: failClosed\nfailure_code: 503\n"));
  EXPECT_THAT(result.yaml, HasSubstr("redis: {endpoints: [\"rl-0:6379\", \"rl-1:6379\"], mode: cluster}\n"));
}

TEST(ImportEdgeQuota, TranslatesTheNestedSchema) {
  const Imported result = imported(R"(
admin: {address: "127.0.0.1:9191"}
rate_limit:
  static:
    backend_url: http://127.0.0.1:3000
    average: 5
    period: 1m
    key_strategy: {type: clientIP, trusted_proxies: [10.0.0.0/8]}
)");
  EXPECT_EQ(complaints_about(result), "");
  EXPECT_THAT(result.yaml, HasSubstr("    key: ip\n    average: 5\n    burst: 1\n    period: 1m\n"));
  EXPECT_THAT(result.yaml, HasSubstr("access: {trusted_proxies: [\"10.0.0.0/8\"]}\n"));
  EXPECT_THAT(result.yaml, HasSubstr("address: \"127.0.0.1:9191\", speak: admin"));
  EXPECT_THAT(result.yaml, Not(HasSubstr("store:")));
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST(ImportEdgeQuota, TranslatesTheExternalService) {
  const Imported result = imported(R"(
admin: {address: "localhost:9090"}
backend: {url: "http://127.0.0.1:3000"}
rate_limit:
  average: 100
  external:
    enabled: true
    timeout: 5s
    cache_ttl: 60s
    grpc:
      address: "limits-service:50052"
      tls: {enabled: true, ca_file: /etc/edgequota/ca.pem}
    header_filter: {allow_list: [X-Tenant-Id, X-Plan]}
)");
  EXPECT_EQ(complaints_about(result), "");
  EXPECT_THAT(
      result.yaml,
      HasSubstr("external: {limit: edge, enabled: true, timeout: 5s, cache_ttl: 60s, "
                "grpc: {method: /edgequota.ratelimit.v1.RateLimitService/GetLimits, codec: json, "
                "address: \"limits-service:50052\", tls: {enabled: true, "
                "ca_file: \"/etc/edgequota/ca.pem\"}}, header_filter: {allow_list: [\"X-Tenant-Id\", \"X-Plan\"]}}"));
  EXPECT_THAT(result.notes, ElementsAre("edge.yaml: external.grpc: codec is json, as EdgeQuota documents; remove it if "
                                        "the service speaks protobuf"));
}

TEST(ImportEdgeQuota, KeepsThePrefixOfKeysAndTheSizeOfThePool) {
  const Imported result = imported(
      "admin: {address: \"127.0.0.1:9090\"}\nbackend: {url: \"http://127.0.0.1:3000\"}\n"
      "rate_limit: {average: 5, key_prefix: shop}\n"
      "redis: {endpoints: [\"rl:6379\"], pool_size: 4}\n");
  EXPECT_EQ(complaints_about(result), "");
  EXPECT_THAT(result.yaml,
              HasSubstr("redis: {key_prefix: \"shop:\", endpoints: [\"rl:6379\"], pool_size: 4}\nstore: redis\n"));
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST(ImportEdgeQuota, NamesWhatItLeavesOut) {
  const Imported result =
      imported("admin: {address: \"127.0.0.1:9090\"}\nevents:\n  enabled: true\ntracing: {endpoint: x}\n");
  EXPECT_THAT(result.notes, ElementsAre("edge.yaml: there is no backend.url: add backend to the result",
                                        "edge.yaml:3:3: events.enabled has no counterpart and is left out",
                                        "edge.yaml:4:11: tracing.endpoint has no counterpart and is left out"));
}

TEST(ImportEdgeQuota, RefusesWhatItCannotTranslate) {
  const auto header = config::import_edgequota("rate_limit: {key_strategy: {type: header}}\n", "edge.yaml");
  EXPECT_EQ(config::text(std::get<config::Problems>(header)),
            "edge.yaml:1:28: header_name is required for type \"header\"\n");
  const auto strategy = config::import_edgequota("rate_limit: {key_strategy: {type: moon}}\n", "edge.yaml");
  EXPECT_THAT(config::text(std::get<config::Problems>(strategy)),
              HasSubstr("must be clientIP, header, composite or global"));
  EXPECT_TRUE(std::holds_alternative<config::Problems>(config::import_edgequota("a: [", "edge.yaml")));
  EXPECT_TRUE(std::holds_alternative<config::Problems>(config::import_edgequota("- a\n", "edge.yaml")));
}

}  // namespace
}  // namespace weir::import_edgequota_test
