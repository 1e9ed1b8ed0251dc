#include "weir/protocol/grpc/grpc_handler.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "weir/protocol/grpc/grpc_service_test.h"

namespace weir::grpc_handler_test {
namespace {

using namespace std::string_literals;
using namespace grpc_service_test;
using testing::HasSubstr;

class GrpcHandlerTest : public GrpcService {};

constexpr const char* kRules = R"(domain: d
descriptors:
  - {key: two, rate_limit: {unit: second, requests_per_unit: 2, name: pair}}
  - {key: ten, rate_limit: {unit: minute, requests_per_unit: 10}}
  - {key: day, rate_limit: {unit: day, requests_per_unit: 3}}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: none, rate_limit: {unit: hour, requests_per_unit: 0}}
  - {key: watched, shadow_mode: true, rate_limit: {unit: second, requests_per_unit: 1}}
  - {key: q1, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}}
  - {key: q2, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 2}}
)";

TEST_F(GrpcHandlerTest, TellsEachDescriptorHowItStands) {
  use(kRules);
  EXPECT_EQ(ask(descriptors(entry("two") + "," + entry("unknown") + "," + entry("free"))),
            "OK: OK 1/2 SECOND 1s pair OK - OK 4294967295");
  EXPECT_EQ(ask(descriptors(entry("two"))), "OK: OK 0/2 SECOND 1s pair");
  EXPECT_EQ(ask(descriptors(entry("two"))), "OVER: OVER 0/2 SECOND 1s pair; Retry-After 1");
  EXPECT_EQ(ask(R"({"domain":"other","descriptors":[{"entries":[{"key":"two","value":"x"}]}]})"), "OK: OK -");
  EXPECT_EQ(ask(descriptors(entry("day"))).substr(0, 15), "OK: OK 2/3 DAY ");
}

TEST_F(GrpcHandlerTest, ADenialTakesNothingFromAnyDescriptor) {
  use(kRules);
  EXPECT_EQ(ask(descriptors(entry("ten"), ",\"hitsAddend\":8")), "OK: OK 2/10 MINUTE 48s");
  EXPECT_EQ(ask(descriptors(entry("ten") + "," + entry("day"), ",\"hitsAddend\":5")).substr(0, 26),
            "OVER: OVER 2/10 MINUTE 18s");
  EXPECT_EQ(ask(descriptors(entry("ten"), ",\"hitsAddend\":2")), "OK: OK 0/10 MINUTE 60s");
}

TEST_F(GrpcHandlerTest, ADescriptorMayCostMoreThanTheOthersOrOnlyLook) {
  use(kRules);
  EXPECT_EQ(ask(descriptors(entry("two") + "," + entry("ten", "x", ",\"hitsAddend\":\"4\""))),
            "OK: OK 1/2 SECOND 1s pair OK 6/10 MINUTE 24s");
  EXPECT_EQ(ask(descriptors(entry("two", "x", ",\"hitsAddend\":\"0\""))), "OK: OK 1/2 SECOND 1s pair");
  EXPECT_EQ(ask(descriptors(entry("two"))), "OK: OK 0/2 SECOND 1s pair");
  EXPECT_EQ(ask(descriptors(entry("two", "x", ",\"hitsAddend\":\"0\""))),
            "OVER: OVER 0/2 SECOND 1s pair; Retry-After 1");
}

TEST_F(GrpcHandlerTest, ShadowNeverDeniesAndQuotaModeOnlyIfAllAreOut) {
  use(kRules);
  EXPECT_EQ(ask(descriptors(entry("watched"))), "OK: OK 0/1 SECOND 1s");
  EXPECT_EQ(ask(descriptors(entry("watched"))), "OK: OK 0/1 SECOND 1s");
  const std::string both = descriptors(entry("q1") + "," + entry("q2"));
  EXPECT_EQ(ask(both), "OK: OK 0/1 MINUTE 60s OK 1/2 MINUTE 30s");
  EXPECT_EQ(ask(both), "OK: OVER 0/1 MINUTE 60s OK 0/2 MINUTE 60s");
  EXPECT_EQ(ask(both), "OVER: OVER 0/1 MINUTE 60s OVER 0/2 MINUTE 30s; Retry-After 30") << "one of them is enough";
}

