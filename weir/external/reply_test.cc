#include "weir/external/reply.h"

#include <gtest/gtest.h>
#include <proto/weir/limits/v1/limits.pb.h>

#include <chrono>
#include <string>
#include <vector>

#include "weir/base/bounds.h"

namespace weir::external::reply_test {
namespace {

using namespace std::chrono_literals;
namespace pb = weir::limits::v1;

// "100/1s burst 50 tenant=acme policy=failClosed code=503 backend=http://a max_age=60 no_store ignored=tenant_key", or
// the reason of the failure.
std::string show(const Result<ServiceReply>& reply) {
  if (!reply) return std::string(reply.error().word);
  const ServiceAnswer& answer = reply->answer;
  std::string text = "unlimited";
  if (answer.numbers) {
    text = std::to_string(answer.numbers->count()) + "/" + std::to_string(answer.numbers->period() / 1ms) +
           "ms burst " + std::to_string(answer.numbers->burst());
  }
  if (!answer.tenant_key.empty()) text += " tenant=" + answer.tenant_key;
  if (answer.failure_policy) text.append(" policy=").append(print(*answer.failure_policy));
  if (answer.failure_code) text += " code=" + std::to_string(*answer.failure_code);
  if (!answer.backend_url.empty()) text += " backend=" + answer.backend_url;
  if (reply->max_age) text += " max_age=" + std::to_string(*reply->max_age / 1s);
  if (reply->no_store) text += " no_store";
  for (const auto& ignored : reply->ignored) text.append(" ignored=").append(ignored.field);
  return text;
}

std::string json(std::string_view text, Duration window_max = bounds::window_max) {
  return show(parse_json_reply(text, window_max));
}

// The required members and these.
std::string json_with(const std::string& more) {
  return json(R"({"average":100,"burst":50,"period":"1s",)" + more + "}");
}

TEST(JsonReply, HasEveryField) {
  EXPECT_EQ(json(R"({"average":1000,"burst":200,"period":"1m30s","tenant_key":"acme-corp","failure_policy":"failClosed",
                     "failure_code":503,"backend_url":"http://a:8080","cache_max_age_seconds":300,"cache_no_store":true,
                     "unknown":[1,{"x":null}]})"),
            "1000/90000ms burst 200 tenant=acme-corp policy=failClosed code=503 backend=http://a:8080 max_age=300 "
            "no_store");
}

TEST(JsonReply, NeedsTheThreeNumbers) {
  struct Row {
    std::string_view text;
    std::string_view shown;
  };
  constexpr Row kRows[] = {
      {R"({"average":100,"burst":50,"period":"1s"})", "100/1000ms burst 50"},
      {R"({"average":"100","burst":"50","period":"1s"})", "100/1000ms burst 50"},
      {R"({"average":1,"burst":1,"period":0.5})", "1/500ms burst 1"},
      {R"({"average":1,"burst":1,"period":60})", "1/60000ms burst 1"},
      {R"({"burst":50,"period":"1s"})", "bad_average"},
      {R"({"average":null,"burst":50,"period":"1s"})", "bad_average"},
      {R"({"average":-1,"burst":50,"period":"1s"})", "bad_average"},
      {R"({"average":1.5,"burst":50,"period":"1s"})", "bad_average"},
      {R"({"average":"many","burst":50,"period":"1s"})", "bad_average"},
      {R"({"average":"","burst":50,"period":"1s"})", "bad_average"},
      {R"({"average":true,"burst":50,"period":"1s"})", "bad_average"},
      {R"({"average":9223372036854775808,"burst":50,"period":"1s"})", "bad_average"},
      {R"({"average":100,"period":"1s"})", "bad_burst"},
      {R"({"average":100,"burst":0,"period":"1s"})", "bad_burst"},
      {R"({"average":100,"burst":-1,"period":"1s"})", "bad_burst"},
      {R"({"average":100,"burst":[],"period":"1s"})", "bad_burst"},
      {R"({"average":100,"burst":50})", "bad_period"},
      {R"({"average":100,"burst":50,"period":""})", "bad_period"},
      {R"({"average":100,"burst":50,"period":"1"})", "bad_period"},
      {R"({"average":100,"burst":50,"period":"0s"})", "bad_period"},
      {R"({"average":100,"burst":50,"period":0})", "bad_period"},
      {R"({"average":100,"burst":50,"period":"-1s"})", "bad_period"},
      {R"({"average":100,"burst":50,"period":"1 fortnight"})", "bad_period"},
      {R"({"average":100,"burst":50,"period":{}})", "bad_period"},
      {R"({"average":9223372036854775807,"burst":50,"period":"1s"})", "bad_numbers"},
      {R"({"average":1,"burst":9223372036854775807,"period":"1s"})", "bad_numbers"},
      {R"({"average":0,"burst":1,"period":"1s"})", "unlimited"},
      {R"({"average":0,"burst":9223372036854775807,"period":"24h"})", "unlimited"},
      {R"({"average":0,"burst":0,"period":"1s"})", "bad_burst"},
      {R"({"average":0,"burst":1,"period":"0s"})", "bad_period"},
      {R"({"average":0})", "bad_burst"},
  };
  for (const Row& row : kRows) EXPECT_EQ(json(row.text), row.shown) << row.text;
}

TEST(JsonReply, IsAnObjectOfBoundedSize) {
  for (const std::string_view text : {"", "nonsense", "[]", "null", "42", R"("average")", R"({"average":100)",
                                      R"({"average":1,"average":2,"burst":1,"period":"1s"})", "{}{}"}) {
    EXPECT_EQ(json(text), "bad_body") << text;
  }
  std::string text = R"({"average":100,"burst":50,"period":"1s","more":")";
  text.append(bounds::service_reply_bytes_max - text.size() - 2, 'x').append("\"}");
  EXPECT_EQ(text.size(), bounds::service_reply_bytes_max);
  EXPECT_EQ(json(text), "100/1000ms burst 50");
  EXPECT_EQ(json(text + " "), "bad_body");
}

