// Outgoing transports: names, addresses, timeouts, and TLS on both sides.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>
#include <string>

#include "weir/net/certificates_test.h"
#include "weir/net/transport.h"
#include "weir/net/transport_peer_test.h"

namespace weir::transport_open_test {
namespace {

using namespace std::chrono_literals;

class TransportOpenTest : public TransportFixture {};

TEST_F(TransportOpenTest, SendsWhatWasWrittenBeforeItIsOpen) {
  connect(here());
  write("before ");
  const Socket peer = take_connection();
  EXPECT_TRUE(owner_.wait_for("<opened>"));
  EXPECT_TRUE(on_loop([](Transport& transport) { return transport.is_open(); }));
  write("and after");
  EXPECT_EQ(take(peer, 16), "before and after");
  EXPECT_TRUE(say(peer, "reply"));
  EXPECT_TRUE(owner_.wait_for("<opened>reply"));
}

TEST_F(TransportOpenTest, DeliversTheLastBytesBeforeItReportsThePeersEnd) {
  connect(here());
  { EXPECT_TRUE(say(take_connection(), "bye")); }
  EXPECT_TRUE(owner_.wait_for("<opened>bye<ended>"));
}

TEST_F(TransportOpenTest, ReportsWhyItCannotConnect) {
  const Target gone = here();
  listener_ = Socket();
  connect(gone);
  EXPECT_EQ(owner_.wait_for_failure(),
            (Error{Fault::unavailable, "cannot connect to " + gone.print() + ": Connection refused"}));
}

TEST_F(TransportOpenTest, ConnectsToAUnixSocketOrReportsThatItIsMissing) {
  const std::string path = testing::TempDir() + "weir_transport_test_" + std::to_string(getpid());
  connect({{}, 0, path});
  EXPECT_EQ(owner_.wait_for_failure().detail, "cannot connect to unix:" + path + ": No such file or directory");
  listener_ = std::move(*listen_on({{}, 0, path}));
  connect({{}, 0, path});
  EXPECT_TRUE(owner_.wait_for("<failed><opened>"));
  unlink(path.c_str());
}

TEST_F(TransportOpenTest, TriesTheAddressesOfANameInTurn) {
  const std::uint16_t port = here().port;
  Resolver resolver([port](const Target&) -> Result<std::vector<Address>> {
    return std::vector<Address>{{"127.0.0.2", 1, {}}, {"not an address", 1, {}}, {"127.0.0.1", port, {}}};
  });
  connect({"somewhere", 7, {}}, {.resolver = &resolver});
  EXPECT_TRUE(owner_.wait_for("<opened>"));
  thread_.run([&] { transport_.reset(); });
}

TEST_F(TransportOpenTest, DialsOnlyAddressesThatAreAllowed) {
  const std::uint16_t port = here().port;
  Resolver resolver([port](const Target&) -> Result<std::vector<Address>> {
    return std::vector<Address>{{"127.0.0.2", port, {}}, {"127.0.0.1", port, {}}};
  });
  std::vector<std::string> asked;
  const auto only_first = [&](const Address& address) {
    asked.push_back(address.host);
    return address.host == "127.0.0.1";
  };
  connect({"somewhere", 7, {}}, {.resolver = &resolver, .may_dial = only_first});
  EXPECT_TRUE(owner_.wait_for("<opened>"));
  EXPECT_EQ(asked, (std::vector<std::string>{"127.0.0.2", "127.0.0.1"}));
  thread_.run([&] { transport_.reset(); });
}

TEST_F(TransportOpenTest, RefusesALiteralAddressThatIsNotAllowed) {
  connect(here(), {.may_dial = [](const Address&) { return false; }});
  EXPECT_EQ(owner_.wait_for_failure(),
            (Error{Fault::invalid, "cannot connect to " + here().print() + ": its address is not allowed"}));
}

TEST_F(TransportOpenTest, GivesUpWhenTheNameLookupTimesOut) {
  std::promise<void> gate;
  Resolver resolver([open = gate.get_future().share()](const Target&) -> Result<std::vector<Address>> {
    open.wait();
    return Error{Fault::unknown, "too late"};
  });
  connect({"somewhere", 7, {}}, {.open_timeout = 10ms, .resolver = &resolver});
  EXPECT_EQ(owner_.wait_for_failure(), (Error{Fault::timeout, "cannot connect to somewhere:7: name lookup timed out"}));
  gate.set_value();
  thread_.run([&] { transport_.reset(); });
}

TEST_F(TransportOpenTest, GivesUpOnAnAddressThatDoesNotAnswer) {
  // A listener with a full backlog drops new connections, like a host that does not exist.
  Socket full(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(listen(full.fd(), 0), 0);
  const Address address{"127.0.0.1", bound_address(full)->port, {}};
  std::vector<Socket> filling;
  for (int i = 0; i < 4; ++i) filling.push_back(std::move(*begin_connect(address)));
  connect({address.host, address.port, {}}, {.open_timeout = 50ms});
  EXPECT_EQ(owner_.wait_for_failure(),
            (Error{Fault::timeout, "cannot connect to " + address.print() + ": connect timed out"}));
}

TEST_F(TransportOpenTest, FailsForANameWithoutAResolver) {
  connect({"somewhere", 7, {}});
  EXPECT_EQ(owner_.wait_for_failure().fault, Fault::invalid);
}

TEST_F(TransportOpenTest, FinishBeforeItIsOpenOnlyReportsIt) {
  thread_.run([&] {
    transport_ = std::make_unique<Transport>(thread_.loop(), owner_, Transport::Options{});
    transport_->connect(here());
    transport_->finish();
    EXPECT_EQ(owner_.events(), "");
  });
  EXPECT_TRUE(owner_.wait_for("<finished>"));
}

class SecureTransportTest : public TransportFixture {
 protected:
  Transport::Options trusting(const Authority& authority) const {
    auto client = TlsClient::make({folder_.write("ca.pem", authority.cert()), {}, {"h2", "http/1.1"}});
    return {.tls = std::move(*client), .server_name = "weir.test"};
  }
  std::unique_ptr<TlsChannel> client_channel() const {
    auto client = std::move(*TlsClient::make({folder_.write("ca.pem", authority_.cert()), {}, {"http/1.1"}}));
    return std::move(*client->connect("weir.test"));
  }
  // Talks to the transport's end until `enough` bytes have arrived, the handshake is done, or the connection ends.
  static std::string talk(const Socket& peer, TlsChannel& channel, std::size_t enough) {
    std::string plain;
    std::string out;
    std::array<char, 65536> bytes;
    if (!channel.established()) {
      EXPECT_TRUE(channel.receive({}, plain, out));
      EXPECT_TRUE(say(peer, out));
      out.clear();
    }
    while ((plain.size() < enough || !channel.established()) && !channel.peer_closed()) {
      const ssize_t got = recv(peer.fd(), bytes.data(), bytes.size(), 0);
      if (got <= 0 || !channel.receive({bytes.data(), static_cast<std::size_t>(got)}, plain, out)) break;
      (void)say(peer, out);
      out.clear();
    }
    return plain;
  }
  static bool tell(const Socket& peer, TlsChannel& channel, std::string_view words) {
    std::string out;
    return channel.send(words, out) && say(peer, out);
  }
  static bool end(const Socket& peer, TlsChannel& channel) {
    std::string out;
    channel.close(out);
    return say(peer, out);
  }

  Authority authority_;
  CertificateFolder folder_;
  std::unique_ptr<TlsServer> server_ =
      std::move(*TlsServer::make({{folder_.write("server", authority_.issue("DNS:weir.test"))}, {"http/1.1"}, {}}));
};

TEST_F(SecureTransportTest, OutgoingCarriesBytesInsideTls) {
  connect(here(), trusting(authority_));
  write("before ");
  const Socket peer = take_connection();
  const auto server = server_->accept();
  EXPECT_EQ(talk(peer, *server, 7), "before ");
  EXPECT_TRUE(owner_.wait_for("<opened>"));
  EXPECT_EQ(on_loop([](Transport& transport) { return std::string(transport.application_protocol()); }), "http/1.1");
  write("and after");
  EXPECT_EQ(talk(peer, *server, 9), "and after");
  EXPECT_TRUE(tell(peer, *server, "reply"));
  EXPECT_TRUE(owner_.wait_for("<opened>reply"));
  on_loop([](Transport& transport) { transport.close(); });
  EXPECT_EQ(talk(peer, *server, 1), "");
  EXPECT_TRUE(server->peer_closed());
}

TEST_F(SecureTransportTest, AcceptedCarriesBytesInsideTls) {
  const Socket peer = accept({}, server_->accept());
  const auto client = client_channel();
  EXPECT_EQ(talk(peer, *client, 0), "");
  EXPECT_TRUE(tell(peer, *client, "question"));
  EXPECT_TRUE(owner_.wait_for("<opened>question"));
  const std::string much(3 << 20, 'x');
  write(much);
  EXPECT_GT(on_loop([](Transport& transport) { return transport.unsent(); }), 0u);
  EXPECT_EQ(talk(peer, *client, much.size()), much);
  EXPECT_TRUE(end(peer, *client));
  EXPECT_TRUE(owner_.wait_for_last("<ended>"));
  on_loop([](Transport& transport) {
    transport.out() += "last";
    transport.finish();
  });
  EXPECT_EQ(talk(peer, *client, 100), "last");
  EXPECT_TRUE(client->peer_closed());
  EXPECT_TRUE(owner_.wait_for_last("<finished>"));
}

TEST_F(SecureTransportTest, EncryptsPieceByPiece) {
  const Socket peer = accept({}, server_->accept());
  const auto client = client_channel();
  EXPECT_EQ(talk(peer, *client, 0), "");
  EXPECT_TRUE(owner_.wait_for("<opened>"));
  write(std::string(8 << 20, 'x'));
  // The cipher takes only what the kernel accepts, plus at most one piece of 64 KiB.
  const auto [taken, unsent] =
      on_loop([](Transport& transport) { return std::pair(transport.taken(), transport.unsent()); });
  EXPECT_LT(taken, 8u << 20);
  EXPECT_LE(unsent, (8u << 20) - taken + (66u << 10));
}

TEST_F(SecureTransportTest, CutWithoutCloseNotifyIsAFailure) {
  const Socket peer = accept({}, server_->accept());
  const auto client = client_channel();
  EXPECT_EQ(talk(peer, *client, 0), "");
  EXPECT_TRUE(tell(peer, *client, "half of it"));
  shutdown(peer.fd(), SHUT_WR);
  EXPECT_EQ(owner_.wait_for_failure(),
            (Error{Fault::unavailable, "the peer closed the connection without a TLS close_notify"}));
  EXPECT_EQ(owner_.events(), "<opened>half of it<failed>");
}

TEST_F(SecureTransportTest, EndAfterPauseComesWithResume) {
  const Socket peer = accept({}, server_->accept());
  const auto client = client_channel();
  EXPECT_EQ(talk(peer, *client, 0), "");
  EXPECT_TRUE(owner_.wait_for("<opened>"));
  owner_.on("<received>", [&] { transport_->pause(); });
  std::string out;
  EXPECT_TRUE(client->send("bytes", out));
  client->close(out);
  EXPECT_TRUE(say(peer, out));
  EXPECT_TRUE(owner_.wait_for("<opened>bytes"));
  pass_turns();
  EXPECT_EQ(owner_.events(), "<opened>bytes");
  on_loop([](Transport& transport) { transport.resume(); });
  EXPECT_TRUE(owner_.wait_for("<opened>bytes<ended>"));
}

TEST_F(SecureTransportTest, HalfCloseSendsCloseNotify) {
  const Socket peer = accept({}, server_->accept());
  const auto client = client_channel();
  EXPECT_EQ(talk(peer, *client, 0), "");
  on_loop([](Transport& transport) {
    transport.out() += "all";
    transport.half_close();
  });
  EXPECT_EQ(talk(peer, *client, 100), "all");
  EXPECT_TRUE(client->peer_closed());
}

TEST_F(SecureTransportTest, ReportsWhyItDoesNotTrustThePeer) {
  connect(here(), trusting(Authority()));
  const Socket peer = take_connection();
  const auto server = server_->accept();
  EXPECT_EQ(talk(peer, *server, 1), "");
  const Error why = owner_.wait_for_failure();
  EXPECT_EQ(why.fault, Fault::invalid);
  EXPECT_EQ(why.detail.find("cannot connect to " + here().print() + ": certificate rejected: "), 0u) << why.detail;
}

TEST_F(SecureTransportTest, GivesUpWhenTheTlsHandshakeTimesOut) {
  Transport::Options options = trusting(authority_);
  options.open_timeout = 50ms;
  connect(here(), options);
  const Socket peer = take_connection();
  EXPECT_EQ(owner_.wait_for_failure(),
            (Error{Fault::timeout, "cannot connect to " + here().print() + ": TLS handshake timed out"}));
}

TEST_F(SecureTransportTest, GivesUpOnAClientWhoseHandshakeTimesOut) {
  const Socket peer = accept({.open_timeout = 50ms}, server_->accept());
  EXPECT_TRUE(say(peer, "\x16\x03\x01"));
  EXPECT_EQ(owner_.wait_for_failure().fault, Fault::timeout);
  EXPECT_EQ(owner_.events(), "<failed>");
}

TEST_F(SecureTransportTest, ReportsThatThePeerDoesNotSpeakTls) {
  connect(here(), trusting(authority_));
  const Socket peer = take_connection();
  EXPECT_TRUE(say(peer, "-ERR what?\r\n"));
  EXPECT_EQ(owner_.wait_for_failure().detail,
            "cannot connect to " + here().print() + ": received data that is not TLS");
}

TEST_F(SecureTransportTest, TellsAClientWhyItsHandshakeFailsBeforeItReports) {
  const Socket peer = accept({}, server_->accept());
  const auto trusting = std::move(*TlsClient::make({folder_.write("ca.pem", authority_.cert()), {}, {"unheard-of"}}));
  const auto client = std::move(*trusting->connect("weir.test"));
  std::string plain;
  std::string out;
  EXPECT_TRUE(client->receive({}, plain, out));
  EXPECT_TRUE(say(peer, out + "and more that is not read"));
  const auto alert = client->receive(take(peer, 1000), plain, out);
  ASSERT_FALSE(alert);
  EXPECT_EQ(alert.error().detail, "TLS handshake failed: tlsv1 alert no application protocol");
  EXPECT_EQ(owner_.events(), "");
  shutdown(peer.fd(), SHUT_WR);
  EXPECT_EQ(owner_.wait_for_failure().fault, Fault::invalid);
}

}  // namespace
}  // namespace weir::transport_open_test
