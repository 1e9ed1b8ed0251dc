#include "weir/http/client_pool.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/client_parts_test.h"
#include "weir/http/test_backend_test.h"
#include "weir/net/certificates_test.h"

namespace weir::client_pool_test {
namespace {

using namespace http;

struct PoolCall {
  TellingOwner owner;
  Call call;
};

// A pool and a backend on one loop. Members are touched on the loop's thread only.
class ClientPoolTest : public testing::Test {
 protected:
  void SetUp() override {
    loop.run([&] {
      backend = std::make_unique<TestBackend>(loop.loop());
      make_pool({});
    });
  }
  void TearDown() override {
    loop.run([&] {
      pool.reset();
      calls.clear();
      backend.reset();
    });
  }
  void make_pool(const ClientPool::Options& bounds) {
    pool.reset();
    pool = std::make_unique<ClientPool>(loop.loop(), resolver, bounds);
  }
  Origin origin() const { return {backend->target(), version, tls, server_name, false}; }

  // On the loop's thread.
  PoolCall& begin(std::string_view method = "GET", BodyPart first = {{}, true, {}}) {
    calls.push_back(std::make_unique<PoolCall>());
    CallHead head;
    head.method = method;
    head.authority = "test";
    calls.back()->call = pool->call(origin(), head, first, calls.back()->owner, options);
    return *calls.back();
  }
  PoolCall& start() {
    return loop.run([&]() -> PoolCall& { return begin(); });
  }
  // Waits for its end and returns what was told.
  std::string finish(PoolCall& call) {
    EXPECT_TRUE(loop.until([&] { return call.owner.ends == 1; }));
    return loop.run([&] { return call.owner.take(); });
  }
  std::string ask() { return finish(start()); }
  ClientPool::Counts counts() {
    return loop.run([&] { return pool->counts(); });
  }
  std::size_t accepted() {
    return loop.run([&] { return backend->accepted; });
  }
  std::size_t requests() {
    return loop.run([&] { return backend->requests; });
  }

  ManualLoop loop;
  Resolver resolver;
  std::unique_ptr<TestBackend> backend;
  std::unique_ptr<ClientPool> pool;
  std::vector<std::unique_ptr<PoolCall>> calls;
  HttpVersion version = HttpVersion::http1;
  std::shared_ptr<const TlsClient> tls;
  std::string server_name;
  CallOptions options;
};

constexpr std::string_view kOk = "head 200 Content-Length=2\nlast ok\n";
constexpr std::string_view kOk2 = "head 200 content-length=0\nlast \n";

TEST_F(ClientPoolTest, UsesOneConnectionForOneCallAfterTheOther) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask(), kOk);
  EXPECT_EQ(accepted(), 1u);
  EXPECT_EQ(requests(), 5u);
  EXPECT_EQ(counts().connections, 1u);
  EXPECT_EQ(counts().calls, 0u);
}

TEST_F(ClientPoolTest, TakesTheMostRecentlyUsedConnection) {
  std::vector<TestBackend::Peer*> asked;
  loop.run([&] {
    backend->script = [&](TestBackend::Peer& peer, std::size_t, const std::string&) { asked.push_back(&peer); };
  });
  PoolCall& first = start();
  PoolCall& second = start();
  ASSERT_TRUE(loop.until([&] { return asked.size() == 2; }));
  loop.run([&] { asked[1]->ok(); });
  finish(asked[1]->number == 1 ? second : first);
  loop.run([&] { asked[0]->ok(); });
  ASSERT_TRUE(loop.until([&] { return calls[0]->owner.ends + calls[1]->owner.ends == 2; }));
  start();
  ASSERT_TRUE(loop.until([&] { return asked.size() == 3; }));
  EXPECT_EQ(asked[2], asked[0]);
  loop.run([&] { asked[2]->ok(); });
  finish(*calls.back());
}

TEST_F(ClientPoolTest, OpensNoMoreConnectionsThanAllowed) {
  loop.run([&] {
    ClientPool::Options few;
    few.connections_max = 2;
    make_pool(few);
    for (int i = 0; i < 7; ++i) begin();
  });
  for (int i = 0; i < 7; ++i) EXPECT_EQ(finish(*calls[static_cast<std::size_t>(i)]), kOk);
  EXPECT_EQ(accepted(), 2u);
  EXPECT_EQ(requests(), 7u);
}

