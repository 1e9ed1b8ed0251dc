// A server on grpc++ that makes Weir's decision with Weir's library: the peer of `script/bench grpc`.
//
//   grpc_server PORT
//
// On SIGTERM it prints how many calls it answered and how many of them it allowed.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include <envoy/service/ratelimit/v3/rls.grpc.pb.h>
#include "weir/limiter.h"

namespace {

using envoy::service::ratelimit::v3::RateLimitRequest;
using envoy::service::ratelimit::v3::RateLimitResponse;
using envoy::service::ratelimit::v3::RateLimitService;

constexpr weir::Limit kLimit = weir::Limit::per_second(1'000'000);

// The callback interface is the fastest that grpc++ has.
class RateLimits final : public RateLimitService::CallbackService {
 public:
  grpc::ServerUnaryReactor* ShouldRateLimit(grpc::CallbackServerContext* context, const RateLimitRequest* request,
                                            RateLimitResponse* response) override {
    const weir::Count cost = std::max<std::uint32_t>(request->hits_addend(), 1);
    bool over = false;
    for (const auto& descriptor : request->descriptors()) {
      auto& status = *response->add_statuses();
      status.set_code(RateLimitResponse::OK);
      const bool matches = request->domain() == "bench" && descriptor.entries_size() == 1;
      if (!matches || descriptor.entries(0).key() != "user") continue;
      const weir::Decision decision = limiter_.spend(descriptor.entries(0).value(), cost);
      if (!decision.allowed) status.set_code(RateLimitResponse::OVER_LIMIT);
      over |= !decision.allowed;
      status.mutable_current_limit()->set_requests_per_unit(static_cast<std::uint32_t>(kLimit.count()));
      status.mutable_current_limit()->set_unit(RateLimitResponse::RateLimit::SECOND);
      status.set_limit_remaining(static_cast<std::uint32_t>(decision.remaining));
      const auto reset = std::chrono::ceil<std::chrono::seconds>(decision.reset_after);
      status.mutable_duration_until_reset()->set_seconds(reset.count());
    }
    response->set_overall_code(over ? RateLimitResponse::OVER_LIMIT : RateLimitResponse::OK);
    calls_.fetch_add(1, std::memory_order_relaxed);
    if (!over) allowed_.fetch_add(1, std::memory_order_relaxed);
    auto* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  unsigned long calls() const { return calls_; }
  unsigned long allowed() const { return allowed_; }

 private:
  weir::Limiter limiter_{kLimit};
  std::atomic<unsigned long> calls_ = 0;
  std::atomic<unsigned long> allowed_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: grpc_server PORT\n");
    return 2;
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // also in the threads that grpc++ starts
  RateLimits service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(std::string("127.0.0.1:") + argv[1], grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  int signal = 0;
  sigwait(&signals, &signal);
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds{1});
  std::printf("%lu %lu\n", service.calls(), service.allowed());
  return 0;
}
