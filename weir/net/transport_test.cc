#include "weir/net/transport.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/net/transport_peer_test.h"

namespace weir::transport_test {
namespace {

using namespace std::chrono_literals;

class TransportTest : public TransportFixture {};

TEST_F(TransportTest, CarriesBytesBothWays) {
  const Socket peer = accept();
  EXPECT_TRUE(say(peer, "question"));
  EXPECT_TRUE(owner_.wait_for("<opened>question"));
  write("answer");
  EXPECT_EQ(take(peer, 6), "answer");
  EXPECT_EQ(on_loop([](Transport& transport) { return transport.taken(); }), 6u);
  EXPECT_EQ(on_loop([](Transport& transport) { return transport.unsent(); }), 0u);
}

TEST_F(TransportTest, PassesLeftBytesAgainWithMoreBehindThem) {
  owner_.take_only(0);
  const Socket peer = accept();
  EXPECT_TRUE(say(peer, "ab"));
  pass_turns();
  thread_.run([&] { owner_.take_only(SIZE_MAX); });
  EXPECT_EQ(owner_.events(), "<opened>");
  EXPECT_TRUE(say(peer, "c"));
  EXPECT_TRUE(owner_.wait_for("<opened>abc"));
}

TEST_F(TransportTest, PassesLeftBytesAgainAfterResume) {
  owner_.take_only(1);
  const Socket peer = accept();
  EXPECT_TRUE(say(peer, "abc"));
  EXPECT_TRUE(owner_.wait_for("<opened>a"));
  on_loop([](Transport& transport) { transport.resume(); });
  EXPECT_TRUE(owner_.wait_for("<opened>ab"));
  on_loop([](Transport& transport) {
    transport.resume();
    transport.resume();
  });
  EXPECT_TRUE(owner_.wait_for("<opened>abc"));
}

TEST_F(TransportTest, ReadsNothingWhilePausedAndEverythingAfterwards) {
  const Socket peer = accept();
  EXPECT_TRUE(owner_.wait_for("<opened>"));
  on_loop([](Transport& transport) { transport.pause(); });
  EXPECT_TRUE(say(peer, "one"));
  pass_turns();
  EXPECT_TRUE(say(peer, "two"));
  shutdown(peer.fd(), SHUT_WR);
  pass_turns();
  EXPECT_EQ(owner_.events(), "<opened>");
  on_loop([](Transport& transport) { transport.resume(); });
  EXPECT_TRUE(owner_.wait_for("<opened>onetwo<ended>"));
}

TEST_F(TransportTest, PausedReaderStopsItsPeer) {
  const Socket peer = accept();
  on_loop([](Transport& transport) { transport.pause(); });
  EXPECT_EQ(fcntl(peer.fd(), F_SETFL, O_NONBLOCK), 0);
  const std::string block(64 << 10, 'x');
  std::size_t sent = 0;
  for (ssize_t took = 1; took > 0 && sent < (64u << 20);) {
    took = send(peer.fd(), block.data(), block.size(), MSG_NOSIGNAL);
    if (took > 0) sent += static_cast<std::size_t>(took);
  }
  EXPECT_LT(sent, 64u << 20);
  on_loop([](Transport& transport) { transport.resume(); });
  EXPECT_TRUE(owner_.wait_for_size(8 + sent));
}

// The kernel reports arrivals once. 1 MiB takes 16 reads without a further event.
TEST_F(TransportTest, ReadsAllBytesEvenIfNoFurtherEventArrives) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const int large = 4 << 20;
  setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
  const Socket peer(ends[1]);
  ASSERT_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  ASSERT_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  std::string all;
  const std::string block(10'000, 'x');
  while (send(peer.fd(), block.data(), block.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(block.size())) all += block;
  ASSERT_GT(all.size(), 64u << 10);
  thread_.run([&] {
    transport_ = std::make_unique<Transport>(thread_.loop(), owner_, Socket(ends[0]), nullptr, Transport::Options{});
    transport_->start();
  });
  EXPECT_TRUE(owner_.wait_for_size(8 + all.size()));
}

TEST_F(TransportTest, KeepsExactlyTheBoundOfBytesThatTheOwnerLeaves) {
  owner_.take_only(0);
  const Socket peer = accept({.unread_bytes_max = 1000});
  EXPECT_TRUE(say(peer, std::string(1000, 'x')));
  pass_turns();
  EXPECT_EQ(owner_.events(), "<opened>");
  EXPECT_TRUE(say(peer, "x"));
  EXPECT_EQ(owner_.wait_for_failure(), (Error{Fault::too_large, "more than 1000 bytes from the peer wait"}));
}

TEST_F(TransportTest, SaysWhenThereIsRoomAgain) {
  const Socket peer = accept({.low_water = 1000});
  EXPECT_TRUE(owner_.wait_for("<opened>"));
  const std::string much(8 << 20, 'y');
  write(much);
  EXPECT_GE(on_loop([](Transport& transport) { return transport.unsent(); }), 1000u);
  EXPECT_EQ(take(peer, much.size()), much);
  EXPECT_TRUE(owner_.wait_for_last("<writable>"));
  EXPECT_EQ(on_loop([](Transport& transport) { return transport.taken(); }), much.size());
  pass_turns();
  const std::string before = owner_.events();
  write("little");
  pass_turns();
  EXPECT_EQ(owner_.events(), before);
}

// Fewer bytes than the low water are unsent, but they could not be sent at once.
TEST_F(TransportTest, SaysWhenAllIsSentThatHadToWait) {
  const Socket peer = accept({.low_water = 64u << 20});
  EXPECT_TRUE(owner_.wait_for("<opened>"));
  const std::string much(8 << 20, 'y');
  write(much);
  EXPECT_GT(on_loop([](Transport& transport) { return transport.unsent(); }), 0u);
  EXPECT_EQ(take(peer, much.size()), much);
  EXPECT_TRUE(owner_.wait_for("<opened><writable>"));
}

TEST_F(TransportTest, KeepsTheOrderOfWhatIsWrittenWhileThePeerIsSlow) {
  const Socket peer = accept();
  std::string all;
  for (int i = 0; i < 100; ++i) {
    const std::string piece(50'000, static_cast<char>('a' + i % 26));
    write(piece);
    all += piece;
    if (i % 3 == 0) {
      const std::string some = take(peer, 20'000);
      EXPECT_EQ(some, all.substr(0, some.size()));
      all.erase(0, some.size());
    }
  }
  EXPECT_EQ(take(peer, all.size()), all);
}

TEST_F(TransportTest, HalfCloseSendsWhatIsUnsentThenItsEndAndReadsOn) {
  const Socket peer = accept();
  const std::string much(4 << 20, 'z');
  write(much);
  on_loop([](Transport& transport) { transport.half_close(); });
  EXPECT_EQ(take(peer, much.size() + 1), much);
  EXPECT_TRUE(say(peer, "still there"));
  EXPECT_TRUE(owner_.wait_for_last("still there"));
  shutdown(peer.fd(), SHUT_WR);
  EXPECT_TRUE(owner_.wait_for_last("<ended>"));
}

TEST_F(TransportTest, PeersHalfCloseLeavesWritingOpen) {
  const Socket peer = accept();
  shutdown(peer.fd(), SHUT_WR);
  EXPECT_TRUE(owner_.wait_for("<opened><ended>"));
  write("answer");
  EXPECT_EQ(take(peer, 6), "answer");
}

TEST_F(TransportTest, FinishSendsEverythingAndWaitsForThePeersEnd) {
  const Socket peer = accept();
  EXPECT_TRUE(owner_.wait_for("<opened>"));
  const std::string much(4 << 20, 'z');
  on_loop([&](Transport& transport) {
    transport.out() = much;
    transport.finish();
  });
  EXPECT_TRUE(say(peer, "is not read any more"));
  EXPECT_EQ(take(peer, much.size() + 1), much);
  EXPECT_EQ(owner_.events(), "<opened>");
  shutdown(peer.fd(), SHUT_WR);
  EXPECT_TRUE(owner_.wait_for("<opened><finished>"));
}

TEST_F(TransportTest, FinishEndsAtOnceIfThePeerHasEnded) {
  const Socket peer = accept();
  shutdown(peer.fd(), SHUT_WR);
  EXPECT_TRUE(owner_.wait_for("<opened><ended>"));
  on_loop([](Transport& transport) { transport.finish(); });
  EXPECT_TRUE(owner_.wait_for("<opened><ended><finished>"));
  EXPECT_EQ(take(peer, 1), "");
}

// On a loop with a clock that the test moves.
class TransportTimeTest : public testing::Test {
 protected:
  ~TransportTimeTest() override {
    loop_->stop();
    thread_.join();
  }
  template <class Work>
  void run(Work work) {
    std::promise<void> done;
    loop_->post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  void pass(Duration time) {
    clock_.advance(time);
    run([] {});
    run([] {});
  }
  Socket accept(std::unique_ptr<Transport>& transport, Transport::Options options = {}) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    EXPECT_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    run([&] {
      transport = std::make_unique<Transport>(*loop_, owner_, Socket(ends[0]), nullptr, std::move(options));
      transport->start();
    });
    run([] {});
    return Socket(ends[1]);
  }

  ManualClock clock_{Time{100s}};
  RecordingOwner owner_;
  std::unique_ptr<Loop> loop_ = std::move(*Loop::make(clock_));
  std::thread thread_{[this] { loop_->run(); }};
};

TEST_F(TransportTimeTest, FinishWaitsTwoSecondsForAPeerThatDoesNotEnd) {
  std::unique_ptr<Transport> transport;
  const Socket peer = accept(transport);
  run([&] { transport->finish(); });
  pass(1999ms);
  EXPECT_EQ(owner_.events(), "<opened>");
  EXPECT_EQ(take(peer, 1), "");
  pass(1ms);
  EXPECT_EQ(owner_.events(), "<opened><finished>");
  run([&] { transport.reset(); });
}

TEST_F(TransportTimeTest, GivesUpOnAPeerThatDoesNotRead) {
  std::unique_ptr<Transport> transport;
  const Socket peer = accept(transport, {.write_timeout = 30s});
  run([&] {
    transport->out().assign(8 << 20, 'x');
    transport->flush();
  });
  pass(29s);
  EXPECT_EQ(take(peer, 4 << 20).size(), 4u << 20);  // progress: the timeout restarts
  pass(29s);
  EXPECT_EQ(owner_.events(), "<opened>");
  pass(1s);
  EXPECT_EQ(owner_.wait_for_failure(), (Error{Fault::timeout, "the peer does not read"}));
  run([&] { transport.reset(); });
}

TEST_F(TransportTest, PeerThatIsGoneIsNoticedWhilePaused) {
  Socket peer = accept();
  EXPECT_TRUE(owner_.wait_for("<opened>"));
  on_loop([](Transport& transport) { transport.pause(); });
  EXPECT_TRUE(say(peer, "unread"));
  peer = Socket();
  EXPECT_EQ(owner_.wait_for_failure().fault, Fault::unavailable);
  EXPECT_EQ(owner_.events(), "<opened><failed>");
}

TEST_F(TransportTest, FailureToWriteToAClientIsReportedAtOnce) {
  Socket peer = accept();
  EXPECT_TRUE(owner_.wait_for("<opened>"));
  on_loop([](Transport& transport) { transport.pause(); });
  thread_.run([&] {
    peer = Socket();
    transport_->out() = "too late";
    transport_->flush();
    EXPECT_EQ(transport_->unsent(), 0u);
    EXPECT_EQ(transport_->taken(), 0u);
    EXPECT_EQ(owner_.events(), "<opened>");  // not from inside flush()
  });
  EXPECT_EQ(owner_.wait_for_failure(), (Error{Fault::unavailable, "lost the connection to the peer: Broken pipe"}));
}

// A server that refuses a large request answers, closes, and resets the connection because of the unread bytes.
TEST_F(TransportTest, ReadsTheResponseThatWaitsBehindAFailedWrite) {
  connect(here());
  Socket peer = take_connection();
  EXPECT_TRUE(owner_.wait_for("<opened>"));
  on_loop([](Transport& transport) { transport.pause(); });
  write("request");
  EXPECT_TRUE(say(peer, "413"));
  const std::string response = "413";
  peer = Socket();  // with unread bytes: the kernel sends RST
  // Write until the kernel reports the reset.
  for (int i = 0; i < 1000 && on_loop([](Transport& transport) {
                    transport.out() += "more";
                    transport.flush();
                    return transport.unsent() == 0 && transport.taken() != 0 && !transport.closed();
                  });
       ++i) {
    if (owner_.events() != "<opened>") break;
  }
  EXPECT_EQ(owner_.events(), "<opened>");
  on_loop([](Transport& transport) { transport.resume(); });
  const Error why = owner_.wait_for_failure();
  EXPECT_EQ(why.fault, Fault::unavailable);
  EXPECT_EQ(owner_.events(), "<opened>413<failed>");
}

TEST_F(TransportTest, PollReadsInTheSameTurnWithoutAnEvent) {
  const Socket peer = accept();
  EXPECT_TRUE(owner_.wait_for("<opened>"));
  std::vector<std::string> after_each_turn;
  thread_.run([&] {
    EXPECT_TRUE(say(peer, "early"));
    transport_->poll();
    // Runs before each pass: the second call is after the settlers of this turn.
    thread_.loop().on_end_of_turn([&] { after_each_turn.push_back(owner_.events()); });
  });
  thread_.run([&] { thread_.loop().on_end_of_turn({}); });
  ASSERT_GE(after_each_turn.size(), 2u);
  EXPECT_EQ(after_each_turn[0], "<opened>");
  EXPECT_EQ(after_each_turn[1], "<opened>early");
}

TEST_F(TransportTest, HoldsNoBufferOnceItIsTrimmed) {
  const Socket peer = accept();
  EXPECT_TRUE(say(peer, std::string(1000, 'q')));
  EXPECT_TRUE(owner_.wait_for_size(1008));
  write(std::string(1000, 'a'));
  EXPECT_EQ(take(peer, 1000).size(), 1000u);
  on_loop([](Transport& transport) { transport.trim(); });
  EXPECT_EQ(on_loop([](Transport& transport) { return transport.out().capacity(); }), std::string().capacity());
  EXPECT_LE(sizeof(Transport), 320u);
}

// Echoes everything, pauses at random, and leaves bytes at random.
class PausingEcho final : public Transport::Owner {
 public:
  explicit PausingEcho(Loop& loop, std::uint64_t seed) : loop_(loop), random_(seed) {}
  void stop() { loop_.cancel(timer_); }
  void opened() override {}
  std::size_t received(std::string_view bytes) override {
    std::size_t used = bytes.size();
    if (below(4) == 0) used = below(bytes.size() + 1);
    transport->out() += bytes.substr(0, used);
    transport->flush();
    if (below(3) == 0 || used < bytes.size() || transport->unsent() > (128u << 10)) pause();
    return used;
  }
  void ended() override { transport->half_close(); }
  void writable() override {}
  void failed(const Error&) override {}

  Transport* transport = nullptr;

 private:
  std::size_t below(std::size_t count) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(random_ >> 33) % count;
  }
  void pause() {
    transport->pause();
    loop_.cancel(timer_);
    timer_ = loop_.at(loop_.now().time + std::chrono::microseconds{below(300)}, [this] { transport->resume(); });
  }

  Loop& loop_;
  std::uint64_t random_;
  Loop::TimerId timer_ = 0;
};

TEST_F(TransportTest, LosesNoWakeUpHoweverItIsPaused) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    ASSERT_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    const Socket peer(ends[1]);
    const timeval patience{30, 0};
    setsockopt(peer.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    PausingEcho echo(thread_.loop(), seed);
    thread_.run([&] {
      transport_ = std::make_unique<Transport>(thread_.loop(), echo, Socket(ends[0]), nullptr, Transport::Options{});
      echo.transport = transport_.get();
      transport_->start();
    });
    std::string all;
    for (std::size_t i = 0; i < 2'000'000; ++i) all += static_cast<char>('a' + (i * seed / 7) % 26);
    std::thread sending([&] {
      EXPECT_TRUE(say(peer, all));
      shutdown(peer.fd(), SHUT_WR);
    });
    EXPECT_EQ(take(peer, all.size() + 1), all) << "seed " << seed;
    sending.join();
    thread_.run([&] {
      echo.stop();
      transport_.reset();
    });
  }
}

// In each callback the owner may close, finish, half-close, pause or destroy the transport.
class TransportCallbackTest : public TransportFixture, public testing::WithParamInterface<const char*> {
 protected:
  using Action = std::function<void()>;
  // Runs a connection through all of its events. `action` runs inside the callback `event`.
  void live(const std::string& event, const Action& action) {
    owner_.on(event, action);
    Socket peer = accept({.low_water = 10});
    (void)say(peer, "bytes");
    thread_.run([&] {
      if (transport_ == nullptr || transport_->closed()) return;
      transport_->out().assign(4 << 20, 'x');
      transport_->flush();
    });
    if (event == "<failed>") {
      peer = Socket();
    } else if (event == "<finished>") {
      thread_.run([&] { transport_->finish(); });
      (void)take(peer, 8 << 20);
      shutdown(peer.fd(), SHUT_WR);
    } else {
      shutdown(peer.fd(), SHUT_WR);
      (void)take(peer, 4 << 20);
    }
    if (event == GetParam()) {
      EXPECT_TRUE(owner_.wait_for_size(event.size()));
    }
    pass_turns();
  }
};

TEST_P(TransportCallbackTest, MayCloseIt) {
  live(GetParam(), [&] { transport_->close(); });
  EXPECT_TRUE(owner_.events().find(GetParam()) != std::string::npos || std::string(GetParam()) == "<received>");
  thread_.run([&] { EXPECT_TRUE(transport_->closed()); });
}

TEST_P(TransportCallbackTest, MayRetireIt) {
  live(GetParam(), [&] { retire(); });
  thread_.run([&] { EXPECT_EQ(transport_, nullptr); });
}

TEST_P(TransportCallbackTest, MayFinishHalfCloseAndWriteInIt) {
  live(GetParam(), [&] {
    transport_->half_close();
    transport_->out() += "more";
    transport_->flush();
    transport_->finish();
    transport_->resume();
    transport_->poll();
  });
}

INSTANTIATE_TEST_SUITE_P(Callbacks, TransportCallbackTest,
                         testing::Values("<opened>", "<received>", "<ended>", "<writable>", "<failed>", "<finished>"));

}  // namespace
}  // namespace weir::transport_test