TEST_F(GrpcHandlerTest, AQuotaModeRuleOfNothingLeavesTheDecisionToTheOthers) {
  use("domain: d\ndescriptors:\n"
      "  - {key: none, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 0}}\n"
      "  - {key: one, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}}\n");
  const std::string both = descriptors(entry("none") + "," + entry("one"));
  EXPECT_EQ(ask(both), "OK: OVER 0/0 HOUR 0s OK 0/1 MINUTE 60s");
  EXPECT_EQ(ask(both), "OVER: OVER 0/0 HOUR 0s OVER 0/1 MINUTE 60s; Retry-After 60");
  EXPECT_EQ(ask(descriptors(entry("none"))), "OVER: OVER 0/0 HOUR 0s");
}

TEST_F(GrpcHandlerTest, AQuotaModeRuleThatIsUnlimitedIsNeverOut) {
  const char* const rules =
      "domain: d\ndescriptors:\n"
      "  - {key: free, quota_mode: true, rate_limit: {unlimited: true}}\n"
      "  - {key: none, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 0}}\n"
      "  - {key: one, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}}\n";
  use(rules, "overrides: {'d.one:vip': {unlimited: true}}");
  for (const std::string& one : {entry("free"), entry("one", "vip")}) {
    ask(descriptors(entry("one")));
    EXPECT_EQ(ask(descriptors(entry("one") + "," + one)), "OK: OVER 0/1 MINUTE 60s OK 4294967295");
    EXPECT_EQ(ask(descriptors(entry("none") + "," + one)), "OK: OVER 0/0 HOUR 0s OK 4294967295");
  }
  EXPECT_EQ(ask(descriptors(entry("one"))).substr(0, 5), "OVER:") << "alone it denies";
}

TEST_F(GrpcHandlerTest, NothingPerUnitDeniesAlways) {
  use(kRules);
  EXPECT_EQ(ask(descriptors(entry("none") + "," + entry("two"))), "OVER: OVER 0/0 HOUR 0s OK 2/2 SECOND 0s pair");
}

TEST_F(GrpcHandlerTest, TheCallersNumbersComeFirst) {
  use(kRules);
  const std::string own = entry("two", "x", R"(,"limit":{"requestsPerUnit":1,"unit":"HOUR"})");
  EXPECT_EQ(ask(descriptors(own)), "OK: OK 0/1 HOUR 3600s");
  EXPECT_EQ(ask(descriptors(own)), "OVER: OVER 0/1 HOUR 3600s; Retry-After 3600");
  EXPECT_EQ(ask(descriptors(entry("two"))), "OK: OK 1/2 SECOND 1s pair") << "another bucket";
}

TEST_F(GrpcHandlerTest, ALimitByDescriptorShowsInTheFirstStatusThatHasIt) {
  use(kRules, "limits: {strict: {key: descriptor:ten, rate: 1/m}}");
  const std::string both = descriptors(entry("two") + "," + entry("ten"));
  EXPECT_EQ(ask(both), "OK: OK 1/2 SECOND 1s pair OK 0/1 MINUTE 60s strict");
  EXPECT_EQ(ask(both), "OVER: OK 1/2 SECOND 1s pair OVER 0/1 MINUTE 60s strict; Retry-After 60");
}

TEST_F(GrpcHandlerTest, ALimitByDescriptorThatBlocksItsIdShowsInThatStatusToo) {
  use(kRules,
      "limits: {other: {key: descriptor:ten, rate: 5/m}}\n"
      "overrides: {'other:bad': {blocked: true}}\naccess: {deny: [{limit: other, id: worse}]}");
  EXPECT_EQ(ask(descriptors(entry("two") + "," + entry("ten", "bad"))),
            "OVER: OK 2/2 SECOND 0s pair OVER 0/5 MINUTE 0s other");
  EXPECT_EQ(ask(descriptors(entry("two") + "," + entry("ten", "worse"))),
            "OVER: OK 2/2 SECOND 0s pair OVER 0/5 MINUTE 0s other");
}

