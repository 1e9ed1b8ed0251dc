// Connections of a real server on real sockets, with a store that answers on command.
#include "weir/server/connection.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <variant>

#include "weir/base/bounds.h"
#include "weir/base/clock.h"
#include "weir/base/published.h"
#include "weir/config/parse.h"
#include "weir/http/choose_session.h"
#include "weir/http/handler.h"
#include "weir/http/http_shared.h"
#include "weir/known/known.h"
#include "weir/net/certificates_test.h"
#include "weir/protocol/resp/resp_session.h"
#include "weir/server/server.h"

namespace weir::connection_test {
namespace {

using namespace std::chrono_literals;

// A remote store that holds every charge until the test releases it.
class LateStore final : public Store {
 public:
  void charge(std::span<const Question> batch, Now, Answers& answers) override {
    const std::lock_guard lock(mutex_);
    answers_ = &answers;
    for (const Question& question : batch) held_.push_back(question.ticket);
    if (prompt_) answer_held();
    changed_.notify_all();
  }
  bool wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 30s, [&] { return held_.size() >= count; });
  }
  // Call it on the loop's thread: answers what it holds, and every later charge at once.
  void answer() {
    const std::lock_guard lock(mutex_);
    prompt_ = true;
    answer_held();
  }

 private:
  void answer_held() {
    for (const Ticket ticket : std::exchange(held_, {})) answers_->answer(ticket, Error{Fault::unavailable, "late"});
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Ticket> held_;
  Answers* answers_ = nullptr;
  bool prompt_ = false;
};

void say(const Socket& socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ASSERT_GT(sent, 0);
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// Reads until the server closes the connection.
std::string read_all(const Socket& socket) {
  std::string all;
  std::array<char, 65536> piece;
  for (;;) {
    const ssize_t got = recv(socket.fd(), piece.data(), piece.size(), 0);
    if (got <= 0) return all;
    all.append(piece.data(), static_cast<std::size_t>(got));
  }
}

std::shared_ptr<const config::Loaded> no_limits() {
  auto outcome = config::parse("limits: {}", "test.yaml", {});
  return std::make_shared<const config::Loaded>(std::get<config::Loaded>(outcome));
}

class ConnectionTest : public testing::Test {
 protected:
  ~ConnectionTest() override {
    if (!thread_.joinable()) return;
    answer();
    server_->stop(30s);
    thread_.join();
  }

  void make(std::shared_ptr<TlsServer> tls = nullptr) {
    Endpoint endpoint;
    endpoint.address = {"127.0.0.1", 0, {}};
    endpoint.protocol = Protocol::resp;
    endpoint.sessions = [this](Loop& loop, Pipeline&) -> Sessions {
      loop_ = &loop;
      return [this](const NewConnection& fresh) { return std::make_unique<RespSession>(fresh.output, options_); };
    };
    endpoint.tls = std::move(tls);
    server_ = std::move(*Server::make({.threads = 1,
                                       .store =
                                           [this](Loop&) {
                                             auto store = std::make_unique<LateStore>();
                                             store_ = store.get();
                                             return store;
                                           },
                                       .log = {}},
                                      {endpoint}, configuration_, known_, clock_));
  }
  void run() {
    thread_ = std::thread([this] { server_->run(); });
  }
  void answer() {
    loop_->post([this] { store_->answer(); });
  }

  Socket connect() const {
    Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->addresses()[0].port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  // Waits until the number of open connections is `count`.
  bool open_connections(std::uint64_t count) const {
    for (int i = 0; i < 3000; ++i) {
      if (server_->metrics()[0]->connections[static_cast<std::size_t>(Protocol::resp)].value() == count) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }

  BootClock clock_;
  Published<config::Loaded> configuration_{no_limits()};
  Published<Known> known_{std::make_shared<const Known>()};
  RespOptions options_;
  LateStore* store_ = nullptr;
  Loop* loop_ = nullptr;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

TEST_F(ConnectionTest, ClosesAConnectionWhosePeerIsGoneEvenIfAnswersAreOwed) {
  make();
  run();
  const Socket other = connect();
  {
    const Socket gone = connect();
    say(gone, "CL.THROTTLE k 1 1 1\r\n");
    shutdown(gone.fd(), SHUT_WR);
    ASSERT_TRUE(store_->wait_for(1));
    // Once another connection is answered, this one's EOF has been read.
    for (int i = 0; i < 3; ++i) {
      say(other, "PING\r\n");
      std::array<char, 7> pong;
      ASSERT_EQ(recv(other.fd(), pong.data(), pong.size(), MSG_WAITALL), 7);
    }
    EXPECT_TRUE(open_connections(2));
    const linger reset{1, 0};
    setsockopt(gone.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  EXPECT_TRUE(open_connections(1));
}

// One connection on its own loop.
class LoneConnectionTest : public testing::Test {
 protected:
  LoneConnectionTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    EXPECT_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    served_ = Socket(ends[0]);
    peer_ = Socket(ends[1]);
    group_.protocol = Protocol::resp;
    group_.sessions = [this](const NewConnection& fresh) -> std::unique_ptr<Session> {
      first_bytes_.emplace_back(fresh.first_bytes);
      if (fresh.first_bytes.size() < bytes_to_choose_) return nullptr;
      return std::make_unique<RespSession>(fresh.output, options_);
    };
    shared_.ended = [this](Connection&) {
      loop_->retire(std::move(connection_));
      loop_->stop();
    };
    loop_->on_end_of_turn([this] {
      pipeline_.flush(loop_->now());
      if (at_end_of_turn_) at_end_of_turn_();
    });
  }

  void open() {
    connection_ = std::make_unique<Connection>(shared_, group_, Accepted{std::move(served_), "1.2.3.4"}, nullptr);
  }
  void say(std::string_view bytes) const { connection_test::say(peer_, bytes); }
  static std::string repeated(std::string_view command, std::size_t count) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += command;
    return all;
  }
  void expect_to_read_all(std::string_view replies) const {
    std::string received(replies.size(), ' ');
    EXPECT_EQ(recv(peer_.fd(), received.data(), received.size(), MSG_WAITALL), static_cast<ssize_t>(received.size()));
    EXPECT_EQ(received, replies);
  }
  // Runs until the connection has ended or the test times out.
  std::thread serve() {
    loop_->at(clock_.time() + 10s, [this] {
      ended_by_itself_ = false;
      connection_ = nullptr;
      loop_->stop();
    });
    return std::thread([this] { loop_->run(); });
  }

  BootClock clock_;
  Published<config::Loaded> configuration_{no_limits()};
  Published<Known> known_{std::make_shared<const Known>()};
  RespOptions options_;
  LateStore store_;
  LoopMetrics metrics_;
  Pipeline pipeline_{configuration_, known_, store_, metrics_, clock_};
  std::unique_ptr<Loop> loop_ = std::move(*Loop::make(clock_));
  ConnectionShared shared_{*loop_, pipeline_, metrics_, {}, {}};
  ConnectionGroup group_;
  Socket served_;
  Socket peer_;
  std::unique_ptr<Connection> connection_;
  std::function<void()> at_end_of_turn_;
  std::vector<std::string> first_bytes_;  // at each call of the session factory
  std::size_t bytes_to_choose_ = 0;
  bool ended_by_itself_ = true;
};

TEST(ConnectionGroup, DrawsAgesWithinATenthOfTheirMean) {
  ConnectionGroup group;
  EXPECT_EQ(group.draw_age(), Duration::zero()) << "no bound";
  group.times.max_age = 10s;
  Duration youngest = Duration::max();
  Duration oldest{};
  for (int i = 0; i < 1000; ++i) {
    const Duration age = group.draw_age();
    youngest = std::min(youngest, age);
    oldest = std::max(oldest, age);
  }
  EXPECT_GE(youngest, 9s);
  EXPECT_LT(youngest, 9500ms);
  EXPECT_GT(oldest, 10500ms);
  EXPECT_LE(oldest, 11s);
}

// The kernel reports arrivals once. All bytes arrive before the connection is created, so there is no later event. 150
// kB take three reads.
TEST_F(LoneConnectionTest, ReadsAllBytesEvenIfNoFurtherEventArrives) {
  say(repeated("PING\r\n", 25'000));
  open();
  std::thread serving = serve();
  expect_to_read_all(repeated("+PONG\r\n", 25'000));
  shutdown(peer_.fd(), SHUT_WR);
  serving.join();
  EXPECT_TRUE(ended_by_itself_);
}

TEST_F(LoneConnectionTest, NoticesEofThatArrivesWithTheLastBytes) {
  say("PING\r\n");
  shutdown(peer_.fd(), SHUT_WR);
  open();
  std::thread serving = serve();
  expect_to_read_all("+PONG\r\n");
  serving.join();
  EXPECT_TRUE(ended_by_itself_);
}

// Too many answers are owed when the PING arrives, but not any more when the turn ends.
TEST_F(LoneConnectionTest, ReadsBytesThatArrivedWhileReadingWasPaused) {
  constexpr std::size_t kCommands = bounds::owed_max + 1;
  open();
  say(repeated("DEL k\r\n", kCommands));
  bool pinged = false;
  at_end_of_turn_ = [&] {
    if (!std::exchange(pinged, true)) return say("PING\r\n");  // the turn has not ended: reading is still enabled
    store_.answer();
  };
  std::thread serving = serve();
  const std::string late = "-UNAVAILABLE late\r\n";
  expect_to_read_all(repeated(late, kCommands) + "+PONG\r\n");
  shutdown(peer_.fd(), SHUT_WR);
  serving.join();
  EXPECT_TRUE(ended_by_itself_);
}

TEST_F(LoneConnectionTest, ChoosesTheSessionFromTheFirstBytes) {
  bytes_to_choose_ = 6;
  open();
  std::thread serving = serve();
  say("PI");
  bool seen = false;
  while (!seen) {
    std::promise<void> turned;
    loop_->post([&] {
      seen = !first_bytes_.empty();
      turned.set_value();
    });
    turned.get_future().wait();
  }
  say("NG\r\n");
  expect_to_read_all("+PONG\r\n");
  shutdown(peer_.fd(), SHUT_WR);
  serving.join();
  EXPECT_EQ(first_bytes_, (std::vector<std::string>{"PI", "PING\r\n"}));
  EXPECT_TRUE(ended_by_itself_);
}

TEST_F(LoneConnectionTest, ClosesAConnectionWhoseFirstBytesDoNotComeInTime) {
  bytes_to_choose_ = 6;
  open();
  say("PI");
  at_end_of_turn_ = [&] {
    if (connection_ == nullptr || first_bytes_.empty()) return;
    connection_->check_deadline(loop_->reading().time + bounds::http_head_time_max);
  };
  std::thread serving = serve();
  char byte = 0;
  EXPECT_EQ(recv(peer_.fd(), &byte, 1, 0), 0);
  shutdown(peer_.fd(), SHUT_WR);
  serving.join();
  EXPECT_TRUE(ended_by_itself_);
}

// "PRI" may be the beginning of the HTTP/2 preface. A peer that sends no more of it gets an answer all the same.
class UndecidedConnectionTest : public LoneConnectionTest {
 protected:
  UndecidedConnectionTest() {
    group_.sessions = http::http_sessions(http_, handler_);
    say("PRI * HT");
    open();
  }
  std::string answer() {
    std::thread serving = serve();
    std::string all = read_all(peer_);
    peer_ = Socket();
    serving.join();
    EXPECT_TRUE(ended_by_itself_);
    return all;
  }

 private:
  class NoHandler final : public http::Handler {
   public:
    void begin(http::Exchange&, const RequestHead&, http::BodyPart) override { ADD_FAILURE() << "no request"; }
    void body(http::Exchange&, http::BodyPart) override {}
  };
  http::HttpShared http_;
  NoHandler handler_;
};

TEST_F(UndecidedConnectionTest, IsAnsweredWhenThePeerEnds) {
  shutdown(peer_.fd(), SHUT_WR);
  const std::string reply = answer();
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 400 Bad Request\r\n")) << reply;
  EXPECT_TRUE(reply.ends_with("the connection ended in the middle of the request\"}\n")) << reply;
}

TEST_F(UndecidedConnectionTest, IsAnsweredWhenTheRestDoesNotComeInTime) {
  at_end_of_turn_ = [&] {
    if (connection_ == nullptr) return;
    connection_->check_deadline(loop_->reading().time + bounds::http_head_time_max);
  };
  const std::string reply = answer();
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 408 Request Timeout\r\n")) << reply;
}

// A transaction whose questions do not fit one batch, behind a DEL that fills most of it.
TEST_F(LoneConnectionTest, GoesOnWithATransactionThatFoundNoRoomInTheBatch) {
  store_.answer();
  constexpr std::size_t kDels = bounds::queries_per_turn_max - 1;
  say("MULTI\r\n" + repeated("DEL k\r\n", kDels) + "DEL a b c\r\nEXEC\r\nPING\r\n");
  open();
  std::thread serving = serve();
  const std::string late = "-UNAVAILABLE late\r\n";
  expect_to_read_all("+OK\r\n" + repeated("+QUEUED\r\n", kDels + 1) + "*" + std::to_string(kDels + 1) + "\r\n" +
                     repeated(late, kDels + 1) + "+PONG\r\n");
  shutdown(peer_.fd(), SHUT_WR);
  serving.join();
  EXPECT_TRUE(ended_by_itself_);
}

// 100,000 replies that nobody reads yet: the server stops at the bound and goes on when they are read.
TEST_F(LoneConnectionTest, StopsReadingWhileThePeerDoesNotRead) {
  open();
  std::thread serving = serve();
  const std::string word(1000, 'x');
  const std::string command = "*2\r\n$4\r\nECHO\r\n$1000\r\n" + word + "\r\n";
  constexpr std::size_t kCount = 20'000;
  std::thread talking([&] { say(repeated(command, kCount)); });
  std::this_thread::yield();
  expect_to_read_all(repeated("$1000\r\n" + word + "\r\n", kCount));
  talking.join();
  shutdown(peer_.fd(), SHUT_WR);
  serving.join();
  EXPECT_TRUE(ended_by_itself_);
}

// Nobody reads. The server takes commands until their replies pass the bound, and what the kernel and one read hold.
TEST_F(LoneConnectionTest, HoldsABoundedNumberOfUnsentBytes) {
  const std::string command = "*2\r\n$4\r\nECHO\r\n$1000\r\n" + std::string(1000, 'x') + "\r\n";
  open();
  std::thread serving = serve();
  std::size_t taken = 0;
  std::string_view rest = command;
  for (int idle_turns = 0; idle_turns < 10;) {
    const ssize_t sent = send(peer_.fd(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      taken += static_cast<std::size_t>(sent);
      rest.remove_prefix(static_cast<std::size_t>(sent));
      if (rest.empty()) rest = command;
      idle_turns = 0;
      continue;
    }
    EXPECT_EQ(errno, EAGAIN);
    std::promise<void> turned;  // it had a turn to read in
    loop_->post([&] { turned.set_value(); });
    turned.get_future().wait();
    ++idle_turns;
  }
  EXPECT_GT(taken, bounds::unsent_bytes_max);
  EXPECT_LT(taken, bounds::unsent_bytes_max + (2u << 20));
  peer_ = Socket();
  serving.join();
  EXPECT_TRUE(ended_by_itself_);
}

TEST_F(LoneConnectionTest, IdleConnectionTakesLessThanAKilobyte) {
  EXPECT_LE(sizeof(Connection) + sizeof(RespSession), 1024u);
}

TEST_F(ConnectionTest, AnswersAPeerThatOnlyClosedItsSendingSide) {
  make();
  run();
  const Socket half = connect();
  say(half, "CL.THROTTLE k 1 1 1\r\n");
  shutdown(half.fd(), SHUT_WR);
  ASSERT_TRUE(store_->wait_for(1));
  answer();
  EXPECT_NE(read_all(half), "");
}

TEST_F(ConnectionTest, AnswersCommandsThatWereReadBeforeTheDrain) {
  make();
  // More commands than may be owed, all sent before the server reads: it holds the rest back.
  const std::size_t count = bounds::owed_max + 2 * bounds::queries_per_turn_max;
  Socket socket = connect();
  std::string commands;
  for (std::size_t i = 0; i < count; ++i) commands += "DEL k\r\n";
  ASSERT_LT(commands.size(), 60'000u);
  say(socket, commands);
  run();
  ASSERT_TRUE(store_->wait_for(bounds::owed_max));
  server_->stop(30s);
  answer();
  const std::string replies = read_all(socket);
  EXPECT_EQ(static_cast<std::size_t>(std::count(replies.begin(), replies.end(), '\n')), count);
  socket = Socket();
  thread_.join();
}

// A TLS client over a socket.
class SecureConnectionTest : public ConnectionTest {
 protected:
  void make_secure() {
    TlsServer::Options options{{folder_.write("server", authority_.issue("DNS:weir.test"))}, {}, {}};
    make(std::move(*TlsServer::make(std::move(options))));
    run();
  }
  // Sends the text after the handshake, then reads until it has enough or the server closes.
  static std::string talk(const Socket& socket, TlsChannel& channel, std::string_view words, std::size_t enough) {
    std::string out;
    std::string plain;
    EXPECT_TRUE(channel.receive({}, plain, out));
    std::array<char, 65536> piece;
    while (plain.size() < enough) {
      if (channel.established() && !words.empty()) {
        EXPECT_TRUE(channel.send(std::exchange(words, {}), out));
      }
      pollfd ready{socket.fd(), static_cast<short>(out.empty() ? POLLIN : POLLIN | POLLOUT), 0};
      if (poll(&ready, 1, 30'000) != 1) break;
      const ssize_t sent = send(socket.fd(), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) out.erase(0, static_cast<std::size_t>(sent));
      const ssize_t got = recv(socket.fd(), piece.data(), piece.size(), MSG_DONTWAIT);
      if (got < 0 && errno == EAGAIN) continue;
      if (got <= 0 || !channel.receive({piece.data(), static_cast<std::size_t>(got)}, plain, out)) break;
    }
    return plain;
  }
  std::unique_ptr<TlsChannel> channel() const {
    const auto client = std::move(*TlsClient::make({folder_.write("ca.pem", authority_.cert()), {}, {}}));
    return std::move(*client->connect("weir.test"));
  }

  Authority authority_;
  CertificateFolder folder_;
};

TEST_F(SecureConnectionTest, ServesOverTls) {
  make_secure();
  const Socket socket = connect();
  const auto client = channel();
  EXPECT_EQ(talk(socket, *client, "PING\r\n", 7), "+PONG\r\n");
  // The server answers close_notify with its own.
  std::string out;
  client->close(out);
  say(socket, out);
  std::string plain;
  EXPECT_TRUE(client->receive(read_all(socket), plain, out));
  EXPECT_TRUE(client->peer_closed());
  EXPECT_TRUE(open_connections(0));
}

TEST_F(SecureConnectionTest, SendsMoreThanTheKernelAcceptsAtOnce) {
  make_secure();
  const Socket socket = connect();
  const auto client = channel();
  const std::string word(60'000, 'x');
  std::string commands;
  std::string replies;
  for (int i = 0; i < 200; ++i) {
    commands += "*2\r\n$4\r\nECHO\r\n$60000\r\n" + word + "\r\n";
    replies += "$60000\r\n" + word + "\r\n";
  }
  EXPECT_EQ(talk(socket, *client, commands, replies.size()), replies);
}

TEST_F(SecureConnectionTest, ClosesAConnectionThatDoesNotSpeakTls) {
  make_secure();
  const Socket good = connect();
  const auto client = channel();
  EXPECT_EQ(talk(good, *client, "PING\r\n", 7), "+PONG\r\n");
  for (const std::string_view words : {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PING\r\n", "\x16\x03\x01\xff\xff"}) {
    const Socket bad = connect();
    say(bad, words);
    shutdown(bad.fd(), SHUT_WR);
    EXPECT_EQ(read_all(bad).find("PONG"), std::string::npos);
  }
  EXPECT_TRUE(open_connections(1));
}

TEST_F(SecureConnectionTest, UnfinishedHandshakeDoesNotDelayShutdown) {
  make_secure();
  Socket silent = connect();
  Socket half = connect();
  say(half, "\x16\x03\x01");
  EXPECT_TRUE(open_connections(2));
  server_->stop(30s);
  EXPECT_EQ(read_all(silent), "");
  EXPECT_EQ(read_all(half), "");
  silent = Socket();
  half = Socket();
  thread_.join();
}

}  // namespace
}  // namespace weir::connection_test
