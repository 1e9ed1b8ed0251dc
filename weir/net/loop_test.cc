#include "weir/net/loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace weir::loop_test {
namespace {

using namespace std::chrono_literals;

class LoopTest : public testing::Test {
 protected:
  BootClock clock_;
  std::unique_ptr<Loop> loop_ = std::move(*Loop::make(clock_));
};

TEST_F(LoopTest, RunsTimersInOrderAndSkipsCancelledOnes) {
  std::vector<int> ran;
  const Time now = clock_.time();
  loop_->at(now + 2ms, [&] { ran.push_back(2); });
  loop_->at(now + 1ms, [&] { ran.push_back(1); });
  const auto cancelled = loop_->at(now + 1ms, [&] { ran.push_back(99); });
  loop_->at(now + 3ms, [&] { loop_->stop(); });
  loop_->cancel(cancelled);
  loop_->run();
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
}

TEST_F(LoopTest, TimerThatReschedulesItselfForNowDoesNotBlockTheLoop) {
  int runs = 0;
  std::function<void()> again = [&] {
    if (++runs == 100) loop_->stop();
    loop_->at(Time{}, again);
  };
  int turns = 0;
  loop_->on_end_of_turn([&] { ++turns; });
  loop_->at(Time{}, again);
  loop_->run();
  EXPECT_EQ(runs, 100);
  EXPECT_EQ(turns, 100);
}

TEST_F(LoopTest, RunsPostedWorkOnTheLoopThread) {
  std::thread::id where;
  std::thread other([&] {
    loop_->post([&] {
      where = std::this_thread::get_id();
      loop_->stop();
    });
  });
  loop_->run();
  other.join();
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST_F(LoopTest, DoesNotCallAHandlerForgottenInTheSameTurn) {
  int pair[2];
  int other[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
  struct Killer : Loop::Handler {
    Loop* loop = nullptr;
    Killer* victim = nullptr;
    int fd = -1;
    int calls = 0;
    void ready(std::uint32_t) override {
      ++calls;
      loop->forget(victim->fd, *victim);
      loop->forget(fd, *this);
      loop->stop();
    }
  } a, b;
  a.loop = b.loop = loop_.get();
  a.victim = &b;
  b.victim = &a;
  a.fd = pair[0];
  b.fd = other[0];
  ASSERT_TRUE(loop_->watch(a.fd, EPOLLIN, a));
  ASSERT_TRUE(loop_->watch(b.fd, EPOLLIN, b));
  ASSERT_EQ(write(pair[1], "x", 1), 1);
  ASSERT_EQ(write(other[1], "x", 1), 1);
  loop_->run();
  EXPECT_EQ(a.calls + b.calls, 1);
  for (const int fd : {pair[0], pair[1], other[0], other[1]}) close(fd);
}

// Runs `work` at the end of the turn.
struct SettlingWork final : Settler {
  explicit SettlingWork(std::function<void()> to_do) : work(std::move(to_do)) {}
  void settle() override { work(); }
  std::function<void()> work;
};

TEST_F(LoopTest, SettlesOnceHoweverOftenItIsAsked) {
  std::string log;
  SettlingWork settler([&] {
    log += "settled ";
    loop_->stop();
  });
  loop_->on_end_of_turn([&] { log += "batch "; });
  loop_->at(Time{}, [&] {
    loop_->settle_later(settler);
    loop_->settle_later(settler);
  });
  loop_->run();
  EXPECT_EQ(log, "batch settled batch ");
}

TEST_F(LoopTest, SettlerThatAsksAgainGetsFourPassesAndThenTheNextTurn) {
  int batches = 0;
  std::vector<int> batches_before;
  SettlingWork settler([&] {
    batches_before.push_back(batches);
    if (batches_before.size() == 6) return loop_->stop();
    loop_->settle_later(settler);
  });
  loop_->on_end_of_turn([&] { ++batches; });
  loop_->settle_later(settler);
  loop_->run();
  // After the fourth pass the hook runs once more; the next turn starts without waiting.
  EXPECT_EQ(batches_before, (std::vector<int>{1, 2, 3, 4, 6, 7}));
}

TEST_F(LoopTest, SettlersMayForgetAnyOther) {
  int ran = 0;
  std::vector<std::unique_ptr<SettlingWork>> settlers;
  for (int i = 0; i < 3; ++i) {
    settlers.push_back(std::make_unique<SettlingWork>([&] {
      ++ran;
      for (const auto& other : settlers) Loop::forget(*other);
      loop_->stop();
    }));
    loop_->settle_later(*settlers.back());
  }
  Loop::forget(*settlers[0]);
  loop_->run();
  EXPECT_EQ(ran, 1);
}

// Retires another one when it is destroyed.
struct Retiree final : Retired {
  Retiree(Loop& where, std::string& to, int more) : loop(where), log(to), left(more) {}
  ~Retiree() override {
    log += "gone ";
    if (left > 0) loop.retire(std::make_unique<Retiree>(loop, log, left - 1));
  }
  Loop& loop;
  std::string& log;
  int left;
};

TEST_F(LoopTest, DestroysRetiredObjectsAfterTheTurnHasSettled) {
  std::string log;
  SettlingWork settler([&] { log += "settled "; });
  loop_->at(Time{}, [&] {
    loop_->retire(std::make_unique<Retiree>(*loop_, log, 1));
    loop_->settle_later(settler);
    loop_->stop();
  });
  loop_->run();
  EXPECT_EQ(log, "settled gone gone ");
  loop_->retire(std::make_unique<Retiree>(*loop_, log, 1));
  loop_.reset();
  EXPECT_EQ(log, "settled gone gone gone gone ");
}

TEST(AddressParse, AcceptsHostsPortsAndPaths) {
  EXPECT_EQ(*Address::parse("127.0.0.1:8080"), (Address{"127.0.0.1", 8080, {}}));
  EXPECT_EQ(*Address::parse("[::1]:0"), (Address{"::1", 0, {}}));
  EXPECT_EQ(*Address::parse("localhost:65535"), (Address{"127.0.0.1", 65535, {}}));
  EXPECT_EQ(*Address::parse("unix:/run/weir.sock"), (Address{{}, 0, "/run/weir.sock"}));
  for (const char* text : {"127.0.0.1:8080", "[2001:db8::1]:443", "unix:/a"})
    EXPECT_EQ(Address::parse(text)->print(), text);
}

TEST(AddressParse, ExplainsWhyAnAddressIsInvalid) {
  const auto refusal = [](const char* text) { return Address::parse(text).error().detail; };
  EXPECT_EQ(refusal("8080"), "address \"8080\" has no port: write host:port or unix:/path");
  EXPECT_EQ(refusal("127.0.0.1:65536"), "address \"127.0.0.1:65536\" needs a port from 0 to 65535");
  EXPECT_EQ(refusal("127.0.0.1:"), "address \"127.0.0.1:\" needs a port from 0 to 65535");
  EXPECT_EQ(refusal("::1:80"), "address \"::1:80\" is ambiguous: write an IPv6 address in brackets, [::1]:8080");
  EXPECT_EQ(refusal("example.com:80"), "address \"example.com:80\" needs an IP address before the port");
  EXPECT_EQ(refusal("unix:"), "address \"unix:\" has no path after unix:");
  EXPECT_TRUE(Address::parse("unix:/" + std::string(106, 'x')));
  EXPECT_FALSE(Address::parse("unix:/" + std::string(107, 'x')));
}

TEST(Sockets, ListenAcceptAndConnectOnAFreePort) {
  const Socket listener = std::move(*listen_on({"127.0.0.1", 0, {}}));
  const Address bound = *bound_address(listener);
  EXPECT_NE(bound.port, 0);
  EXPECT_FALSE(accept_from(listener)->socket);
  const Socket client = std::move(*begin_connect(bound));
  Accepted accepted;
  while (!accepted.socket) accepted = std::move(*accept_from(listener));
  EXPECT_EQ(accepted.peer, "127.0.0.1");
  EXPECT_TRUE(connect_error(client, bound));
}

TEST(Sockets, ReplacesAStaleUnixSocketButNotALiveOne) {
  const Address address{{}, 0, testing::TempDir() + "weir_socket_test_" + std::to_string(getpid())};
  { const Socket gone = std::move(*listen_on(address)); }
  const Socket live = std::move(*listen_on(address));
  const auto second = listen_on(address);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().detail, "cannot listen on unix:" + address.path + ": Address already in use");
  unlink(address.path.c_str());
}

// Issue 14, row 3.
class UnixSocketPath : public testing::Test {
 protected:
  ~UnixSocketPath() override { unlink(address_.path.c_str()); }
  bool exists() const { return access(address_.path.c_str(), F_OK) == 0; }

  const Address address_{{}, 0, testing::TempDir() + "weir_socket_path_" + std::to_string(getpid())};
};

TEST_F(UnixSocketPath, RefusesAPathThatIsNotASocketAndKeepsTheFile) {
  std::ofstream(address_.path) << "precious";
  const auto refused = listen_on(address_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail,
            "cannot listen on unix:" + address_.path + ": " + address_.path + " exists and is not a socket");
  std::string kept;
  std::ifstream(address_.path) >> kept;
  EXPECT_EQ(kept, "precious");
}

TEST_F(UnixSocketPath, RemovedByTheProcessThatBoundIt) {
  const Socket socket = std::move(*listen_on(address_));
  { const SocketFile file(address_.path); }
  EXPECT_FALSE(exists());
}

TEST_F(UnixSocketPath, KeptWhenASuccessorHasReplacedIt) {
  Socket old = std::move(*listen_on(address_));
  std::optional<SocketFile> file(std::in_place, address_.path);
  old = Socket();
  const Socket successor = std::move(*listen_on(address_));  // replaces the stale file
  file.reset();
  EXPECT_TRUE(exists());
  EXPECT_TRUE(begin_connect(address_));
}

}  // namespace
}  // namespace weir::loop_test