TEST(JsonReply, CutAnywhereIsAFailure) {
  const std::string whole = R"({"average":100,"burst":50,"period":"1s","tenant_key":"acme"})";
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_EQ(json(whole.substr(0, size)), "bad_body") << size;
}

TEST(JsonReply, RefusesNumbersThatTheStoreCannotHold) {
  constexpr std::string_view kYear = R"({"average":1,"burst":365,"period":"1d"})";
  EXPECT_EQ(json(kYear), "1/86400000ms burst 365");
  EXPECT_EQ(json(kYear, bounds::redis_window_max), "bad_numbers");
  EXPECT_EQ(json(R"({"average":1,"burst":104,"period":"1d"})", bounds::redis_window_max), "1/86400000ms burst 104");
  EXPECT_EQ(json(R"({"average":1,"burst":105,"period":"1d"})", bounds::redis_window_max), "bad_numbers");
  EXPECT_EQ(json(R"({"average":0,"burst":365,"period":"1d"})", bounds::redis_window_max), "unlimited");
}

TEST(JsonReply, LeavesOutInvalidOptionalFields) {
  const std::string most(bounds::tenant_key_bytes_max, 'k');
  struct Row {
    std::string more;
    std::string shown;
  };
  const Row rows[] = {
      {R"("tenant_key":"A-Za.z0:9_")", " tenant=A-Za.z0:9_"},
      {R"("tenant_key":")" + most + "\"", " tenant=" + most},
      {R"("tenant_key":")" + most + "k\"", " ignored=tenant_key"},
      {R"("tenant_key":"")", ""},
      {R"("tenant_key":null)", ""},
      {R"("tenant_key":"a b")", " ignored=tenant_key"},
      {R"("tenant_key":"a/b")", " ignored=tenant_key"},
      {R"("tenant_key":"\u00e9")", " ignored=tenant_key"},
      {R"("tenant_key":"a\u0000b")", " ignored=tenant_key"},
      {R"("tenant_key":7)", " ignored=tenant_key"},
      {R"("failure_policy":"passthrough")", " policy=passThrough"},
      {R"("failure_policy":"PASS_THROUGH")", " policy=passThrough"},
      {R"("failure_policy":"fail_closed")", " policy=failClosed"},
      {R"("failure_policy":"InMemoryFallback")", " policy=inMemoryFallback"},
      {R"("failure_policy":"FAILURE_POLICY_IN_MEMORY_FALLBACK")", " policy=inMemoryFallback"},
      {R"("failure_policy":"FAILURE_POLICY_UNSPECIFIED")", ""},
      {R"("failure_policy":"")", ""},
      {R"("failure_policy":"open")", " ignored=failure_policy"},
      {R"("failure_policy":true)", " ignored=failure_policy"},
      {R"("failure_code":400)", " code=400"},
      {R"("failure_code":"599")", " code=599"},
      {R"("failure_code":0)", ""},
      {R"("failure_code":399)", " ignored=failure_code"},
      {R"("failure_code":600)", " ignored=failure_code"},
      {R"("failure_code":-503)", " ignored=failure_code"},
      {R"("failure_code":4294967799)", " ignored=failure_code"},  // 503 in its low 32 bits
      {R"("failure_code":"teapot")", " ignored=failure_code"},
      {R"("cache_max_age_seconds":1)", " max_age=1"},
      {R"("cache_max_age_seconds":"60")", " max_age=60"},
      {R"("cache_max_age_seconds":0)", ""},
      {R"("cache_max_age_seconds":-1)", " ignored=cache_max_age_seconds"},
      {R"("cache_max_age_seconds":"soon")", " ignored=cache_max_age_seconds"},
      {R"("cache_max_age_seconds":9223372036854775807)", " max_age=" + std::to_string(bounds::service_ttl_max / 1s)},
      {R"("cache_no_store":false)", ""},
      {R"("cache_no_store":true)", " no_store"},
      {R"("cache_no_store":"true")", " ignored=cache_no_store"},
      {R"("tenant_key":" ","failure_policy":"x","failure_code":1,"cache_max_age_seconds":-1)",
       " ignored=tenant_key ignored=failure_policy ignored=failure_code ignored=cache_max_age_seconds"},
  };
  for (const Row& row : rows) EXPECT_EQ(json_with(row.more), "100/1000ms burst 50" + row.shown) << row.more;
}