TEST_F(ClientPoolTest, FailsCallsBeyondTheQueue) {
  loop.run([&] {
    backend->script = [](auto&&...) {};
    ClientPool::Options few;
    few.connections_max = 1;
    few.waiting_max = 2;
    make_pool(few);
    begin();
  });
  ASSERT_TRUE(loop.until([&] { return backend->requests == 1; }));
  loop.run([&] {
    for (int i = 0; i < 3; ++i) begin();
    EXPECT_EQ(calls.back()->owner.ends, 0);  // not inside call()
  });
  const std::string record = finish(*calls[3]);
  EXPECT_TRUE(record.starts_with("failed overloaded unsent: too many calls wait")) << record;
  EXPECT_EQ(counts().calls, 3u);
}

TEST_F(ClientPoolTest, FailsACallThatWaitsTooLongForAConnection) {
  loop.run([&] {
    backend->script = [](auto&&...) {};
    ClientPool::Options one;
    one.connections_max = 1;
    make_pool(one);
    begin();
  });
  ASSERT_TRUE(loop.until([&] { return backend->requests == 1; }));
  PoolCall& waits = start();
  loop.advance(options.connect_timeout);
  const std::string record = finish(waits);
  EXPECT_TRUE(record.starts_with("failed overloaded unsent: all connections")) << record;
  EXPECT_EQ(loop.run([&] { return calls[0]->owner.ends; }), 0);
}

TEST_F(ClientPoolTest, FailsWhenNoServerListens) {
  const Target gone = loop.run([&] { return TestBackend(loop.loop()).target(); });
  loop.run([&] {
    calls.push_back(std::make_unique<PoolCall>());
    calls[0]->call = pool->call({gone}, {}, {{}, true, {}}, calls[0]->owner, {});
  });
  const std::string record = finish(*calls[0]);
  EXPECT_TRUE(record.starts_with("failed unavailable unsent: ")) << record;
  EXPECT_TRUE(loop.until([&] { return pool->counts().connections == 0; }));
}

TEST_F(ClientPoolTest, FailsWhenTheNameDoesNotExist) {
  Resolver none([](const Target&) -> Result<std::vector<Address>> { return Error{Fault::unknown, "no such host"}; });
  loop.run([&] {
    pool = std::make_unique<ClientPool>(loop.loop(), none, ClientPool::Options{});
    calls.push_back(std::make_unique<PoolCall>());
    calls[0]->call = pool->call({{"no.test", 80, ""}}, {}, {{}, true, {}}, calls[0]->owner, {});
  });
  EXPECT_TRUE(finish(*calls[0]).starts_with("failed unknown unsent: "));
  loop.run([&] { pool.reset(); });
}

TEST_F(ClientPoolTest, FailsWhenNoResponseComesInTime) {
  loop.run([&] { backend->script = [](auto&&...) {}; });
  PoolCall& call = start();
  ASSERT_TRUE(loop.until([&] { return backend->requests == 1; }));
  loop.advance(options.response_timeout - std::chrono::milliseconds{1});
  EXPECT_EQ(loop.run([&] { return call.owner.ends; }), 0);
  loop.advance(std::chrono::seconds{1});
  EXPECT_EQ(finish(call), "failed timeout sent: no response within 60000 ms\n");
  EXPECT_TRUE(loop.until([&] { return backend->open() == 0; }));
}

TEST_F(ClientPoolTest, FailsAtTheDeadline) {
  options.deadline = loop.run([&] { return loop.loop().now().time; }) + std::chrono::milliseconds{20};
  loop.run([&] { backend->script = [](auto&&...) {}; });
  PoolCall& call = start();
  ASSERT_TRUE(loop.until([&] { return backend->requests == 1; }));
  loop.advance(std::chrono::milliseconds{20});
  EXPECT_TRUE(finish(call).starts_with("failed timeout sent: the call took longer"));
}

TEST_F(ClientPoolTest, FailsWhenAResponseStops) {
  loop.run([&] {
    backend->script = [](TestBackend::Peer& peer, auto&&...) {
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab");
    };
  });
  PoolCall& call = start();
  ASSERT_TRUE(loop.until([&] { return call.owner.heads == 1; }));
  loop.advance(options.idle_timeout + std::chrono::seconds{5});
  EXPECT_EQ(finish(call), "head 200 Content-Length=9\nbody ab\nfailed timeout sent begun: no byte for 300000 ms\n");
}

TEST_F(ClientPoolTest, DoesNotUseAConnectionThatTheServerHasClosed) {
  EXPECT_EQ(ask(), kOk);
  loop.run([&] { backend->peers[0]->transport.close(); });
  EXPECT_TRUE(loop.until([&] { return pool->counts().connections == 0; }));
  EXPECT_EQ(ask(), kOk);
  EXPECT_EQ(accepted(), 2u);
}

