// A request is answered without an allocation once its connection has answered a few.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include "weir/config/parse.h"
#include "weir/http/choose_session.h"
#include "weir/http/http_shared.h"
#include "weir/protocol/http/check_handler.h"
#include "weir/protocol/resp/resp_session.h"
#include "weir/server/server.h"
#include "weir/store/memory/memory_store.h"

#if defined(__SANITIZE_ADDRESS__)
// From sanitizer/allocator_interface.h, which g++ does not ship.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*, std::size_t),
                                                         void (*free_hook)(const volatile void*));
#endif

namespace weir::allocations_test {
namespace {

using namespace std::chrono_literals;

// Counts what the loop's thread allocates.
thread_local bool counted_thread = false;
std::atomic<std::uint64_t> allocations{0};

[[maybe_unused]] void count_allocation(const volatile void*, std::size_t) {
  if (counted_thread) allocations.fetch_add(1, std::memory_order_relaxed);
}
[[maybe_unused]] void ignore_free(const volatile void*) {}

class AllocationsTest : public testing::Test {
 protected:
  ~AllocationsTest() override {
    if (!thread_.joinable()) return;
    server_->stop(0s);
    thread_.join();
  }

  void run(Protocol protocol) {
    Endpoint endpoint;
    endpoint.address = {"127.0.0.1", 0, {}};
    endpoint.protocol = protocol;
    endpoint.sessions = [this, protocol](Loop& loop, Pipeline&) -> Sessions {
      loop_ = &loop;
      if (protocol == Protocol::http) return http::http_sessions(shared_, handler_);
      return [this](const NewConnection& fresh) { return std::make_unique<RespSession>(fresh.output, options_); };
    };
    Server::Options options;
    options.store = [this](Loop&) { return std::make_unique<MemoryStore>(*table_, clock_); };
    server_ = std::move(*Server::make(std::move(options), {endpoint}, configuration_, known_, clock_));
    thread_ = std::thread([this] { server_->run(); });
    std::promise<void> marked;
    loop_->post([&] {
      counted_thread = true;
      marked.set_value();
    });
    marked.get_future().wait();
  }

  Socket connect() const {
    Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval patience{30, 0};
    setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->addresses()[0].port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  // Sends `request` so often and reads the replies, each ending with `end`.
  static void ask(const Socket& socket, std::string_view request, std::string_view end, int count) {
    std::array<char, 4096> reply;
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(send(socket.fd(), request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
      std::size_t size = 0;
      while (std::string_view(reply.data(), size).find(end) == std::string_view::npos) {
        const ssize_t got = recv(socket.fd(), reply.data() + size, reply.size() - size, 0);
        ASSERT_GT(got, 0);
        size += static_cast<std::size_t>(got);
      }
    }
  }
  // What the loop allocates for 1000 requests after as many.
  std::uint64_t allocations_of(std::string_view request, std::string_view end) {
    const Socket socket = connect();
    ask(socket, request, end, 1000);
    const std::uint64_t before = allocations.load();
    ask(socket, request, end, 1000);
    return allocations.load() - before;
  }

  BootClock clock_;
  Published<config::Loaded> configuration_{std::make_shared<const config::Loaded>(std::get<config::Loaded>(
      config::parse("limits: {bench: {burst: 1000000, count: 1000000, period: 1s}}", "test.yaml", {})))};
  Published<Known> known_{std::make_shared<const Known>()};
  std::unique_ptr<Table> table_ = std::move(*Table::create({.buckets_max = 1000, .huge_pages = false}, HashKey{1, 2}));
  RespOptions options_;
  Health health_;
  http::HttpShared shared_;
  CheckHandler handler_{health_};
  Loop* loop_ = nullptr;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

#if defined(__SANITIZE_ADDRESS__)

// The sanitizer reports every allocation. Other builds have no such hook.
void count_allocations() {
  static const bool installed = __sanitizer_install_malloc_and_free_hooks(count_allocation, ignore_free) != 0;
  ASSERT_TRUE(installed);
}

// A timer runs once a second in the loop and allocates; a request must not.
constexpr std::uint64_t kTimers = 30;

TEST_F(AllocationsTest, RespRequestAllocatesNothing) {
  count_allocations();
  run(Protocol::resp);
  EXPECT_LE(allocations_of("CL.THROTTLE user 999999 1000000 1\r\n", "\r\n:-1\r\n:"), kTimers);
}

TEST_F(AllocationsTest, HttpRequestAllocatesNothing) {
  count_allocations();
  run(Protocol::http);
  const std::string content = R"({"limit":"bench","id":"user:1"})";
  const std::string request =
      "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: " +
      std::to_string(content.size()) + "\r\n\r\n" + content;
  EXPECT_LE(allocations_of(request, "}"), kTimers);
}

// The counter counts: a new connection allocates.
TEST_F(AllocationsTest, NewConnectionAllocates) {
  count_allocations();
  run(Protocol::resp);
  const std::uint64_t before = allocations.load();
  ask(connect(), "PING\r\n", "\r\n", 1);
  EXPECT_GT(allocations.load(), before);
}

#endif

}  // namespace
}  // namespace weir::allocations_test