TEST(JsonReply, NamesTheFieldTheValueAndTheRuleOfWhatItLeavesOut) {
  const auto reply = parse_json_reply(R"({"average":1,"burst":1,"period":"1s","failure_code":42})", bounds::window_max);
  ASSERT_TRUE(reply);
  ASSERT_EQ(reply->ignored.size(), 1u);
  EXPECT_EQ(reply->ignored[0].detail, "failure_code 42 must be 400 to 599");
  const auto broken = parse_json_reply(R"({"average":-3,"burst":1,"period":"1s"})", bounds::window_max);
  EXPECT_EQ(broken.error().detail, "average -3 must be 0 or more");
}

// What was meant as a backend must not lead to the default one.
TEST(JsonReply, AnUnusableBackendUrlStaysOne) {
  EXPECT_EQ(json_with(R"("backend_url":"")"), "100/1000ms burst 50");
  EXPECT_EQ(json_with(R"("backend_url":5)"), "100/1000ms burst 50 backend=(unusable backend_url)");
  const std::string most = "http://" + std::string(bounds::backend_url_bytes_max - 7, 'a');
  EXPECT_EQ(json_with(R"("backend_url":")" + most + "\""), "100/1000ms burst 50 backend=" + most);
  EXPECT_EQ(json_with(R"("backend_url":")" + most + "a\""), "100/1000ms burst 50 backend=(unusable backend_url)");
}

// ---- Protobuf, written by the library ----

pb::GetLimitsResponse numbers() {
  pb::GetLimitsResponse message;
  message.set_average(100);
  message.set_burst(50);
  message.set_period("1s");
  return message;
}

std::string protobuf(const pb::GetLimitsResponse& message, Duration window_max = bounds::window_max) {
  return show(parse_protobuf_reply(message.SerializeAsString(), window_max));
}

TEST(ProtobufReply, HasEveryField) {
  pb::GetLimitsResponse message = numbers();
  message.set_period("1m30s");
  message.set_tenant_key("acme-corp");
  message.set_failure_policy(pb::FAILURE_POLICY_FAIL_CLOSED);
  message.set_failure_code(503);
  message.set_backend_url("http://a:8080");
  message.set_cache_max_age_seconds(300);
  message.set_cache_no_store(true);
  EXPECT_EQ(protobuf(message),
            "100/90000ms burst 50 tenant=acme-corp policy=failClosed code=503 backend=http://a:8080 max_age=300 "
            "no_store");
}

TEST(ProtobufReply, EmptyMessageIsAFailure) {
  EXPECT_EQ(protobuf({}), "bad_burst");
}