// The end is in the kernel, but the loop has not reported it yet. Only a connection that was busy within the last 10 ms
// is used without asking the kernel.
TEST_F(ClientPoolTest, DoesNotUseAConnectionThatTheServerClosesInTheSameTurn) {
  EXPECT_EQ(ask(), kOk);
  loop.advance(std::chrono::milliseconds{10});
  PoolCall& call = loop.run([&]() -> PoolCall& {
    backend->peers[0]->transport.close();
    return begin();
  });
  EXPECT_EQ(finish(call), kOk);
  EXPECT_EQ(requests(), 2u);
  EXPECT_EQ(counts().retries, 0u);
}

TEST_F(ClientPoolTest, NeverSendsARequestAgainThatWasSent) {
  loop.run([&] { backend->script = [](TestBackend::Peer& peer, auto&&...) { peer.transport.close(); }; });
  const std::string record = ask();
  EXPECT_TRUE(record.starts_with("failed unavailable sent: ")) << record;
  EXPECT_EQ(requests(), 1u);
  EXPECT_EQ(counts().retries, 0u);
}

TEST_F(ClientPoolTest, NeverSendsARequestAgainOnAUsedConnectionEither) {
  EXPECT_EQ(ask(), kOk);
  loop.run([&] { backend->script = [](TestBackend::Peer& peer, auto&&...) { peer.transport.close(); }; });
  EXPECT_TRUE(ask().starts_with("failed unavailable sent: "));
  EXPECT_EQ(requests(), 2u);
}

TEST_F(ClientPoolTest, ClosesIdleConnectionsInTime) {
  EXPECT_EQ(ask(), kOk);
  loop.advance(std::chrono::seconds{54});
  EXPECT_EQ(counts().connections, 1u);
  loop.advance(std::chrono::seconds{2});
  EXPECT_TRUE(loop.until([&] { return pool->counts().connections == 0 && backend->open() == 0; }));
}

TEST_F(ClientPoolTest, ClosesAnIdleConnectionBeforeTheServerDoes) {
  loop.run([&] {
    backend->script = [](TestBackend::Peer& peer, auto&&...) { peer.ok("ok", "Keep-Alive: timeout=5\r\n"); };
  });
  ask();
  loop.advance(std::chrono::milliseconds{3900});
  ask();
  EXPECT_EQ(accepted(), 1u);
  loop.advance(std::chrono::milliseconds{4000});
  ask();
  EXPECT_EQ(accepted(), 2u);
}

TEST_F(ClientPoolTest, KeepsOnlySoManyIdleConnections) {
  loop.run([&] {
    ClientPool::Options few;
    few.idle_max = 3;
    make_pool(few);
    for (int i = 0; i < 8; ++i) begin();
  });
  for (const auto& call : calls) finish(*call);
  EXPECT_TRUE(loop.until([&] { return pool->counts().connections == 3; }));
  EXPECT_EQ(counts().idle, 3u);
}

TEST_F(ClientPoolTest, ClosesTheConnectionOfACanceledCall) {
  loop.run([&] { backend->script = [](auto&&...) {}; });
  PoolCall& call = start();
  ASSERT_TRUE(loop.until([&] { return backend->requests == 1; }));
  loop.run([&] { call.call.cancel(); });
  EXPECT_TRUE(loop.until([&] { return backend->open() == 0 && pool->counts().connections == 0; }));
  EXPECT_EQ(loop.run([&] { return call.owner.ends; }), 0);
}

TEST_F(ClientPoolTest, LetsAWaitingCallBeCanceled) {
  loop.run([&] {
    backend->script = [](auto&&...) {};
    ClientPool::Options one;
    one.connections_max = 1;
    make_pool(one);
    begin();
    begin();
    begin();
    calls[1]->call.cancel();
  });
  ASSERT_TRUE(loop.until([&] { return backend->requests == 1; }));
  EXPECT_EQ(counts().calls, 2u);
  loop.run([&] { backend->peers[0]->ok(); });
  finish(*calls[0]);
  ASSERT_TRUE(loop.until([&] { return backend->requests == 2; }));
  EXPECT_EQ(loop.run([&] { return calls[1]->owner.ends; }), 0);
}

TEST_F(ClientPoolTest, CancelsEverythingWhenItIsDestroyed) {
  loop.run([&] {
    backend->script = [](auto&&...) {};
    begin();
    begin();
  });
  ASSERT_TRUE(loop.until([&] { return backend->requests == 2; }));
  loop.run([&] {
    begin();
    pool.reset();
    for (const auto& call : calls) EXPECT_FALSE(call->call);
  });
  EXPECT_TRUE(loop.until([&] { return backend->open() == 0; }));
  for (const auto& call : calls) EXPECT_EQ(call->owner.ends, 0);
}

