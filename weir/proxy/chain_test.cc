// The whole way of a request: client, session, relay, client, session, in all four pairs of HTTP versions. The client
// and the proxy's session are joined by two strings (joined_ends_test.h); the proxy's pool reaches a backend that
// echoes, over sockets of the same loop. A seeded scheduler decides who moves, how many bytes pass, when questions are
// answered, who stalls, and who is cut off.
//
// Checked after every step: buffers are within their bounds. At the end: each begin() has one ended(), each call one
// end, all credit is back, nothing is alive.
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <future>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "weir/base/published.h"
#include "weir/config/parse.h"
#include "weir/http/choose_session.h"
#include "weir/http/echo_ends_test.h"
#include "weir/http/joined_ends_test.h"
#include "weir/http/test_backend_test.h"
#include "weir/known/known.h"
#include "weir/proxy/proxy_handler.h"
#include "weir/server/connection.h"
#include "weir/server/pipeline.h"
#include "weir/store/store.h"

namespace weir::proxy::chain_test {
namespace {

using http::JoinedEnds;

std::shared_ptr<const config::Loaded> load(const std::string& backend_url) {
  config::Outcome read = config::parse(
      "listen: [{address: \"127.0.0.1:0\", speak: proxy}]\n"
      "limits: {per-ip: {key: ip, rate: 20/s}}\n"
      "backend: " +
          backend_url + "\n",
      "test.yaml", {});
  return std::make_shared<const config::Loaded>(std::get<config::Loaded>(std::move(read)));
}

Answer allowed() {
  Answer answer;
  answer.verdict.all.push_back(Decision{true, 20, 19, Duration::zero(), std::chrono::seconds{1}});
  answer.labels[0].limit = "per-ip";
  answer.labels[0].key = "ip";
  answer.labels[0].id = "192.0.2.1";
  return answer;
}

// The server's connections with a handler that echoes. Create and use it on the loop's thread.
class EchoBackend final : private Loop::Handler {
 public:
  explicit EchoBackend(Loop& loop) : loop_(loop) {
    Result<Socket> socket = listen_on(*Address::parse("127.0.0.1:0"));
    WEIR_ASSERT(socket.has_value());
    listener_ = std::move(*socket);
    // Small buffers, so that connections have to wait for the kernel.
    const int bytes = kKernelBytes;
    WEIR_ASSERT(setsockopt(listener_.fd(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) == 0);
    WEIR_ASSERT(setsockopt(listener_.fd(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0);
    WEIR_ASSERT(loop_.watch(listener_.fd(), EPOLLIN, *this));
    group_.sessions = http::http_sessions(shared, echo);
    connection_shared_.ended = [this](Connection& ended) {
      const auto at = std::ranges::find(connections_, &ended, &std::unique_ptr<Connection>::get);
      loop_.retire(std::move(*at));
      connections_.erase(at);
    };
  }
  ~EchoBackend() override { loop_.forget(listener_.fd(), *this); }

  std::string address() const { return bound_address(listener_)->print(); }
  std::size_t connections() const { return connections_.size(); }
  void cut(std::size_t index) { connections_[index]->close(); }
  void drain(std::size_t index) { connections_[index]->drain(); }

  http::EchoingHandler echo;
  http::HttpShared shared;

 private:
  // An echo asks nothing.
  class UnaskedStore final : public Store {
   public:
    void charge(std::span<const Question>, Now, Answers&) override { WEIR_ASSERT(false); }
  };

  void ready(std::uint32_t) override {
    for (;;) {
      Result<Accepted> next = accept_from(listener_);
      if (!next || !next->socket) return;
      connections_.push_back(std::make_unique<Connection>(connection_shared_, group_, std::move(*next), nullptr));
    }
  }

  static constexpr int kKernelBytes = 16 << 10;
  Loop& loop_;
  ManualClock clock_;
  Published<config::Loaded> configuration_{load("http://unused.test")};
  Published<Known> known_{std::make_shared<const Known>()};
  UnaskedStore store_;
  LoopMetrics metrics_;
  Pipeline pipeline_{configuration_, known_, store_, metrics_, clock_};
  ConnectionShared connection_shared_{loop_, pipeline_, metrics_, {}, {}};
  ConnectionGroup group_;
  Socket listener_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

class CountingProxy final : public http::Handler {
 public:
  explicit CountingProxy(ProxyLoop& loop) : proxy_(loop) {}

  void begin(http::Exchange& exchange, const RequestHead& head, http::BodyPart first) override {
    ++begun;
    proxy_.begin(exchange, head, first);
  }
  void body(http::Exchange& exchange, http::BodyPart part) override { proxy_.body(exchange, part); }
  void refused(http::Exchange& exchange, const HttpProblem& problem) override { proxy_.refused(exchange, problem); }

  std::size_t begun = 0;

 private:
  ProxyHandler proxy_;
};

struct Versions {
  bool front_http2;
  bool back_http2;
};

// How the calls ended.
struct Ends {
  std::size_t echoed = 0;
  std::size_t canceled = 0;
  std::size_t failed = 0;  // an error, no response, or a part of one
};

// All of it lives on the loop's thread, where each turn takes some steps.
class Chain {
 public:
  Chain(Versions versions, unsigned seed, bool breaks)
      : versions_(versions), calls_max_(versions.front_http2 ? 12 : 4), breaks_(breaks), random_(seed) {
    loop_.run([&] {
      backend_ = std::make_unique<EchoBackend>(loop_.loop());
      pool_ = std::make_unique<http::ClientPool>(loop_.loop(), resolver_, http::ClientPool::Options{});
      proxy_ = std::make_unique<ProxyLoop>(gateway_, *pool_, metrics_, service_metrics_, 1);
      proxy_->configure(*load((versions.back_http2 ? "h2://" : "http://") + backend_->address()));
      handler_ = std::make_unique<CountingProxy>(*proxy_);
      const auto choose = [this](std::size_t n) { return choose_below(n); };
      ends_ = std::make_unique<JoinedEnds>(versions.front_http2, *handler_, choose, calls_max_);
    });
  }

  std::size_t calls_max() const { return calls_max_; }

  Ends run() {
    loop_.run([&] { take_turn(); });
    done_.get_future().wait();
    const Ends ends = loop_.run([&] { return finish(); });
    EXPECT_TRUE(loop_.until([&] { return backend_->connections() == 0; }));
    loop_.run([&] {
      EXPECT_EQ(backend_->echo.begun, backend_->echo.endings_told());
      EXPECT_EQ(backend_->shared.exchanges->open_count(), 0u);
      EXPECT_EQ(backend_->shared.http2.library_bytes(), 0u);
      backend_.reset();
    });
    return ends;
  }

 private:
  // After the moves of the two ends.
  static constexpr std::size_t kStall = JoinedEnds::kMoves;
  static constexpr std::size_t kAnswer = kStall + 1;
  static constexpr int kRandomTurns = 20'000;
  static constexpr int kTurnsMax = 300'000;

  std::size_t choose_below(std::size_t n) { return random_() % n; }

  void take_turn() {
    if (turns_++ < kRandomTurns && !ends_->is_done()) {
      for (std::size_t steps = 1 + choose_below(8); steps > 0; --steps) take_step();
    } else {
      for (std::size_t action = 0; action <= kAnswer; ++action) act(action, JoinedEnds::kMoveBytesMax);
      backend_->echo.stalled = false;
      backend_->echo.move();
    }
    check_bounds();
    if (is_quiet()) return done_.set_value();
    if (turns_ > kTurnsMax) {
      ADD_FAILURE() << "some calls do not end";
      ends_->cut();
      return done_.set_value();
    }
    loop_.loop().post([this] { take_turn(); });
  }

  void take_step() {
    if (breaks_ && choose_below(300) == 0) return break_something();
    const std::size_t action = choose_below(kAnswer + 1);
    act(action, ends_->choose_size());
    check_bounds();
  }

  void act(std::size_t action, std::size_t bytes) {
    if (action < JoinedEnds::kMoves) return ends_->move(static_cast<JoinedEnds::Move>(action), bytes);
    if (action == kAnswer) return ends_->answer(allowed());
    http::EchoingHandler& echo = backend_->echo;
    if (choose_below(8) == 0) echo.stalled = !echo.stalled;
    if (!echo.stalled) echo.move();
  }

  void break_something() {
    const std::size_t connections = backend_->connections();
    switch (choose_below(4)) {
      case 0:
        ends_->cancel();
        break;
      case 1:
        ends_->cut();
        break;
      case 2:
        if (connections > 0) backend_->cut(choose_below(connections));
        break;
      default:
        if (connections > 0) backend_->drain(choose_below(connections));
        break;
    }
    if (ends_->is_cut()) ends_->connect();
  }

  void check_bounds() const {
    ends_->check_bounds();
    if (breaks_) return;
    // Of each call in each direction one window waits at either side of a connection of HTTP/2. (With HTTP/1 the kernel
    // may hold a whole body.)
    const std::size_t bytes_max = ends_->under_way(2 * bounds::http_window_bytes);
    const std::size_t in = metrics_.bytes_in.value();
    const std::size_t out = metrics_.bytes_out.value();
    const std::size_t echoed = backend_->echo.echoed;
    WEIR_ASSERT(!versions_.front_http2 || ends_->written() <= in + bytes_max);
    WEIR_ASSERT(!versions_.back_http2 || in <= echoed + bytes_max);
    WEIR_ASSERT(!versions_.back_http2 || echoed <= out + bytes_max);
    WEIR_ASSERT(!versions_.front_http2 || out <= ends_->consumed() + bytes_max);
  }

  // All calls have ended, and both sessions know.
  bool is_quiet() const {
    return ends_->is_done() && ends_->open_exchanges() == 0 && pool_->counts().calls == 0 &&
           backend_->shared.exchanges->open_count() == 0;
  }

  Ends finish() {
    EXPECT_EQ(gateway_.active.load(), 0);
    EXPECT_EQ(metrics_.active.value(), 0u);
    std::size_t ended = 0;
    metrics_.visit([&](const ProxyRouteCounters& route) {
      for (const Counter& responses : route.by_class) ended += responses.value();
    });
    EXPECT_EQ(handler_->begun, ended);
    if (!breaks_) {
      EXPECT_EQ(metrics_.bytes_in.value(), backend_->echo.echoed);
      EXPECT_EQ(metrics_.bytes_out.value(), backend_->echo.echoed);
      EXPECT_EQ(backend_->echo.endings[http::Ending::complete], calls_max_);
    }
    Ends ends;
    for (const auto& caller : ends_->callers()) {
      EXPECT_TRUE(!caller->complete || caller->status == 200 || caller->status == 502) << caller->status;
      ++(caller->is_echoed() ? ends.echoed : caller->canceled ? ends.canceled : ends.failed);
    }
    backend_->echo.stalled = false;  // a request may have reached it after its call had ended
    backend_->echo.move();
    ends_->disconnect();
    ends_.reset();
    handler_.reset();
    proxy_.reset();
    pool_.reset();
    return ends;
  }

  const Versions versions_;
  const std::size_t calls_max_;
  const bool breaks_;
  std::mt19937 random_;
  http::ManualLoop loop_;
  Resolver resolver_;
  Gateway gateway_{"."};
  ProxyMetrics metrics_;
  ServiceMetrics service_metrics_;
  std::unique_ptr<EchoBackend> backend_;
  std::unique_ptr<http::ClientPool> pool_;
  std::unique_ptr<ProxyLoop> proxy_;
  std::unique_ptr<CountingProxy> handler_;
  std::unique_ptr<JoinedEnds> ends_;
  int turns_ = 0;
  std::promise<void> done_;
};

class ChainTest : public testing::TestWithParam<Versions> {};

TEST_P(ChainTest, EchoesEveryBodyHoweverItIsScheduled) {
  const unsigned seeds = GetParam().front_http2 ? 10 : 20;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    Chain chain(GetParam(), seed, false);
    EXPECT_EQ(chain.run().echoed, chain.calls_max());
  }
}

TEST_P(ChainTest, EndsEverythingOnceWhenCallsAreCanceledAndConnectionsCut) {
  Ends all;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const Ends ends = Chain(GetParam(), seed, true).run();
    all.echoed += ends.echoed;
    all.canceled += ends.canceled;
    all.failed += ends.failed;
  }
  EXPECT_GT(all.echoed, 0u);
  EXPECT_GT(all.canceled, 0u);
  EXPECT_GT(all.failed, 0u);
}

INSTANTIATE_TEST_SUITE_P(Pairs, ChainTest,
                         testing::Values(Versions{false, false}, Versions{false, true}, Versions{true, false},
                                         Versions{true, true}),
                         [](const auto& one) {
                           return std::string(one.param.front_http2 ? "Http2" : "Http1") + "To" +
                                  (one.param.back_http2 ? "Http2" : "Http1");
                         });

}  // namespace
}  // namespace weir::proxy::chain_test