TEST(ProtobufReply, MayLackTheAverageIfTheRestIsThere) {
  pb::GetLimitsResponse message = numbers();
  message.clear_average();
  EXPECT_EQ(protobuf(message), "unlimited");
  message.clear_period();
  EXPECT_EQ(protobuf(message), "bad_period");
  message = numbers();
  message.clear_average();
  message.clear_burst();
  EXPECT_EQ(protobuf(message), "bad_burst");
}

TEST(ProtobufReply, RefusesInvalidNumbers) {
  pb::GetLimitsResponse message = numbers();
  message.set_average(-1);
  EXPECT_EQ(protobuf(message), "bad_average");
  message = numbers();
  message.set_burst(-1);
  EXPECT_EQ(protobuf(message), "bad_burst");
  message = numbers();
  message.set_period("soon");
  EXPECT_EQ(protobuf(message), "bad_period");
  message.set_period("0s");
  EXPECT_EQ(protobuf(message), "bad_period");
  message = numbers();
  message.set_average(INT64_MAX);
  EXPECT_EQ(protobuf(message), "bad_numbers");
  message = numbers();
  message.set_average(1);
  message.set_burst(365);
  message.set_period("24h");
  EXPECT_EQ(protobuf(message, bounds::redis_window_max), "bad_numbers");
}

TEST(ProtobufReply, LeavesOutInvalidOptionalFields) {
  pb::GetLimitsResponse message = numbers();
  message.set_tenant_key("a b");
  message.set_failure_policy(static_cast<pb::FailurePolicy>(4));
  message.set_failure_code(302);
  message.set_cache_max_age_seconds(-1);
  EXPECT_EQ(protobuf(message),
            "100/1000ms burst 50 ignored=tenant_key ignored=failure_policy ignored=failure_code "
            "ignored=cache_max_age_seconds");
  message = numbers();
  message.set_failure_policy(static_cast<pb::FailurePolicy>(-1));
  EXPECT_EQ(protobuf(message), "100/1000ms burst 50 ignored=failure_policy");
  message = numbers();
  message.set_cache_max_age_seconds(0);
  message.set_failure_policy(pb::FAILURE_POLICY_PASS_THROUGH);
  EXPECT_EQ(protobuf(message), "100/1000ms burst 50 policy=passThrough");
  message.set_failure_policy(pb::FAILURE_POLICY_IN_MEMORY_FALLBACK);
  EXPECT_EQ(protobuf(message), "100/1000ms burst 50 policy=inMemoryFallback");
}

TEST(ProtobufReply, SkipsFieldsItDoesNotKnow) {
  std::string bytes = numbers().SerializeAsString();
  bytes +=
      "\x52\x03"
      "10s";                                          // 10: request_timeout
  bytes += "\x58\x02";                                // 11: backend_protocol
  bytes += std::string("\x61\1\2\3\4\5\6\7\x08", 9);  // 12: a fixed64
  bytes += "\x6d\1\2\3\4";                            // 13: a fixed32
  bytes += "\x3a\x01x";                               // 7 as text: not ours
  EXPECT_EQ(show(parse_protobuf_reply(bytes, bounds::window_max)), "100/1000ms burst 50");
}

TEST(ProtobufReply, MalformedMessageIsAFailure) {
  const std::string good = numbers().SerializeAsString();
  const std::string broken[] = {
      good + "\x08",      // a tag without its value
      good + "\x08\x80",  // a varint that does not end
      good +
          "\x1a\x05"
          "1s",                                                // shorter than it says
      good + std::string("\x00\x01", 2),                       // field number 0
      good + "\x0b",                                           // a group
      good + "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",   // more than 64 bits
      good + "\x61\x01",                                       // half a fixed64
      good + "\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x",  // longer than anything
  };
  for (const std::string& bytes : broken) {
    EXPECT_EQ(show(parse_protobuf_reply(bytes, bounds::window_max)), "bad_body") << testing::PrintToString(bytes);
  }
  EXPECT_EQ(show(parse_protobuf_reply(std::string(bounds::service_reply_bytes_max + 1, 'x'), bounds::window_max)),
            "bad_body");
}

TEST(ProtobufReply, OfSeveralTheLastCounts) {
  pb::GetLimitsResponse other = numbers();
  other.set_average(7);
  EXPECT_EQ(show(parse_protobuf_reply(numbers().SerializeAsString() + other.SerializeAsString(), bounds::window_max)),
            "7/1000ms burst 50");
}

}  // namespace
}  // namespace weir::external::reply_test