TEST_F(ClientPoolTest, StreamsALargeUploadWithinTheWindow) {
  std::size_t received = 0;
  loop.run([&] {
    backend->script = [&](TestBackend::Peer& peer, std::size_t, const std::string& request) {
      received = request.size() - request.find("\r\n\r\n") - 4;
      peer.ok();
    };
  });
  struct Uploader final : TellingOwner {
    Call* call = nullptr;
    std::size_t left = 0;
    std::size_t most = 0;
    void drained(std::size_t count) override {
      TellingOwner::drained(count);
      send();
    }
    void send() {
      while (left > 0 && call->room() > 0) {
        const std::string part(std::min(left, call->room()), 'x');
        left -= part.size();
        call->write({part, left == 0, {}});
        most = std::max(most, bounds::http_window_bytes - call->room());
      }
    }
  } owner;
  Call call;
  loop.run([&] {
    CallHead head;
    head.method = "POST";
    head.authority = "test";
    head.length = 100'000;  // the peer's transport keeps 128 KiB that the script has not taken
    owner.call = &call;
    owner.left = 100'000;
    call = pool->call(origin(), head, {}, owner, {});
    owner.send();
  });
  ASSERT_TRUE(loop.until([&] { return owner.ends == 1; }));
  EXPECT_EQ(received, 100'000u);
  EXPECT_EQ(owner.drained_bytes, 100'000u);
  EXPECT_LE(owner.most, bounds::http_window_bytes);
}

// Walk-through: the server answers 413 and closes while the request is still being sent.
TEST_F(ClientPoolTest, DeliversAResponseThatEndsTheUpload) {
  loop.run([&] {
    backend->answers_early = true;
    backend->script = [](TestBackend::Peer& peer, auto&&...) {
      peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
      peer.transport.close();  // with bytes of the request unread: a reset follows
    };
  });
  struct Uploader final : TellingOwner {
    Call* call = nullptr;
    void drained(std::size_t) override {
      if (*call) call->write({std::string(call->room(), 'x'), false, {}});
    }
  } owner;
  Call call;
  loop.run([&] {
    owner.call = &call;
    CallHead head;
    head.method = "POST";
    head.authority = "test";
    head.length = 1u << 30;
    call = pool->call(origin(), head, {"x", false, {}}, owner, {});
  });
  ASSERT_TRUE(loop.until([&] { return owner.ends == 1; }));
  EXPECT_EQ(owner.take(), "head 413 Content-Length=2 Connection=close\nlast no\n");
}

TEST_F(ClientPoolTest, TalksOverAUnixSocket) {
  std::string folder = testing::TempDir() + "weirXXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/s";
  loop.run([&] { backend = std::make_unique<TestBackend>(loop.loop(), "unix:" + path); });
  EXPECT_EQ(ask(), kOk);
  unlink(path.c_str());
  rmdir(folder.c_str());
}

TEST_F(ClientPoolTest, CarriesManyCallsOnOneHttp2Connection) {
  version = HttpVersion::http2;
  loop.run([&] {
    backend->speaks_http2 = true;
    for (int i = 0; i < 50; ++i) begin("POST", {"body", true, {}});
  });
  for (const auto& call : calls) EXPECT_EQ(finish(*call), kOk2);
  EXPECT_EQ(accepted(), 1u);
  EXPECT_EQ(requests(), 50u);
}

TEST_F(ClientPoolTest, OpensAnotherHttp2ConnectionWhenTheStreamsAreUsedUp) {
  version = HttpVersion::http2;
  std::vector<std::pair<TestBackend::Peer*, std::int32_t>> asked;
  loop.run([&] {
    backend->speaks_http2 = true;
    backend->script2 = [&](TestBackend::Peer& peer, std::size_t, std::int32_t stream) {
      asked.emplace_back(&peer, stream);
    };
    for (std::size_t i = 0; i < bounds::http2_streams_max + 10; ++i) begin();
  });
  ASSERT_TRUE(loop.until([&] { return asked.size() == bounds::http2_streams_max + 10; }));
  EXPECT_EQ(accepted(), 2u);
  loop.run([&] {
    for (auto& [peer, stream] : asked) peer->respond(stream);
    for (auto& peer : backend->peers) peer->fill();
  });
  for (const auto& call : calls) EXPECT_EQ(finish(*call), kOk2);
}

TEST_F(ClientPoolTest, RetriesARefusedStreamOnceOnANewConnection) {
  version = HttpVersion::http2;
  loop.run([&] {
    backend->speaks_http2 = true;
    backend->script2 = [](TestBackend::Peer& peer, std::size_t number, std::int32_t stream) {
      if (number == 0) {
        peer.http2->reset(stream, Http2Code::refused_stream);
      } else {
        peer.respond(stream);
      }
    };
  });
  PoolCall& call = loop.run([&]() -> PoolCall& { return begin("POST", {"body", true, {}}); });
  EXPECT_EQ(finish(call), kOk2);
  EXPECT_EQ(requests(), 2u);
  EXPECT_EQ(accepted(), 2u);
  EXPECT_EQ(counts().retries, 1u);
  EXPECT_EQ(loop.run([&] { return call.owner.drained_bytes; }), 4u);
}

TEST_F(ClientPoolTest, GivesUpWhenTheStreamIsRefusedAgain) {
  version = HttpVersion::http2;
  loop.run([&] {
    backend->speaks_http2 = true;
    backend->script2 = [](TestBackend::Peer& peer, std::size_t, std::int32_t stream) {
      peer.http2->reset(stream, Http2Code::refused_stream);
    };
  });
  EXPECT_EQ(ask(), "failed unavailable unsent: the server refused the stream\n");
  EXPECT_EQ(requests(), 2u);
}

TEST_F(ClientPoolTest, LeavesAnHttp2ConnectionThatGoesAway) {
  version = HttpVersion::http2;
  loop.run([&] { backend->speaks_http2 = true; });
  EXPECT_EQ(ask(), kOk2);
  loop.run([&] {
    backend->peers[0]->http2->go_away();
    backend->peers[0]->fill();
  });
  EXPECT_TRUE(loop.until([&] { return pool->counts().connections == 0; }));
  EXPECT_EQ(ask(), kOk2);
  EXPECT_EQ(accepted(), 2u);
}

TEST_F(ClientPoolTest, FailsAnHttp2ServerThatDoesNotAnswerAPing) {
  version = HttpVersion::http2;
  loop.run([&] {
    backend->speaks_http2 = true;
    backend->script2 = [](TestBackend::Peer& peer, auto&&...) { peer.transport.pause(); };
  });
  options.response_timeout = std::chrono::hours{1};
  PoolCall& call = start();
  ASSERT_TRUE(loop.until([&] { return backend->requests == 1; }));
  for (int i = 0; i < 12; ++i) loop.advance(std::chrono::seconds{5});
  EXPECT_EQ(finish(call), "failed timeout sent: the server does not answer a PING\n");
}

TEST_F(ClientPoolTest, NeverSharesConnectionsThatMayDialAnyAddress) {
  EXPECT_EQ(ask(), kOk);
  PoolCall call;
  loop.run([&] {
    Origin guarded = origin();
    guarded.public_only = true;
    CallOptions checked;
    checked.may_dial = [](const Address& address) { return !address.is_loopback(); };
    call.call = pool->call(guarded, {}, {{}, true, {}}, call.owner, checked);
  });
  const std::string record = finish(call);
  EXPECT_TRUE(record.starts_with("failed invalid unsent: ")) << record;
  EXPECT_EQ(accepted(), 1u);
}

TEST_F(ClientPoolTest, NegotiatesTheVersionOverTls) {
  Authority authority;
  const Authority::Pem pem = authority.issue("DNS:backend.test");
  CertificateFolder files;
  const CertificateFiles own = files.write("server", pem);
  const std::string ca = files.write("ca.pem", authority.cert());
  for (const std::string offered : {"h2", "http/1.1"}) {
    TlsServer::Options server;
    server.certificates = {own};
    server.protocols = {offered};
    TlsClient::Options client;
    client.ca_file = ca;
    client.protocols = {"h2", "http/1.1"};
    tls = std::move(*TlsClient::make(client));
    server_name = "backend.test";
    version = HttpVersion::negotiate;
    loop.run([&] {
      backend = std::make_unique<TestBackend>(loop.loop());
      backend->tls = std::move(*TlsServer::make(std::move(server)));
    });
    EXPECT_EQ(ask(), offered == "h2" ? kOk2 : kOk);
    EXPECT_EQ(ask(), offered == "h2" ? kOk2 : kOk);
    EXPECT_EQ(accepted(), 1u);
  }
  version = HttpVersion::http2;  // the server has none
  EXPECT_TRUE(ask().starts_with("failed "));
}

}  // namespace
}  // namespace weir::client_pool_test
