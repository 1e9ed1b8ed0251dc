#include "weir/net/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "weir/base/bounds.h"
#include "weir/net/certificates_test.h"

namespace weir::tls_test {
namespace {

using namespace std::chrono_literals;

class TlsTest : public testing::Test {
 protected:
  // Makes a server with one certificate per name and a client that trusts their authority.
  std::unique_ptr<TlsServer> serve(const std::vector<std::string>& names, std::vector<std::string> protocols = {}) {
    TlsServer::Options options;
    for (const std::string& one : names)
      options.certificates.push_back(
          folder_.write("server" + std::to_string(options.certificates.size()), authority_.issue(one)));
    options.protocols = std::move(protocols);
    options.log = [this](LogLevel, std::string_view sentence) { log_.emplace_back(sentence); };
    return std::move(*TlsServer::make(std::move(options)));
  }
  std::unique_ptr<TlsClient> trusting(std::vector<std::string> protocols = {}) {
    return std::move(*TlsClient::make({folder_.write("ca.pem", authority_.cert()), {}, std::move(protocols)}));
  }
  std::string refusal(const CertificateFiles& files) {
    const auto made = TlsServer::make({{files}, {}, {}});
    return made ? "" : made.error().detail;
  }

  Authority authority_;
  CertificateFolder folder_;
  std::vector<std::string> log_;
};

// Two channels and the bytes in transit between them.
struct Conversation {
  std::unique_ptr<TlsChannel> client;
  std::unique_ptr<TlsChannel> server;
  std::string to_server;
  std::string to_client;
  std::string server_read;
  std::string client_read;

