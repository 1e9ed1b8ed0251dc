#include "weir/net/resolve.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <cstdint>
#include <future>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/net/loop_thread_test.h"

namespace weir::resolve_test {
namespace {

using Addresses = Result<std::vector<Address>>;

TEST(TargetParse, AcceptsNamesAddressesAndPaths) {
  EXPECT_EQ(*Target::parse("redis.example.com:6379"), (Target{"redis.example.com", 6379, {}}));
  EXPECT_EQ(*Target::parse("redis:0"), (Target{"redis", 0, {}}));
  EXPECT_EQ(*Target::parse("[::1]:6379"), (Target{"::1", 6379, {}}));
  EXPECT_EQ(*Target::parse("unix:/run/redis.sock"), (Target{{}, 0, "/run/redis.sock"}));
  EXPECT_EQ(Target::parse("10.0.0.1:1")->literal(), (Address{"10.0.0.1", 1, {}}));
  EXPECT_EQ(Target::parse("[::1]:1")->literal(), (Address{"::1", 1, {}}));
  EXPECT_EQ(Target::parse("redis:1")->literal(), std::nullopt);
  for (const char* text : {"redis.example.com:6379", "10.0.0.1:80", "[2001:db8::1]:443", "unix:/a"})
    EXPECT_EQ(Target::parse(text)->print(), text);
}

TEST(TargetParse, ExplainsWhyATargetIsInvalid) {
  const auto refusal = [](const std::string& text) { return Target::parse(text).error().detail; };
  EXPECT_EQ(refusal("redis"), "address \"redis\" has no port: write host:port or unix:/path");
  EXPECT_EQ(refusal("redis:65536"), "address \"redis:65536\" needs a port from 0 to 65535");
  EXPECT_EQ(refusal(":80"), "address \":80\" needs a host name or an IP address before the port");
  EXPECT_EQ(refusal("a b:80"), "address \"a b:80\" needs a host name or an IP address before the port");
  EXPECT_EQ(refusal("::1:80"), "address \"::1:80\" is ambiguous: write an IPv6 address in brackets, [::1]:8080");
  EXPECT_TRUE(Target::parse(std::string(bounds::domain_bytes_max, 'a') + ":80"));
  EXPECT_FALSE(Target::parse(std::string(bounds::domain_bytes_max + 1, 'a') + ":80"));
}

TEST(LookUp, ResolvesLocalhostAndFailsForAnInvalidName) {
  const auto found = look_up({"localhost.", 80, {}});
  if (found) {
    EXPECT_EQ(found->front().port, 80);  // a machine without any name service may not know it
  }
  EXPECT_FALSE(look_up({"no-such-host.invalid", 80, {}}));
}

TEST(LookUp, TakesDistinctAddressesUpToTheBound) {
  // 192.0.2.0, 192.0.2.0, 192.0.2.1, 192.0.2.1, ...
  const auto addresses_of = [](std::size_t distinct) {
    std::vector<sockaddr_in> socket_addresses(2 * distinct);
    std::vector<addrinfo> list(2 * distinct);
    for (std::size_t i = 0; i < list.size(); ++i) {
      socket_addresses[i].sin_family = AF_INET;
      socket_addresses[i].sin_addr.s_addr = htonl(0xC0000200u + static_cast<std::uint32_t>(i / 2));
      list[i].ai_addr = reinterpret_cast<sockaddr*>(&socket_addresses[i]);
      list[i].ai_addrlen = sizeof socket_addresses[i];
      list[i].ai_next = i + 1 < list.size() ? &list[i + 1] : nullptr;
    }
    return distinct_addresses(list.data(), 80);
  };
  constexpr std::size_t kMax = bounds::resolved_addresses_max;
  EXPECT_EQ(addresses_of(kMax).size(), kMax);
  EXPECT_EQ(addresses_of(kMax).back(), (Address{"192.0.2." + std::to_string(kMax - 1), 80, {}}));
  EXPECT_EQ(addresses_of(kMax + 1), addresses_of(kMax));
}

TEST(Resolver, CallsBackOnTheLoopThread) {
  Resolver resolver([](const Target& target) -> Addresses {
    if (target.host == "nowhere") return Error{Fault::unknown, "not here"};
    return std::vector<Address>{{"192.0.2.1", target.port, {}}};
  });
  LoopThread thread;
  std::promise<Addresses> good;
  std::promise<Addresses> bad;
  std::promise<std::thread::id> where;
  auto lookups = thread.run([&] {
    return std::pair(
        resolver.resolve(thread.loop(), {"somewhere", 7, {}},
                         [&](const Addresses& answer) {
                           where.set_value(std::this_thread::get_id());
                           good.set_value(answer);
                         }),
        resolver.resolve(thread.loop(), {"nowhere", 7, {}}, [&](const Addresses& answer) { bad.set_value(answer); }));
  });
  EXPECT_EQ(where.get_future().get(), thread.run([] { return std::this_thread::get_id(); }));
  EXPECT_EQ(good.get_future().get()->front(), (Address{"192.0.2.1", 7, {}}));
  EXPECT_EQ(bad.get_future().get().error().detail, "not here");
  thread.run([&] { lookups = {}; });
}

// A resolver whose lookups block until the test releases them.
class StuckResolverTest : public testing::Test {
 protected:
  ~StuckResolverTest() override { gate_.set_value(); }

  std::promise<void> gate_;
  std::shared_future<void> open_ = gate_.get_future().share();
  Resolver resolver_{[open = open_](const Target& target) -> Addresses {
    if (target.host == "stuck") open.wait();
    return std::vector<Address>{{"192.0.2.1", target.port, {}}};
  }};
  LoopThread thread_;
};

TEST_F(StuckResolverTest, OneHangingLookupDoesNotBlockAnother) {
  std::promise<Addresses> answer;
  auto lookups = thread_.run([&] {
    return std::pair(
        resolver_.resolve(thread_.loop(), {"stuck", 7, {}}, [](const Addresses&) { FAIL(); }),
        resolver_.resolve(thread_.loop(), {"quick", 7, {}}, [&](const Addresses& got) { answer.set_value(got); }));
  });
  EXPECT_TRUE(answer.get_future().get());
  thread_.run([&] { lookups = {}; });
}

TEST_F(StuckResolverTest, LimitsTheNumberOfWaitingLookups) {
  std::promise<Addresses> refused;
  std::vector<std::unique_ptr<Resolver::Lookup>> lookups;
  thread_.run([&] {
    // Threads take some at once; after twice the limit the queue is full.
    for (std::size_t i = 0; i < bounds::lookups_max * 2; ++i) {
      lookups.push_back(resolver_.resolve(thread_.loop(), {"stuck", 7, {}}, [&](const Addresses& got) {
        refused.set_value(got);
        lookups.clear();
      }));
    }
  });
  const auto answer = refused.get_future().get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(), (Error{Fault::unavailable, "cannot resolve stuck: 1024 lookups are already waiting"}));
  // Canceled lookups free their place in the queue.
  thread_.run([&] {
    lookups.push_back(resolver_.resolve(thread_.loop(), {"stuck", 7, {}}, [](const Addresses&) { FAIL(); }));
  });
  thread_.run([&] { lookups.clear(); });
}

}  // namespace
}  // namespace weir::resolve_test