TEST_F(GrpcHandlerTest, HeadersAreThoseOfTheDescriptorNearestToItsLimit) {
  use(kRules);
  handler_.options.headers = true;
  EXPECT_THAT(ask(descriptors(entry("ten") + "," + entry("two"))),
              HasSubstr("; RateLimit-Limit 2; RateLimit-Remaining 1; RateLimit-Reset 1"));
  ask(descriptors(entry("two")));
  EXPECT_THAT(ask(descriptors(entry("ten") + "," + entry("two"))),
              HasSubstr("; RateLimit-Limit 2; RateLimit-Remaining 0; RateLimit-Reset 1; Retry-After 1"));
}

TEST_F(GrpcHandlerTest, MetadataDescribesTheRequest) {
  use("domain: d\ndescriptors:\n- {key: a, metadata: {owner: x}, rate_limit: {unit: day, requests_per_unit: 1}}\n"
      "- {key: q, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}\n");
  handler_.options.metadata = true;
  const auto metadata_of = [&](const std::string& asked) {
    std::string json;
    EXPECT_TRUE(google::protobuf::util::MessageToJsonString(call(asked).dynamic_metadata(), &json).ok());
    return json;
  };
  const std::string json = metadata_of(descriptors(entry("a", "1"), ",\"hitsAddend\":3"));
  EXPECT_THAT(json, HasSubstr(R"("domain":"d")"));
  EXPECT_THAT(json, HasSubstr(R"("hitsAddend":3)"));
  EXPECT_THAT(json, HasSubstr(R"("entries":["a=1"])"));
  EXPECT_THAT(json, HasSubstr(R"("metadata":{"owner":"x"})"));
  EXPECT_THAT(json, HasSubstr(R"("quotaModeEnabled":false)"));
  const std::string over = metadata_of(descriptors(entry("q", "1", ",\"hitsAddend\":\"2\"")));
  EXPECT_THAT(over, HasSubstr(R"("hitsAddend":2)"));
  EXPECT_THAT(over, HasSubstr(R"("quotaModeEnabled":true)"));
  EXPECT_THAT(over, HasSubstr(R"("quotaModeViolations":[0])"));
}

TEST_F(GrpcHandlerTest, RefusesWhatIsEmptyWithTheWordsOfThePeer) {
  use(kRules);
  ask(R"({"descriptors":[{"entries":[{"key":"two","value":"x"}]}]})");
  EXPECT_THAT(fields_, HasSubstr("grpc-status: 2\r\ngrpc-message: rate limit domain must not be empty\r\n"));
  ask(R"({"domain":"d"})");
  EXPECT_THAT(fields_, HasSubstr("grpc-status: 2\r\ngrpc-message: rate limit descriptor list must not be empty\r\n"));
}

TEST_F(GrpcHandlerTest, ABodyMayComeInPiecesOfAnySize) {
  use(kRules);
  const std::string bytes = prefixed(request(descriptors(entry("ten"))).SerializeAsString());
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    http::FakeExchange exchange(handler_, head_of(kCall), "192.0.2.1", clock_.now());
    exchange.begin(std::string_view(bytes).substr(0, cut), false);
    exchange.body(std::string_view(bytes).substr(cut), false);
    EXPECT_TRUE(exchange.asked().empty());
    exchange.body({}, true);
    ASSERT_EQ(exchange.asked().size(), 1u) << cut;
    EXPECT_EQ(exchange->returned, bytes.size());
    exchange.answer(0, decide(exchange.asked()[0].query));
    EXPECT_EQ(finish(exchange).statuses_size(), 1) << cut;
  }
}