  // Exchanges bytes in pieces of at most `piece` bytes until both sides are idle. Returns the first Error.
  Result<void> talk(std::size_t piece = 1 << 20) {
    if (!client->established()) {
      if (auto begun = client->receive({}, client_read, to_server); !begun) return begun;
    }
    while (!to_server.empty() || !to_client.empty()) {
      if (auto taken = deliver(*server, to_server, server_read, to_client, piece); !taken) return taken;
      if (auto taken = deliver(*client, to_client, client_read, to_server, piece); !taken) return taken;
    }
    return {};
  }
  static Result<void> deliver(TlsChannel& to, std::string& bytes, std::string& read, std::string& back,
                              std::size_t piece) {
    for (std::string_view rest = bytes; !rest.empty(); rest.remove_prefix(std::min(piece, rest.size()))) {
      if (auto taken = to.receive(rest.substr(0, piece), read, back); !taken) return taken;
    }
    bytes.clear();
    return {};
  }
};

TEST_F(TlsTest, CarriesBytesBothWaysInPiecesOfOneByte) {
  const auto server = serve({"DNS:weir.test"});
  Conversation both{std::move(*trusting()->connect("weir.test")), server->accept(), {}, {}, {}, {}};
  ASSERT_TRUE(both.talk(1));
  EXPECT_TRUE(both.client->established());
  EXPECT_TRUE(both.server->established());
  const std::string large(100'000, 'x');
  ASSERT_TRUE(both.client->send("hello", both.to_server));
  ASSERT_TRUE(both.server->send(large, both.to_client));
  ASSERT_TRUE(both.talk(1));
  EXPECT_EQ(both.server_read, "hello");
  EXPECT_EQ(both.client_read, large);
}

TEST_F(TlsTest, IgnoresBytesAfterCloseNotify) {
  const auto server = serve({"DNS:weir.test"});
  Conversation both{std::move(*trusting()->connect("weir.test")), server->accept(), {}, {}, {}, {}};
  ASSERT_TRUE(both.talk());
  ASSERT_TRUE(both.client->send("last", both.to_server));
  both.client->close(both.to_server);
  both.to_server += "anything";
  EXPECT_FALSE(both.client->send("too late", both.to_server));
  ASSERT_TRUE(both.talk());
  EXPECT_EQ(both.server_read, "last");
  EXPECT_TRUE(both.server->peer_closed());
  // The other direction is still open.
  ASSERT_TRUE(both.server->send("answer", both.to_client));
  both.server->close(both.to_client);
  ASSERT_TRUE(both.talk());
  EXPECT_EQ(both.client_read, "answer");
  EXPECT_TRUE(both.client->peer_closed());
}

// RFC 9113 §9.2.2: over TLS 1.2, HTTP/2 needs an ephemeral key exchange and an AEAD cipher.
TEST_F(TlsTest, NegotiatesHttp2OnlyWithASuitableCipher) {
  const auto server = serve({"DNS:weir.test"}, {"h2", "http/1.1"});
  const auto negotiated = [&](int version, const char* ciphers) {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> settings(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    SSL_CTX_set_max_proto_version(settings.get(), version);
    EXPECT_EQ(SSL_CTX_set_cipher_list(settings.get(), ciphers), 1);
    constexpr std::string_view kOffered = "\2h2\10http/1.1";
    SSL_CTX_set_alpn_protos(settings.get(), reinterpret_cast<const unsigned char*>(kOffered.data()), kOffered.size());
    SSL* const ssl = SSL_new(settings.get());
    SSL_set_connect_state(ssl);
    Conversation both{std::make_unique<TlsChannel>(ssl, nullptr), server->accept(), {}, {}, {}, {}};
    EXPECT_TRUE(both.talk());
    return std::string(both.server->application_protocol());
  };
  EXPECT_EQ(negotiated(TLS1_3_VERSION, "ECDHE-ECDSA-AES128-SHA256"), "h2");
  EXPECT_EQ(negotiated(TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256"), "h2");
  EXPECT_EQ(negotiated(TLS1_2_VERSION, "ECDHE-ECDSA-CHACHA20-POLY1305"), "h2");
  EXPECT_EQ(negotiated(TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA256"), "http/1.1");
  EXPECT_EQ(negotiated(TLS1_2_VERSION, "ECDHE-ECDSA-AES256-SHA"), "http/1.1");
}

TEST_F(TlsTest, SelectsTheCertificateByServerName) {
  const auto server = serve({"DNS:first.test", "DNS:*.b.test", "DNS:exact.b.test", "IP:127.0.0.1"});
  const auto client = trusting();
  const auto accepts = [&](const std::string& name) {
    Conversation both{std::move(*client->connect(name)), server->accept(), {}, {}, {}, {}};
    return both.talk().has_value();
  };
  EXPECT_TRUE(accepts("first.test"));
  EXPECT_TRUE(accepts("FIRST.test"));
  EXPECT_TRUE(accepts("any.b.test"));
  EXPECT_TRUE(accepts("exact.b.test"));
  EXPECT_FALSE(accepts("two.labels.b.test"));
  EXPECT_FALSE(accepts("b.test"));
  // An IP address is not sent as a server name: the first certificate is used and does not match it.
  EXPECT_FALSE(accepts("127.0.0.1"));
}

TEST_F(TlsTest, VerifiesAnAddressLikeAName) {
  const auto server = serve({"DNS:weir.test,IP:127.0.0.1,IP:::1"});
  const auto client = trusting();
  for (const auto& [name, accepted] : {std::pair("127.0.0.1", true), {"::1", true}, {"127.0.0.2", false}}) {
    Conversation both{std::move(*client->connect(name)), server->accept(), {}, {}, {}, {}};
    EXPECT_EQ(both.talk().has_value(), accepted) << name;
  }
}

TEST_F(TlsTest, ClientReportsWhyItRejectsACertificate) {
  const auto refused = [&](TlsClient& client, const std::string& names, int from_days, int to_days) {
    TlsServer::Options options{{folder_.write("other", authority_.issue(names, from_days, to_days))}, {}, {}};
    const auto server = std::move(*TlsServer::make(std::move(options)));
    Conversation both{std::move(*client.connect("weir.test")), server->accept(), {}, {}, {}, {}};
    const auto outcome = both.talk();
    return outcome ? "" : outcome.error().detail;
  };
  const auto client = trusting();
  EXPECT_EQ(refused(*client, "DNS:weir.test", 0, 1), "");
  EXPECT_EQ(refused(*client, "DNS:other.test", 0, 1), "certificate rejected: hostname mismatch");
  EXPECT_EQ(refused(*client, "DNS:weir.test", -2, -1), "certificate rejected: certificate has expired");
  EXPECT_EQ(refused(*client, "DNS:weir.test", 1, 2), "certificate rejected: certificate is not yet valid");
  const auto stranger = std::move(*TlsClient::make({folder_.write("stranger.pem", Authority().cert()), {}, {}}));
  EXPECT_THAT(refused(*stranger, "DNS:weir.test", 0, 1), testing::StartsWith("certificate rejected: "));
  const auto anybody = std::move(*TlsClient::make({}));
  EXPECT_THAT(refused(*anybody, "DNS:weir.test", 0, 1), testing::StartsWith("certificate rejected: "));
}

TEST_F(TlsTest, NegotiatesAProtocolOrRefuses) {
  const auto server = serve({"DNS:weir.test", "DNS:second.test"}, {"http/1.1"});
  for (const char* name : {"weir.test", "second.test"}) {
    const auto client = trusting({"h2", "http/1.1"});
    Conversation both{std::move(*client->connect(name)), server->accept(), {}, {}, {}, {}};
    ASSERT_TRUE(both.talk());
    EXPECT_EQ(both.server->application_protocol(), "http/1.1");
    EXPECT_EQ(both.client->application_protocol(), "http/1.1");
  }
  Conversation silent{std::move(*trusting()->connect("weir.test")), server->accept(), {}, {}, {}, {}};
  EXPECT_TRUE(silent.talk());
  EXPECT_EQ(silent.server->application_protocol(), "");
  Conversation strange{std::move(*trusting({"h2"})->connect("weir.test")), server->accept(), {}, {}, {}, {}};
  EXPECT_EQ(strange.talk().error().detail, "TLS handshake failed: no application protocol");
}

TEST_F(TlsTest, PrefersHttp2) {
  const auto server = serve({"DNS:weir.test"}, {"h2", "http/1.1"});
  const auto negotiated = [&](std::vector<std::string> offered) {
    Conversation both{std::move(*trusting(std::move(offered))->connect("weir.test")), server->accept(), {}, {}, {}, {}};
    EXPECT_TRUE(both.talk());
    return std::string(both.server->application_protocol());
  };
  EXPECT_EQ(negotiated({"http/1.1", "h2"}), "h2");
  EXPECT_EQ(negotiated({"http/1.1"}), "http/1.1");
  EXPECT_EQ(negotiated({}), "");
}

TEST_F(TlsTest, RefusesWhatIsNotTls) {
  const auto server = serve({"DNS:weir.test"});
  const auto refused = [&](std::string_view bytes) {
    const auto channel = server->accept();
    std::string plain;
    std::string out;
    const auto outcome = channel->receive(bytes, plain, out);
    EXPECT_EQ(plain, "");
    EXPECT_FALSE(channel->established());
    if (outcome) return std::string("waits");
    EXPECT_FALSE(channel->receive("more", plain, out));
    channel->close(out);
    return outcome.error().detail;
  };
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "received plain HTTP instead of TLS");
  EXPECT_EQ(refused("*1\r\n$4\r\nPING\r\n"), "received data that is not TLS");
  EXPECT_EQ(refused(std::string(100, '\0')), "received data that is not TLS");
  EXPECT_EQ(refused("\x16\x03\x01"), "waits");
  EXPECT_THAT(refused(std::string("\x16\x03\x01\x00\x04zzzz", 9)), testing::StartsWith("TLS handshake failed: "));
}

TEST_F(TlsTest, FailsOnADamagedRecord) {
  const auto server = serve({"DNS:weir.test"});
  Conversation both{std::move(*trusting()->connect("weir.test")), server->accept(), {}, {}, {}, {}};
  ASSERT_TRUE(both.talk());
  ASSERT_TRUE(both.client->send("hello", both.to_server));
  both.to_server.back() = static_cast<char>(both.to_server.back() ^ 1);
  EXPECT_THAT(both.talk().error().detail, testing::StartsWith("TLS failed: "));
  EXPECT_EQ(both.server_read, "");
  EXPECT_FALSE(both.to_client.empty());  // the alert
  EXPECT_FALSE(both.server->send("more", both.to_client));
}

TEST_F(TlsTest, NamesTheFileThatCannotBeUsed) {
  const CertificateFiles good = folder_.write("good", authority_.issue("DNS:weir.test"));
  const CertificateFiles other = folder_.write("other", authority_.issue("DNS:weir.test"));
  const std::string empty = folder_.write("empty.pem", std::string());
  EXPECT_EQ(refusal(good), "");
  EXPECT_EQ(refusal({folder_.path("none"), good.key}), folder_.path("none") + ": No such file or directory");
  EXPECT_EQ(refusal({good.cert, folder_.path("none")}), folder_.path("none") + ": No such file or directory");
  EXPECT_EQ(refusal({folder_.path(""), good.key}), folder_.path("") + ": is not a regular file");
  EXPECT_EQ(refusal({empty, good.key}), empty + ": contains no PEM certificate");
  EXPECT_EQ(refusal({good.cert, empty}), empty + ": contains no PEM private key");
  EXPECT_EQ(refusal({good.key, good.key}), good.key + ": contains no PEM certificate");
  EXPECT_EQ(refusal({good.cert, other.key}), other.key + ": is not the private key of the certificate in " + good.cert);
  const std::string cut = folder_.write("cut.pem", std::string("-----BEGIN CERTIFICATE-----\nMIIB\n"));
  EXPECT_THAT(refusal({cut, good.key}), testing::StartsWith(cut + ": contains a malformed certificate: "));
  const std::string large = folder_.write("large.pem", std::string(bounds::pem_bytes_max + 1, '\n'));
  EXPECT_EQ(refusal({large, good.key}), large + ": is larger than 1048576 bytes");
  const std::string full = folder_.write("full.pem", std::string(bounds::pem_bytes_max, '\n'));
  EXPECT_EQ(refusal({full, good.key}), full + ": contains no PEM certificate");
}

TEST_F(TlsTest, LimitsTheNumberOfCertificates) {
  const CertificateFiles good = folder_.write("good", authority_.issue("DNS:weir.test"));
  std::vector<CertificateFiles> many(bounds::listener_certificates_max, good);
  EXPECT_TRUE(TlsServer::make({many, {}, {}}));
  many.push_back(good);
  EXPECT_EQ(TlsServer::make({many, {}, {}}).error().detail, "tls has more than 256 certificates on one listener");
  EXPECT_EQ(TlsServer::make({}).error().detail, "tls needs a certificate");
}

TEST_F(TlsTest, ServesAnExpiredCertificateAndLogsAWarning) {
  const CertificateFiles files = folder_.write("old", authority_.issue("DNS:weir.test", -3, -1));
  std::vector<std::string> log;
  EXPECT_TRUE(TlsServer::make({{files}, {}, [&](LogLevel, std::string_view sentence) { log.emplace_back(sentence); }}));
  EXPECT_THAT(log, testing::ElementsAre(files.cert + ": the certificate has expired"));
}

// Returns whether a client that trusts only `authority` accepts the server.
bool trusts(const Authority& authority, const CertificateFolder& folder, TlsServer& server, Time now) {
  const auto client = std::move(*TlsClient::make({folder.write("trusted.pem", authority.cert()), {}, {}}));
  server.reload_if_changed(now);
  Conversation both{std::move(*client->connect("weir.test")), server.accept(), {}, {}, {}, {}};
  return both.talk().has_value();
}

TEST_F(TlsTest, NewFilesApplyToNewConnections) {
  const auto server = serve({"DNS:weir.test"});
  Conversation before{std::move(*trusting()->connect("weir.test")), server->accept(), {}, {}, {}, {}};
  Conversation under_way{std::move(*trusting()->connect("weir.test")), server->accept(), {}, {}, {}, {}};
  ASSERT_TRUE(before.talk());
  const Authority next;
  const CertificateFiles files = folder_.write("server0", next.issue("DNS:weir.test"));
  EXPECT_TRUE(trusts(next, folder_, *server, Time{1s}));
  EXPECT_FALSE(trusts(authority_, folder_, *server, Time{2s}));
  EXPECT_THAT(log_, testing::ElementsAre("TLS certificate reloaded: file=" + files.cert));
  // Existing connections keep the certificate they started with.
  EXPECT_TRUE(under_way.talk());
  ASSERT_TRUE(before.client->send("still here", before.to_server));
  ASSERT_TRUE(before.talk());
  EXPECT_EQ(before.server_read, "still here");
}

TEST_F(TlsTest, KeepsThePreviousCertificateAndLogsOnceWhenTheNewPairIsBroken) {
  const auto server = serve({"DNS:weir.test"});
  const Authority next;
  const Authority::Pem fresh = next.issue("DNS:weir.test");
  const std::string cert = folder_.write("server0.pem", fresh.cert);
  EXPECT_TRUE(trusts(authority_, folder_, *server, Time{1s}));
  EXPECT_TRUE(trusts(authority_, folder_, *server, Time{2s}));
  const std::string warning = "TLS certificate not reloaded, keeping the previous one: " + folder_.path("server0.key") +
                              ": is not the private key of the certificate in " + cert;
  EXPECT_THAT(log_, testing::ElementsAre(warning));
  EXPECT_FALSE(server->reload());
  // Once the matching key is written, the pair loads.
  folder_.write("server0.key", fresh.key);
  EXPECT_TRUE(trusts(next, folder_, *server, Time{3s}));
  std::filesystem::remove(cert);
  EXPECT_TRUE(trusts(next, folder_, *server, Time{4s}));
  EXPECT_EQ(log_.back(),
            "TLS certificate not reloaded, keeping the previous one: " + cert + ": No such file or directory");
  EXPECT_EQ(log_.size(), 3u);
}

TEST_F(TlsTest, NoticesALinkThatPointsSomewhereElse) {
  const CertificateFiles old = folder_.write("old", authority_.issue("DNS:weir.test"));
  const Authority next;
  const CertificateFiles fresh = folder_.write("fresh", next.issue("DNS:weir.test"));
  const CertificateFiles links{folder_.path("link.pem"), folder_.path("link.key")};
  const auto point_to = [&](const CertificateFiles& files) {
    for (const auto& [link, file] : {std::pair(links.cert, files.cert), {links.key, files.key}}) {
      std::filesystem::remove(link);
      std::filesystem::create_symlink(file, link);
    }
  };
  point_to(old);
  const auto server = std::move(*TlsServer::make({{links}, {}, {}}));
  EXPECT_TRUE(trusts(authority_, folder_, *server, Time{1s}));
  point_to(fresh);
  EXPECT_TRUE(trusts(next, folder_, *server, Time{2s}));
}

TEST_F(TlsTest, ChecksTheFilesOnlyAFewTimesASecond) {
  const auto server = serve({"DNS:weir.test"});
  EXPECT_TRUE(trusts(authority_, folder_, *server, Time{1s}));
  const Authority next;
  folder_.write("server0", next.issue("DNS:weir.test"));
  EXPECT_TRUE(trusts(authority_, folder_, *server, Time{1s}));
  EXPECT_TRUE(trusts(next, folder_, *server, Time{2s}));
}

TEST_F(TlsTest, RefusesAPipeInPlaceOfACertificate) {
  const auto server = serve({"DNS:weir.test"});
  const std::string pipe = folder_.path("server0.pem");
  std::filesystem::remove(pipe);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(trusts(authority_, folder_, *server, Time{1s})) << "keeps the previous certificate";
  EXPECT_EQ(log_.back(), "TLS certificate not reloaded, keeping the previous one: " + pipe + ": is not a regular file");
  EXPECT_EQ(server->reload().error().detail, pipe + ": is not a regular file");
}

// Returns how a server that requests a client certificate answers a client that presents `own` (none if empty).
std::string admission(TlsServer& server, const std::string& trusted, const CertificateFiles& own) {
  const auto client = std::move(*TlsClient::make({trusted, own, {}}));
  Conversation both{std::move(*client->connect("weir.test")), server.accept(), {}, {}, {}, {}};
  const Result<void> talked = both.talk();
  if (!talked) return talked.error().detail;
  return both.server->established() ? "in" : "?";
}

TEST_F(TlsTest, ClientNeedsACertificateFromTheListenersAuthority) {
  const CertificateFiles files = folder_.write("server", authority_.issue("DNS:weir.test"));
  const CertificateFiles sni = folder_.write("sni", authority_.issue("DNS:*.test"));
  const std::string trusted = folder_.write("ca.pem", authority_.cert());
  const Authority clients;
  const Authority strangers;
  const CertificateFiles good = folder_.write("good", clients.issue("DNS:client.test"));
  const CertificateFiles bad = folder_.write("bad", strangers.issue("DNS:client.test"));
  TlsServer::Options options{{sni, files}, {}, {}};
  options.client_ca = folder_.write("clients.pem", clients.cert());
  const auto strict = std::move(*TlsServer::make(options));
  EXPECT_EQ(admission(*strict, trusted, good), "in");
  EXPECT_EQ(admission(*strict, trusted, {}), "TLS handshake failed: peer did not return a certificate");
  EXPECT_NE(admission(*strict, trusted, bad), "in");
  options.require_client = false;
  const auto lenient = std::move(*TlsServer::make(options));
  EXPECT_EQ(admission(*lenient, trusted, good), "in");
  EXPECT_EQ(admission(*lenient, trusted, {}), "in");
  EXPECT_NE(admission(*lenient, trusted, bad), "in");
  // A new authority applies to new connections, like a new certificate.
  folder_.write("clients.pem", strangers.cert());
  strict->reload_if_changed(Time{1s});
  EXPECT_EQ(admission(*strict, trusted, bad), "in");
  EXPECT_NE(admission(*strict, trusted, good), "in");
  options.client_ca = folder_.path("none.pem");
  EXPECT_EQ(TlsServer::make(options).error().detail, folder_.path("none.pem") + ": No such file or directory");
}

TEST_F(TlsTest, ClientLoadsItsCertificateOrReportsAnError) {
  const CertificateFiles own = folder_.write("own", authority_.issue("DNS:client.test"));
  EXPECT_TRUE(TlsClient::make({{}, own, {}}));
  EXPECT_EQ(TlsClient::make({{}, {own.cert, {}}, {}}).error().detail,
            "a client certificate needs both cert_file and key_file");
  EXPECT_EQ(TlsClient::make({folder_.path("none"), {}, {}}).error().detail,
            folder_.path("none") + ": No such file or directory");
  EXPECT_EQ(trusting()->connect("").error().detail, "TLS needs the server name that the peer's certificate must match");
}

}  // namespace
}  // namespace weir::tls_test
