// The rate limit service from a message to its answer, in memory and on a clock that stands still: what its tests
// share.
#pragma once

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <proto/envoy/service/ratelimit/v3/rls.pb.h>
#include "weir/base/clock.h"
#include "weir/config/parse.h"
#include "weir/http/testing/fake_exchange.h"
#include "weir/policy/explain.h"
#include "weir/policy/policy.h"
#include "weir/protocol/grpc/grpc_handler.h"
#include "weir/store/memory/charging.h"
#include "weir/store/memory/table.h"

namespace weir::grpc_service_test {

using namespace std::chrono_literals;
using envoy::service::ratelimit::v3::RateLimitRequest;
using envoy::service::ratelimit::v3::RateLimitResponse;

inline constexpr std::string_view kCall = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

// Stands for the decision API.
class Rest final : public http::Handler {
 public:
  void begin(http::Exchange& exchange, const RequestHead& head, http::BodyPart) override {
    exchange.respond({404, {}, {}, {}}, {head.path, true, {}});
  }
  void body(http::Exchange&, http::BodyPart) override {}
};

inline std::string prefixed(std::string_view message, char compressed = 0) {
  std::string out;
  const std::size_t begun = grpc::begin_message(out);
  out += message;
  grpc::end_message(begun, out);
  out[0] = compressed;
  return out;
}

inline std::string head_of(std::string_view path, std::string_view more = {}) {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: h\r\nContent-Type: application/grpc\r\n" +
         "Transfer-Encoding: chunked\r\n" + std::string(more) + "\r\n";
}

class GrpcService : public testing::Test {
 protected:
  // One file of rules; `algorithm` if not the default, and what else the configuration says.
  void use(const std::string& rules, const std::string& more = "", const std::string& algorithm = "") {
    config::Options options;
    options.read = [rules](const std::string&) { return Result<std::string>(rules); };
    const std::string how = algorithm.empty() ? "" : ", algorithm: " + algorithm;
    const config::Outcome outcome =
        config::parse("envoy: [{path: rules.yaml" + how + "}]\n" + more, "weir.yaml", options);
    ASSERT_TRUE(std::holds_alternative<config::Loaded>(outcome)) << text(std::get<config::Problems>(outcome));
    policy_ = std::get<config::Loaded>(outcome).policy;
  }
  static RateLimitRequest request(std::string_view json) {
    RateLimitRequest message;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(std::string(json), &message).ok()) << json;
    return message;
  }
  // What the pipeline does with a question.
  Result<Answer> decide(const Query& query) {
    const Now now = clock_.now();
    if (auto done = policy_->resolve(query, Known{}, now, resolved_); !done) return done.error();
    Answer answer;
    answer.now = now;
    answer.verdict = weir::charge(*table_, resolved_.charges(), query.mode, resolved_.order(), now, clock_);
    explain(*policy_, resolved_, query.mode, answer);
    return answer;
  }
  // The whole call.
  RateLimitResponse call(std::string_view json) { return call(request(json)); }
  RateLimitResponse call(const RateLimitRequest& asked) {
    http::FakeExchange exchange(handler_, head_of(kCall), "192.0.2.1", clock_.now());
    exchange.begin(prefixed(asked.SerializeAsString()));
    if (!exchange.asked().empty()) exchange.answer(0, decide(exchange.asked()[0].query));
    return finish(exchange);
  }
  RateLimitResponse finish(http::FakeExchange& exchange) {
    RateLimitResponse response;
    EXPECT_TRUE(exchange->complete);
    fields_ = exchange->fields;
    if (exchange->trailers.empty()) return response;
    EXPECT_EQ(exchange->trailers[0].second, "0");
    EXPECT_TRUE(response.ParseFromString(exchange->content.substr(grpc::kPrefixBytes)));
    return response;
  }
  // "OVER: OVER 0/2 SECOND 1s, OK 4/5 MINUTE 1s; Retry-After 1"
  std::string ask(std::string_view json) {
    const RateLimitResponse response = call(json);
    const auto code = [](RateLimitResponse::Code from) {
      return std::string(from == RateLimitResponse::OVER_LIMIT ? "OVER" : from == RateLimitResponse::OK ? "OK" : "?");
    };
    std::string out = code(response.overall_code()) + ":";
    for (const auto& status : response.statuses()) {
      out += " " + code(status.code());
      if (!status.has_current_limit()) {
        out += status.limit_remaining() == 0 ? " -" : " " + std::to_string(status.limit_remaining());
        continue;
      }
      out += " " + std::to_string(status.limit_remaining()) + "/" +
             std::to_string(status.current_limit().requests_per_unit()) + " " +
             RateLimitResponse::RateLimit::Unit_Name(status.current_limit().unit()) + " " +
             std::to_string(status.duration_until_reset().seconds()) + "s";
      if (!status.current_limit().name().empty()) out += " " + status.current_limit().name();
    }
    for (const auto& header : response.response_headers_to_add()) out += "; " + header.key() + " " + header.value();
    return out;
  }

  ManualClock clock_{Time{1000s}, Wall{1'700'000'000s}};
  std::unique_ptr<Table> table_ = std::move(*Table::create({.buckets_max = 1000, .huge_pages = false}, HashKey{3, 4}));
  std::shared_ptr<const Policy> policy_;
  Resolved resolved_;
  Rest rest_;
  GrpcCounters counters_;
  GrpcHandler handler_{rest_, counters_};
  std::string fields_;
};

inline std::string descriptors(std::string_view list, std::string_view more = {}) {
  return "{\"domain\":\"d\",\"descriptors\":[" + std::string(list) + "]" + std::string(more) + "}";
}
inline std::string entry(std::string_view key, std::string_view value = "x", std::string_view more = {}) {
  return "{\"entries\":[{\"key\":\"" + std::string(key) + "\",\"value\":\"" + std::string(value) + "\"}]" +
         std::string(more) + "}";
}

}  // namespace weir::grpc_service_test