TEST_F(GrpcHandlerTest, EndsACallThatItCannotRead) {
  use(kRules);
  const auto ends = [&](std::string_view path, std::string_view body, std::string_view more = {}) {
    http::FakeExchange exchange(handler_, head_of(path, more), "192.0.2.1", clock_.now());
    exchange.begin(body);
    EXPECT_TRUE(exchange->complete);
    EXPECT_EQ(exchange->status, 200);
    EXPECT_EQ(exchange->content, "");
    return exchange->fields.substr(0, exchange->fields.find("\r\ngrpc-message"));
  };
  EXPECT_EQ(ends("/a.B/C", prefixed("")), "grpc-status: 12");
  EXPECT_EQ(ends(kCall, ""), "grpc-status: 13");
  EXPECT_EQ(ends(kCall, "\0\0"s), "grpc-status: 13");
  EXPECT_EQ(ends(kCall, "\7\0\0\0\0"s), "grpc-status: 13");
  EXPECT_EQ(ends(kCall, prefixed("garbage")), "grpc-status: 13");
  EXPECT_EQ(ends(kCall, prefixed("") + prefixed("")), "grpc-status: 13");
  EXPECT_EQ(ends(kCall, prefixed("", 1)), "grpc-accept-encoding: identity\r\ngrpc-status: 12");
  EXPECT_EQ(ends(kCall, "\0\0\4\0\1"s), "grpc-status: 8");
  EXPECT_EQ(ends(kCall, prefixed(""), "grpc-timeout: soon\r\n"), "grpc-status: 13");
  EXPECT_EQ(counters_.calls[0][13].value(), 6u);
}

TEST_F(GrpcHandlerTest, EndsACallWhoseTimeIsOver) {
  use(kRules);
  http::FakeExchange exchange(handler_, head_of(kCall, "grpc-timeout: 20m\r\n"), "192.0.2.1", clock_.now());
  exchange.begin(prefixed(request(descriptors(entry("ten"))).SerializeAsString()));
  ASSERT_EQ(exchange.asked().size(), 1u);
  exchange.expire(clock_.time() + 19ms);
  EXPECT_FALSE(exchange->complete);
  exchange.expire(clock_.time() + 20ms);
  EXPECT_TRUE(exchange->complete);
  EXPECT_THAT(exchange->fields, HasSubstr("grpc-status: 4\r\n"));
}

TEST_F(GrpcHandlerTest, WaitsForRoomToAsk) {
  use(kRules);
  http::FakeExchange exchange(handler_, head_of(kCall), "192.0.2.1", clock_.now());
  exchange.leave_no_room();
  exchange.begin(prefixed(request(descriptors(entry("ten"))).SerializeAsString()));
  ASSERT_TRUE(exchange.waits_to_ask());
  exchange.let_ask();
  ASSERT_EQ(exchange.asked().size(), 1u);
  exchange.answer(0, decide(exchange.asked()[0].query));
  EXPECT_EQ(finish(exchange).statuses(0).limit_remaining(), 9u);
}

TEST_F(GrpcHandlerTest, AFailureOfTheStoreDeniesAndAFullOneIsTheProxysToDecide) {
  use(kRules);
  const auto fails = [&](Fault fault) {
    http::FakeExchange exchange(handler_, head_of(kCall), "192.0.2.1", clock_.now());
    exchange.begin(prefixed(request(descriptors(entry("ten") + "," + entry("two"))).SerializeAsString()));
    exchange.answer(0, Error{fault, "why"});
    const RateLimitResponse response = finish(exchange);
    return fields_ + std::to_string(response.overall_code()) + " " + std::to_string(response.statuses_size());
  };
  EXPECT_EQ(fails(Fault::unavailable), "2 2");
  EXPECT_EQ(fails(Fault::timeout), "2 2");
  EXPECT_EQ(fails(Fault::overloaded), "grpc-status: 14\r\ngrpc-message: why\r\n0 0");
  EXPECT_EQ(fails(Fault::internal), "grpc-status: 13\r\ngrpc-message: the server failed; its log says why\r\n0 0");
}

TEST_F(GrpcHandlerTest, AsksForATokenButNotForHealth) {
  use(kRules);
  handler_.is_welcome = [](const RequestHead& head) { return head.headers.find("x-weir-token") != nullptr; };
  ask(descriptors(entry("ten")));
  EXPECT_THAT(fields_, HasSubstr("grpc-status: 16\r\n"));
  http::FakeExchange health(handler_, head_of("/grpc.health.v1.Health/Check"));
  health.begin(prefixed(""));
  EXPECT_EQ(health->content, prefixed("\x08\x01"));
}

