#include "weir/app/redis_admin.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "weir/net/socket.h"
#include "weir/redis/topology.h"

namespace weir::app::redis_admin_test {
namespace {

using namespace std::chrono_literals;

// Accepts connections and never replies.
class SilentRedis {
 public:
  SilentRedis() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_.fd(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_.fd(), 16), 0);
    EXPECT_EQ(getsockname(listener_.fd(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  std::unique_ptr<RedisAdmin> desk() const {
    auto made = RedisAdmin::make({}, [port = port_](Loop&, const redis::MakeNode& make_node) {
      return std::make_unique<redis::SingleTopology>(make_node, Target{"127.0.0.1", port, {}});
    });
    EXPECT_TRUE(made);
    return std::move(*made);
  }

 private:
  Socket listener_;
  std::uint16_t port_ = 0;
};

// What maintain() calls: a Redis that does not answer must not hold it up.
TEST(RedisAdmin, AskingForTheHashKeyDoesNotWaitForRedis) {
  const SilentRedis redis;
  std::atomic<int> failed = 0;
  const auto redis_admin = redis.desk();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) {
    redis_admin->ask_hash_key("", [&](const Result<RedisHashKey::Found>& found) { failed += found ? 0 : 1; });
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 900ms);
  while (failed < 100) std::this_thread::sleep_for(1ms);
}

TEST(RedisAdmin, TheStartWaitsForTheHashKeyNoLongerThanItIsTold) {
  const SilentRedis redis;
  const auto redis_admin = redis.desk();
  const auto found = redis_admin->wait_for_hash_key(50ms);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().fault, Fault::unavailable);
}

}  // namespace
}  // namespace weir::app::redis_admin_test
