#include "weir/server/proxy_intake.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/clock.h"

namespace weir::proxy_intake_test {
namespace {

struct Fixture {
  ManualClock clock;
  std::unique_ptr<Loop> loop = std::move(*Loop::make(clock));
  std::vector<Accepted> accepted;
  int refused = 0;
  bool trusts = true;
  ProxyIntake intake{*loop,
                     {[this](std::string_view) { return trusts; },
                      [this](Accepted one) { accepted.push_back(std::move(one)); }, [this] { ++refused; }}};

  // The client's end of a new connection from 10.0.0.1.
  Socket connect() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    intake.add({Socket(ends[1]), "10.0.0.1"});
    return Socket(ends[0]);
  }
  void turn() {
    loop->post([this] { loop->stop(); });
    loop->run();
  }
};

TEST(ProxyIntake, PassesTheConnectionOnWithTheClientOfTheHeaderAndEveryByteBehindIt) {
  Fixture fixture;
  const Socket client = fixture.connect();
  const std::string header = "PROXY TCP4 203.0.113.9 10.0.0.1 1 2\r\n";
  for (const char byte : header) {
    EXPECT_TRUE(fixture.accepted.empty());
    EXPECT_EQ(client.send({&byte, 1}), 1);
    if (byte == '\n') client.send("GET /");
    fixture.turn();
  }
  ASSERT_EQ(fixture.accepted.size(), 1u);
  EXPECT_EQ(fixture.accepted[0].peer, "203.0.113.9");
  char rest[64];
  EXPECT_EQ(fixture.accepted[0].socket.receive(rest), 5);
  EXPECT_EQ(fixture.intake.pending(), 0u);
}

TEST(ProxyIntake, KeepsTheSocketsAddressWhereTheHeaderNamesNone) {
  Fixture fixture;
  const Socket client = fixture.connect();
  client.send("PROXY UNKNOWN\r\n");
  fixture.turn();
  ASSERT_EQ(fixture.accepted.size(), 1u);
  EXPECT_EQ(fixture.accepted[0].peer, "10.0.0.1");
}

TEST(ProxyIntake, ClosesWhatIsNotTrustedNotAHeaderTooLateOrGone) {
  Fixture fixture;
  fixture.trusts = false;
  const Socket stranger = fixture.connect();
  EXPECT_EQ(fixture.refused, 1);
  fixture.trusts = true;
  const Socket other = fixture.connect();
  other.send("GET / HTTP/1.1\r\n");
  fixture.turn();
  EXPECT_EQ(fixture.refused, 2);
  { const Socket gone = fixture.connect(); }
  fixture.turn();
  EXPECT_EQ(fixture.refused, 3);
  const Socket slow = fixture.connect();
  slow.send("PROXY ");
  fixture.turn();
  fixture.clock.advance(bounds::proxy_header_time_max);
  fixture.turn();
  fixture.turn();
  EXPECT_EQ(fixture.refused, 4);
  char byte[1];
  EXPECT_EQ(slow.receive(byte), 0);
  EXPECT_TRUE(fixture.accepted.empty());
}

TEST(ProxyIntake, IsBounded) {
  Fixture fixture;
  std::vector<Socket> clients;
  for (std::size_t i = 0; i < bounds::proxy_headers_pending_max; ++i) clients.push_back(fixture.connect());
  EXPECT_EQ(fixture.refused, 0);
  clients.push_back(fixture.connect());
  EXPECT_EQ(fixture.refused, 1);
  EXPECT_EQ(fixture.intake.pending(), bounds::proxy_headers_pending_max);
}

}  // namespace
}  // namespace weir::proxy_intake_test
