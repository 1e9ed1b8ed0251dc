// Envoy's rate limit service as grpc++ sees it. grpc_cpp_test.py starts the servers: PLAIN is the address of one,
// VERBOSE that of another with envoy_headers and envoy_metadata. No two tests use the same buckets.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <envoy/service/ratelimit/v3/rls.grpc.pb.h>
#include <grpc/health/v1/health.grpc.pb.h>

namespace {

using envoy::service::ratelimit::v3::RateLimitRequest;
using envoy::service::ratelimit::v3::RateLimitResponse;
using envoy::service::ratelimit::v3::RateLimitService;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

using Entries = std::vector<std::pair<std::string, std::string>>;
constexpr std::uint32_t kUnlimited = 0xffff'ffff;

struct Asked {
  Entries entries;
  std::optional<std::uint64_t> hits = {};
  std::optional<std::uint32_t> per_minute = {};  // numbers of the caller's own
};

class GrpcCpp : public testing::Test {
 protected:
  explicit GrpcCpp(const char* variable = "PLAIN")
      : channel_(grpc::CreateChannel(std::getenv(variable), grpc::InsecureChannelCredentials())),
        stub_(RateLimitService::NewStub(channel_)) {}

  static RateLimitRequest request(const std::vector<Asked>& descriptors, std::uint32_t hits = 0) {
    RateLimitRequest out;
    out.set_domain("edge");
    out.set_hits_addend(hits);
    for (const Asked& asked : descriptors) {
      auto& descriptor = *out.add_descriptors();
      for (const auto& [key, value] : asked.entries) {
        auto& entry = *descriptor.add_entries();
        entry.set_key(key);
        entry.set_value(value);
      }
      if (asked.hits) descriptor.mutable_hits_addend()->set_value(*asked.hits);
      if (!asked.per_minute) continue;
      descriptor.mutable_limit()->set_requests_per_unit(*asked.per_minute);
      descriptor.mutable_limit()->set_unit(envoy::type::v3::MINUTE);
    }
    return out;
  }
  grpc::Status call(const RateLimitRequest& asked, RateLimitResponse& response) {
    grpc::ClientContext context;
    return stub_->ShouldRateLimit(&context, asked, &response);
  }
  RateLimitResponse ask(const std::vector<Asked>& descriptors, std::uint32_t hits = 0) {
    RateLimitResponse response;
    const grpc::Status status = call(request(descriptors, hits), response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.statuses_size(), static_cast<int>(descriptors.size()));
    return response;
  }
  bool passes(const std::vector<Asked>& descriptors, std::uint32_t hits = 0) {
    return ask(descriptors, hits).overall_code() == RateLimitResponse::OK;
  }
  // The limit that a single descriptor matches, or 0.
  std::uint32_t limit_of(const Entries& entries) {
    return ask({{entries}}).statuses(0).current_limit().requests_per_unit();
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<RateLimitService::Stub> stub_;
};

TEST_F(GrpcCpp, TakesAnExactValueThenPatternsInOrderThenTheKeyAlone) {
  EXPECT_EQ(limit_of({{"user", "bob"}}), 5u);
  EXPECT_EQ(limit_of({{"user", "team-a-lead"}}), 6u);
  EXPECT_EQ(limit_of({{"user", "team-b"}}), 7u);
  EXPECT_EQ(limit_of({{"user", "eve"}}), 8u);
  EXPECT_EQ(limit_of({{"nobody", "eve"}}), 0u);
}

TEST_F(GrpcCpp, ARuleAppliesOnlyAtItsDepth) {
  EXPECT_EQ(limit_of({{"path", "/x"}, {"method", "GET"}}), 3u);
  EXPECT_EQ(limit_of({{"path", "/x"}}), 0u);
  EXPECT_EQ(limit_of({{"path", "/x"}, {"method", "GET"}, {"more", "y"}}), 0u);
  EXPECT_EQ(limit_of({{"method", "GET"}}), 0u);
}

TEST_F(GrpcCpp, AnEntryWithoutALimitIsLetPass) {
  EXPECT_EQ(limit_of({{"path", "/x"}, {"method", "POST"}}), 2u);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(passes({{{{"path", "/x"}, {"method", "HEAD"}}}}));
  EXPECT_EQ(limit_of({{"path", "/x"}, {"method", "HEAD"}}), 0u);
}

TEST_F(GrpcCpp, WhatIsUnlimitedHasTheMostLeft) {
  const RateLimitResponse response = ask({{{{"free", "x"}}}}, 1'000'000);
  EXPECT_EQ(response.overall_code(), RateLimitResponse::OK);
  EXPECT_EQ(response.statuses(0).limit_remaining(), kUnlimited);
}

TEST_F(GrpcCpp, AReplacedRuleIsNotCharged) {
  const RateLimitResponse both = ask({{{{"pair", "r"}}}, {{{"vip", "r"}}}});
  EXPECT_FALSE(both.statuses(0).has_current_limit());
  EXPECT_EQ(both.statuses(1).limit_remaining(), 99u);
  EXPECT_EQ(ask({{{{"pair", "r"}}}}).statuses(0).limit_remaining(), 1u) << "the first hit of its counter";
}

TEST_F(GrpcCpp, QuotaModeDeniesOnlyIfAllAreOut) {
  const std::vector<Asked> both = {{{{"gold", "q"}}}, {{{"silver", "q"}}}};
  EXPECT_TRUE(passes(both));
  const RateLimitResponse second = ask(both);
  EXPECT_EQ(second.overall_code(), RateLimitResponse::OK);
  EXPECT_EQ(second.statuses(0).code(), RateLimitResponse::OVER_LIMIT);
  EXPECT_EQ(second.statuses(1).code(), RateLimitResponse::OK);
  EXPECT_FALSE(passes(both));
}

TEST_F(GrpcCpp, ShadowIsCountedAndNeverDenies) {
  for (int i = 0; i < 5; ++i) {
    const RateLimitResponse response = ask({{{{"tried", "s"}}}});
    EXPECT_EQ(response.overall_code(), RateLimitResponse::OK);
    EXPECT_EQ(response.statuses(0).limit_remaining(), 0u);
  }
}

TEST_F(GrpcCpp, DescriptorsMayHaveHitsOfTheirOwn) {
  const RateLimitResponse response = ask({{{{"ten", "h1"}}}, {{{"ten", "h2"}}, 4}, {{{"ten", "h3"}}, 0}}, 2);
  EXPECT_EQ(response.statuses(0).limit_remaining(), 8u) << "the request's";
  EXPECT_EQ(response.statuses(1).limit_remaining(), 6u);
  EXPECT_EQ(response.statuses(2).limit_remaining(), 10u) << "only looked";
  EXPECT_TRUE(passes({{{{"ten", "h3"}}, 10}}));
  EXPECT_FALSE(passes({{{{"ten", "h3"}}, 0}})) << "nothing is left";
}

TEST_F(GrpcCpp, TheCallersNumbersComeFirst) {
  const Asked own{{{"ten", "o"}}, {}, 1};
  const RateLimitResponse first = ask({own});
  EXPECT_EQ(first.statuses(0).current_limit().requests_per_unit(), 1u);
  EXPECT_EQ(first.statuses(0).current_limit().unit(), RateLimitResponse::RateLimit::MINUTE);
  EXPECT_FALSE(passes({own}));
  EXPECT_TRUE(passes({{{{"ten", "o"}}}})) << "a bucket of its own";
}

TEST_F(GrpcCpp, ADenialTakesNothing) {
  EXPECT_TRUE(passes({{{{"ten", "d"}}}}, 8));
  EXPECT_FALSE(passes({{{{"ten", "d"}}}, {{{"ten", "other"}}}}, 5));
  EXPECT_TRUE(passes({{{{"ten", "d"}}}}, 2));
  EXPECT_TRUE(passes({{{{"ten", "other"}}}}, 10));
}

TEST_F(GrpcCpp, KeysAndValuesDoNotRunTogether) {
  EXPECT_TRUE(passes({{{{"a", "b_c"}}}}));
  EXPECT_TRUE(passes({{{{"a_b", "c"}}}}));
  EXPECT_FALSE(passes({{{{"a", "b_c"}}}}));
}

TEST_F(GrpcCpp, OnlyADenialHasAHeader) {
  EXPECT_EQ(ask({{{{"pair", "n"}}}}, 2).response_headers_to_add_size(), 0);
  const RateLimitResponse denied = ask({{{{"pair", "n"}}}});
  ASSERT_EQ(denied.response_headers_to_add_size(), 1);
  EXPECT_EQ(denied.response_headers_to_add(0).key(), "Retry-After");
  EXPECT_GT(std::stoi(denied.response_headers_to_add(0).value()), 1000);
  EXPECT_FALSE(denied.has_dynamic_metadata());
}

class GrpcCppVerbose : public GrpcCpp {
 protected:
  GrpcCppVerbose() : GrpcCpp("VERBOSE") {}
};

TEST_F(GrpcCppVerbose, HeadersAreThoseOfTheDescriptorNearestToItsLimit) {
  const RateLimitResponse response = ask({{{{"ten", "v"}}}, {{{"pair", "v"}}}});
  std::string headers;
  for (const auto& header : response.response_headers_to_add()) headers += header.key() + " " + header.value() + "; ";
  EXPECT_EQ(headers, "RateLimit-Limit 2; RateLimit-Remaining 1; RateLimit-Reset 1800; ");
}

TEST_F(GrpcCppVerbose, MetadataRepeatsTheRequest) {
  const RateLimitResponse response = ask({{{{"ten", "m"}}}}, 3);
  EXPECT_EQ(response.dynamic_metadata().fields().at("domain").string_value(), "edge");
  EXPECT_EQ(response.dynamic_metadata().fields().at("hitsAddend").number_value(), 3);
}

TEST_F(GrpcCpp, WhatCannotBeAnsweredHasAStatusAndAMessage) {
  RateLimitResponse response;
  RateLimitRequest asked = request({{{{"ten", "x"}}}});
  asked.clear_domain();
  grpc::Status status = call(asked, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNKNOWN);
  EXPECT_EQ(status.error_message(), "rate limit domain must not be empty");
  status = call(request({}), response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNKNOWN);
  EXPECT_EQ(status.error_message(), "rate limit descriptor list must not be empty");
  status = call(request({{{{"ten", std::string(300'000, 'x')}}}}), response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(GrpcCpp, ACompressedMessageIsRefusedPolitely) {
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  RateLimitResponse response;
  const RateLimitRequest asked = request({{{{"ten", std::string(2000, 'x')}}}});  // grpc++ compresses if it helps
  const grpc::Status status = stub_->ShouldRateLimit(&context, asked, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_TRUE(passes({{{{"ten", "after that"}}}})) << "on the same connection";
}

TEST_F(GrpcCpp, HealthIsToldAndWatched) {
  const auto health = grpc::health::v1::Health::NewStub(channel_);
  HealthCheckRequest asked;
  asked.set_service("envoy.service.ratelimit.v3.RateLimitService");
  HealthCheckResponse response;
  grpc::ClientContext check;
  EXPECT_TRUE(health->Check(&check, asked, &response).ok());
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  grpc::ClientContext context;
  const auto watch = health->Watch(&context, asked);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  context.TryCancel();
}

TEST_F(GrpcCpp, ManyCallsShareAConnection) {
  struct Call {
    grpc::ClientContext context;
    RateLimitResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<RateLimitResponse>> reader;
  };
  std::vector<Call> calls(500);
  grpc::CompletionQueue queue;
  const RateLimitRequest asked = request({{{{"hundred", "many"}}}});
  for (Call& call : calls) {
    call.reader = stub_->AsyncShouldRateLimit(&call.context, asked, &queue);
    call.reader->Finish(&call.response, &call.status, &call);
  }
  int passed = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
    const Call& call = *static_cast<Call*>(tag);
    ASSERT_TRUE(call.status.ok()) << call.status.error_message();
    passed += call.response.overall_code() == RateLimitResponse::OK ? 1 : 0;
  }
  EXPECT_EQ(passed, 100);
  queue.Shutdown();
}

}  // namespace
