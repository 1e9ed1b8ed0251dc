// Idle connections and connection limits: a real server on real sockets with small limits.
#include "weir/server/server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "weir/config/parse.h"
#include "weir/protocol/resp/resp_session.h"

namespace weir::server_test {
namespace {

using namespace std::chrono_literals;

// Never answers, so its clients are always owed an answer.
class SilentStore final : public Store {
 public:
  void charge(std::span<const Question>, Now, Answers&) override {}
};

class ServerTest : public testing::Test {
 protected:
  ~ServerTest() override {
    server_->stop(0s);
    thread_.join();
  }

  // Two RESP endpoints.
  void run(std::size_t endpoint_connections_max, std::size_t connections_max, Duration idle_timeout) {
    std::vector<Endpoint> endpoints(2);
    for (Endpoint& endpoint : endpoints) {
      endpoint.address = {"127.0.0.1", 0, {}};
      endpoint.protocol = Protocol::resp;
      endpoint.sessions = [this](Loop& loop, Pipeline&) -> Sessions {
        loop_ = &loop;
        return [this](const NewConnection& fresh) { return std::make_unique<RespSession>(fresh.output, options_); };
      };
      endpoint.times = [idle_timeout](const config::Loaded&) { return ConnectionTimes{idle_timeout, {}}; };
    }
    Server::Options options;
    options.store = [](Loop&) { return std::make_unique<SilentStore>(); };
    options.endpoint_connections_max = endpoint_connections_max;
    options.connections_max = connections_max;
    server_ = std::move(*Server::make(std::move(options), std::move(endpoints), configuration_, known_, clock_));
    thread_ = std::thread([this] { server_->run(); });
  }

  Socket connect(std::size_t endpoint = 0) const {
    Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval patience{30, 0};
    setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->addresses()[endpoint].port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  Socket connect_and_ping(std::size_t endpoint = 0) const {
    Socket socket = connect(endpoint);
    EXPECT_TRUE(pings(socket));
    return socket;
  }
  static bool say(const Socket& socket, std::string_view bytes) {
    return send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  static bool pings(const Socket& socket) {
    std::array<char, 7> pong;
    return say(socket, "PING\r\n") && recv(socket.fd(), pong.data(), pong.size(), MSG_WAITALL) == 7;
  }
  // Waits until the server closes the connection.
  static bool is_closed(const Socket& socket) {
    char byte = 0;
    const ssize_t got = recv(socket.fd(), &byte, 1, 0);
    return got == 0 || (got < 0 && errno != EAGAIN);
  }
  // Advances the clock and lets the loop check its deadlines.
  void pass(Duration time) {
    clock_.advance(time);
    for (int turn = 0; turn < 2; ++turn) {
      std::promise<void> turned;
      loop_->post([&] { turned.set_value(); });
      turned.get_future().wait();
    }
  }

  ManualClock clock_{Time{1h}, Wall{1h}};
  Published<config::Loaded> configuration_{
      std::make_shared<const config::Loaded>(std::get<config::Loaded>(config::parse("limits: {}", "test.yaml", {})))};
  Published<Known> known_{std::make_shared<const Known>()};
  RespOptions options_;
  Loop* loop_ = nullptr;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

TEST_F(ServerTest, ClosesASilentConnectionAfterTheIdleTimeout) {
  run(10, 10, 120s);
  const Socket silent = connect_and_ping();
  pass(120s);
  const Socket other = connect_and_ping();
  EXPECT_EQ(server_->metrics()[0]->connections[static_cast<std::size_t>(Protocol::resp)].value(), 2u);
  pass(1s);
  EXPECT_TRUE(is_closed(silent));
  EXPECT_TRUE(pings(other));
}

TEST_F(ServerTest, NeverClosesASilentConnectionWithoutAnIdleTimeout) {
  run(10, 10, 0s);
  const Socket silent = connect_and_ping();
  pass(24h);
  EXPECT_TRUE(pings(silent));
}

TEST_F(ServerTest, ConnectionThatIsOwedAnAnswerIsNotIdle) {
  run(1, 10, 120s);
  const Socket waiting = connect_and_ping();
  ASSERT_TRUE(say(waiting, "CL.THROTTLE k 1 1 1\r\nPING\r\n"));
  ASSERT_TRUE(pings(connect_and_ping(1)));  // after this the first request has been read
  pass(10min);
  // The endpoint is full and no connection in it is idle: the new one is refused.
  EXPECT_TRUE(is_closed(connect()));
  EXPECT_EQ(server_->metrics()[0]->connections[static_cast<std::size_t>(Protocol::resp)].value(), 1u);
}

TEST_F(ServerTest, FullListenerClosesTheLongestIdleConnection) {
  run(2, 10, 0s);
  const Socket first = connect_and_ping();
  pass(1s);
  const Socket second = connect_and_ping();
  pass(1s);
  ASSERT_TRUE(pings(first));  // exactly at the limit none is closed
  pass(1s);
  const Socket third = connect_and_ping();
  EXPECT_TRUE(is_closed(second));
  EXPECT_TRUE(pings(first));
  EXPECT_TRUE(pings(third));
}

TEST_F(ServerTest, DoesNotCloseANewConnectionForTheNextOne) {
  run(1, 10, 0s);
  const Socket first = connect_and_ping();
  EXPECT_TRUE(is_closed(connect()));
  EXPECT_TRUE(pings(first));
}

TEST_F(ServerTest, SilentConnectionsOnOnePortDoNotLockOutAnother) {
  run(10, 3, 0s);
  const Socket lone = connect_and_ping(1);
  pass(1s);
  const Socket first = connect_and_ping();
  pass(1s);
  const Socket second = connect_and_ping();
  pass(1s);
  const Socket next = connect_and_ping(1);
  EXPECT_TRUE(is_closed(first));
  EXPECT_TRUE(pings(lone));  // idle for longer, but its endpoint has fewer connections
  EXPECT_TRUE(pings(second));
  EXPECT_TRUE(pings(next));
}

}  // namespace
}  // namespace weir::server_test
