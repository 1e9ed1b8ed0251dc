// The fast path: a check that arrives whole is asked and answered without an allocation.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <string>

#include "weir/http/http1_session.h"
#include "weir/http/http_shared.h"
#include "weir/http/testing/fake_exchange.h"
#include "weir/protocol/http/check_handler.h"

// Of AddressSanitizer's runtime; absent in other builds.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, std::size_t),
                                                         void (*on_free)(const volatile void*)) __attribute__((weak));

namespace weir::check_allocation_test {
namespace {

using namespace std::chrono_literals;

std::atomic<bool> counting{false};
std::atomic<int> allocations{0};

void count_allocation(const volatile void*, std::size_t) {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}
void ignore_free(const volatile void*) {}

TEST(CheckHandlerAllocations, ThereAreNoneForARequestThatArrivesWhole) {
  if (__sanitizer_install_malloc_and_free_hooks == nullptr) GTEST_SKIP() << "counts with AddressSanitizer only";
  ASSERT_NE(__sanitizer_install_malloc_and_free_hooks(count_allocation, ignore_free), 0);
  const std::string content = R"({"limit":"per-ip","id":"203.0.113.9","cost":1})";
  const std::string request =
      "POST /v1/check HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: " +
      std::to_string(content.size()) + "\r\n\r\n" + content;
  Answer allowed;
  allowed.verdict.all.push_back(Decision{true, 20, 19, 0ns, 50ms});
  allowed.labels[0] = {"per-ip", "203.0.113.9", "ip", {"per-ip:203.0.113.9", 1s, 50ms}};
  const Result<Answer> answer = allowed;

  Health health;
  CheckHandler handler(health);
  http::HttpShared shared;
  http::FakeOutput output;
  http::Http1Session session(shared, handler, {output, "192.0.2.1", {}, {}, false});
  Queries queries;
  const Now now{Time{1s}, Wall{1'700'000'000s}};
  for (int i = 0; i < 200; ++i) {
    counting = i >= 100;
    queries.clear();
    output.bytes.clear();
    const auto taken = session.receive(request, queries, now);
    counting = counting && queries.all().size() == 1;
    session.reply(queries.all()[0].token, answer);
    counting = false;
    ASSERT_TRUE(taken && *taken == request.size());
    ASSERT_TRUE(output.bytes.starts_with("HTTP/1.1 200 OK\r\n"));
  }
  EXPECT_EQ(allocations, 0) << "in 100 requests";
}

}  // namespace
}  // namespace weir::check_allocation_test