TEST_F(GrpcHandlerTest, TellsHealthAndItsChanges) {
  bool serving = false;
  handler_.is_serving = [&] { return serving; };
  http::FakeExchange check(handler_, head_of("/grpc.health.v1.Health/Check"));
  check.begin(prefixed("\x0a\x09ratelimit"));
  EXPECT_EQ(check->content, prefixed("\x08\x02"));
  http::FakeExchange unknown(handler_, head_of("/grpc.health.v1.Health/Check"));
  unknown.begin(prefixed("\x0a\x01x"));
  EXPECT_THAT(unknown->fields, HasSubstr("grpc-status: 5\r\n"));
  http::FakeExchange watch(handler_, head_of("/grpc.health.v1.Health/Watch"), "192.0.2.1", clock_.now());
  watch.begin(prefixed(""));
  EXPECT_EQ(watch->content, prefixed("\x08\x02"));
  serving = true;
  watch.expire(clock_.time() + 1s);
  EXPECT_EQ(watch->content, prefixed("\x08\x02") + prefixed("\x08\x01"));
  EXPECT_FALSE(watch->complete);
}

TEST_F(GrpcHandlerTest, AWatchOfAnUnknownServiceIsToldSoAndGoesOn) {
  http::FakeExchange watch(handler_, head_of("/grpc.health.v1.Health/Watch"), "192.0.2.1", clock_.now());
  watch.begin(prefixed("\x0a\x01x"));
  EXPECT_EQ(watch->content, prefixed("\x08\x03"));
  watch.expire(clock_.time() + 1s);
  EXPECT_EQ(watch->content, prefixed("\x08\x03"));
  EXPECT_FALSE(watch->complete);
}

TEST_F(GrpcHandlerTest, AWatchEndsWhenTheServerShutsDown) {
  http::FakeExchange watch(handler_, head_of("/grpc.health.v1.Health/Watch"), "192.0.2.1", clock_.now());
  watch.begin(prefixed(""));
  EXPECT_FALSE(watch->complete);
  watch.drain();
  EXPECT_TRUE(watch->complete);
  ASSERT_EQ(watch->trailers.size(), 1u);
  EXPECT_EQ(watch->trailers[0].second, "14");
}

TEST_F(GrpcHandlerTest, ACallWhoseMessageDoesNotArriveEndsWithAStatus) {
  http::FakeExchange exchange(handler_, head_of(kCall), "192.0.2.1", clock_.now());
  exchange.begin("\0"s, false);
  exchange.refuse({408, "the content takes too long"});
  EXPECT_EQ(exchange->status, 200);
  EXPECT_EQ(exchange->fields, "grpc-status: 4\r\ngrpc-message: the content takes too long\r\n");
}

TEST_F(GrpcHandlerTest, AnswersJson) {
  use(kRules);
  const auto post = [&](std::string_view body) {
    http::FakeExchange exchange(handler_, "POST /json HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
                                "192.0.2.1", clock_.now());
    exchange.begin(body);
    if (!exchange.asked().empty()) exchange.answer(0, decide(exchange.asked()[0].query));
    return std::to_string(exchange->status) + " " + exchange->content;
  };
  EXPECT_THAT(post(descriptors(entry("ten"), ",\"hitsAddend\":10")), HasSubstr("200 {\"overallCode\":\"OK\""));
  EXPECT_THAT(post(descriptors(entry("ten"))), HasSubstr("429 {\"overallCode\":\"OVER_LIMIT\""));
  EXPECT_THAT(post("{"), HasSubstr("400 "));
  EXPECT_THAT(post("{}"), HasSubstr("400 "));
}

TEST_F(GrpcHandlerTest, EverythingElseGoesToTheHandlerBehind) {
  http::FakeExchange exchange(handler_, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
  exchange.begin();
  EXPECT_EQ(exchange->status, 404);
  EXPECT_EQ(exchange->content, "/healthz");
}

}  // namespace
}  // namespace weir::grpc_handler_test
