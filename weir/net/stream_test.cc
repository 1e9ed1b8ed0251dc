#include "weir/net/stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "weir/net/certificates_test.h"
#include "weir/net/loop_thread_test.h"

namespace weir::stream_test {
namespace {

using namespace std::chrono_literals;

// Records the events of a stream, for another thread to wait on.
class RecordingOwner final : public Stream::Owner {
 public:
  void connected() override { add("<connected>"); }
  void received(std::string_view bytes) override {
    add(bytes);
    if (then_) then_();
  }
  void closed(const Error& why) override {
    const std::lock_guard lock(mutex_);
    why_ = why;
    closed_ = true;
    changed_.notify_all();
  }

  void then(std::function<void()> then) { then_ = std::move(then); }
  bool wait_for(std::string_view all) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 30s, [&] { return events_ == all; });
  }
  Error wait_for_end() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 30s, [&] { return closed_; }));
    return why_;
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return events_.size();
  }

 private:
  void add(std::string_view text) {
    const std::lock_guard lock(mutex_);
    events_ += text;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string events_;
  bool closed_ = false;
  Error why_{Fault::internal, {}};
  std::function<void()> then_;
};

class StreamTest : public testing::Test {
 protected:
  ~StreamTest() override {
    thread_.run([&] { stream_.reset(); });
  }

  void open(const Target& target, Stream::Options options = {}) {
    thread_.run([&] {
      stream_ = std::make_unique<Stream>(thread_.loop(), owner_, options);
      stream_->connect(target);
    });
  }
  Target here() const { return {"127.0.0.1", bound_address(listener_)->port, {}}; }
  bool write(std::string_view bytes) {
    return thread_.run([&] { return stream_->write(bytes); });
  }
  // Accepts the stream's connection. Blocks.
  Socket accept() const {
    const Socket& listener = listener_;
    fcntl(listener.fd(), F_SETFL, fcntl(listener.fd(), F_GETFL) & ~O_NONBLOCK);
    Socket peer(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    return peer;
  }
  static std::string take(const Socket& peer, std::size_t size) {
    std::string bytes(size, '\0');
    const ssize_t got = recv(peer.fd(), bytes.data(), size, MSG_WAITALL);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }

  Socket listener_ = std::move(*listen_on({"127.0.0.1", 0, {}}));
  RecordingOwner owner_;
  LoopThread thread_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(StreamTest, CarriesBytesBothWays) {
  open(here());
  EXPECT_TRUE(write("before "));
  const Socket peer = accept();
  EXPECT_TRUE(owner_.wait_for("<connected>"));
  EXPECT_TRUE(thread_.run([&] { return stream_->is_connected(); }));
  EXPECT_TRUE(write("and after"));
  EXPECT_EQ(take(peer, 16), "before and after");
  ASSERT_EQ(send(peer.fd(), "reply", 5, 0), 5);
  EXPECT_TRUE(owner_.wait_for("<connected>reply"));
}

TEST_F(StreamTest, DeliversTheLastBytesBeforeItReportsThatThePeerClosed) {
  open(here());
  {
    const Socket peer = accept();
    ASSERT_EQ(send(peer.fd(), "bye", 3, 0), 3);
  }
  EXPECT_EQ(owner_.wait_for_end(), (Error{Fault::unavailable, here().print() + " closed the connection"}));
  EXPECT_TRUE(owner_.wait_for("<connected>bye"));
  EXPECT_FALSE(write("too late"));
}

TEST_F(StreamTest, QueuesUpToItsLimitForAPeerThatDoesNotRead) {
  open(here(), {.unsent_bytes_max = 4 << 20});
  const Socket peer = accept();
  ASSERT_TRUE(owner_.wait_for("<connected>"));
  const std::string block(1 << 20, 'x');
  std::size_t written = 0;
  while (written < (64u << 20) && write(block)) written += block.size();
  EXPECT_LT(written, 64u << 20);
  EXPECT_LE(thread_.run([&] { return stream_->unsent_bytes(); }), 4u << 20);
  EXPECT_FALSE(write(block));
  std::size_t taken = 0;
  while (taken < written) taken += take(peer, std::min(block.size(), written - taken)).size();
  EXPECT_TRUE(write("and it goes on"));
  EXPECT_EQ(take(peer, 14), "and it goes on");
}

TEST_F(StreamTest, QueuesExactlyItsLimitBeforeItIsConnected) {
  thread_.run(
      [&] { stream_ = std::make_unique<Stream>(thread_.loop(), owner_, Stream::Options{.unsent_bytes_max = 10}); });
  EXPECT_FALSE(write("12345678901"));
  EXPECT_TRUE(write("1234567890"));
  EXPECT_FALSE(write("1"));
}

TEST_F(StreamTest, ReportsWhyItCannotConnect) {
  const Target gone = here();
  listener_ = Socket();
  open(gone);
  EXPECT_EQ(owner_.wait_for_end(),
            (Error{Fault::unavailable, "cannot connect to " + gone.print() + ": Connection refused"}));
}

TEST_F(StreamTest, ConnectsToAUnixSocketOrReportsThatItIsMissing) {
  const std::string path = testing::TempDir() + "weir_stream_test_" + std::to_string(getpid());
  open({{}, 0, path});
  EXPECT_EQ(owner_.wait_for_end().detail, "cannot connect to unix:" + path + ": No such file or directory");
  listener_ = std::move(*listen_on({{}, 0, path}));
  RecordingOwner owner;
  auto stream = thread_.run([&] {
    auto made = std::make_unique<Stream>(thread_.loop(), owner, Stream::Options{});
    made->connect({{}, 0, path});
    return made;
  });
  EXPECT_TRUE(owner.wait_for("<connected>"));
  thread_.run([&] { stream.reset(); });
  unlink(path.c_str());
}

TEST_F(StreamTest, TriesTheAddressesOfANameInTurn) {
  const std::uint16_t port = here().port;
  Resolver resolver([port](const Target&) -> Result<std::vector<Address>> {
    return std::vector<Address>{{"127.0.0.2", 1, {}}, {"not an address", 1, {}}, {"127.0.0.1", port, {}}};
  });
  open({"somewhere", 7, {}}, {.resolver = &resolver});
  EXPECT_TRUE(owner_.wait_for("<connected>"));
}

TEST_F(StreamTest, GivesUpWhenTheNameLookupTimesOut) {
  std::promise<void> gate;
  Resolver resolver([open = gate.get_future().share()](const Target&) -> Result<std::vector<Address>> {
    open.wait();
    return Error{Fault::unknown, "too late"};
  });
  open({"somewhere", 7, {}}, {.connect_timeout = 10ms, .resolver = &resolver});
  EXPECT_EQ(owner_.wait_for_end(), (Error{Fault::timeout, "cannot connect to somewhere:7: name lookup timed out"}));
  gate.set_value();
}

TEST_F(StreamTest, GivesUpOnAnAddressThatDoesNotAnswer) {
  // A listener with a full backlog drops new connections, like a host that does not exist.
  Socket full(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(listen(full.fd(), 0), 0);
  const Address address{"127.0.0.1", bound_address(full)->port, {}};
  std::vector<Socket> filling;
  for (int i = 0; i < 4; ++i) filling.push_back(std::move(*begin_connect(address)));
  open({address.host, address.port, {}}, {.connect_timeout = 50ms});
  EXPECT_EQ(owner_.wait_for_end(),
            (Error{Fault::timeout, "cannot connect to " + address.print() + ": connect timed out"}));
}

TEST_F(StreamTest, OwnerMayDestroyItInACallback) {
  owner_.then([&] { stream_.reset(); });
  open(here());
  const Socket peer = accept();
  ASSERT_EQ(send(peer.fd(), "x", 1, 0), 1);
  EXPECT_TRUE(owner_.wait_for("<connected>x"));
  EXPECT_EQ(take(peer, 1), "");
}

TEST_F(StreamTest, FailsForANameWithoutAResolver) {
  open({"somewhere", 7, {}});
  EXPECT_EQ(owner_.wait_for_end().fault, Fault::invalid);
}

TEST_F(StreamTest, CloseSendsWhatTheKernelAcceptsAndDoesNotCallTheOwner) {
  open(here());
  const Socket peer = accept();
  ASSERT_TRUE(owner_.wait_for("<connected>"));
  thread_.run([&] {
    stream_->write("last words");
    stream_->close();
  });
  EXPECT_EQ(take(peer, 100), "last words");
  EXPECT_EQ(owner_.size(), 11u);
}

// Accepts TLS streams. Blocks.
class SecureStreamTest : public StreamTest {
 protected:
  Stream::Options trusting(const Authority& authority) const {
    auto client = TlsClient::make({folder_.write("ca.pem", authority.cert()), {}, {}});
    return {.tls = std::move(*client), .server_name = "weir.test"};
  }
  std::unique_ptr<TlsChannel> channel() { return server_->accept(); }
  // Reads until `enough` bytes have arrived or the stream closes.
  static std::string read_decrypted(const Socket& peer, TlsChannel& channel, std::size_t enough) {
    std::string plain;
    std::string out;
    std::array<char, 65536> bytes;
    while (plain.size() < enough && !channel.peer_closed()) {
      const ssize_t got = recv(peer.fd(), bytes.data(), bytes.size(), 0);
      if (got <= 0 || !channel.receive({bytes.data(), static_cast<std::size_t>(got)}, plain, out)) break;
      EXPECT_EQ(send(peer.fd(), out.data(), out.size(), MSG_NOSIGNAL), static_cast<ssize_t>(out.size()));
      out.clear();
    }
    return plain;
  }

  Authority authority_;
  CertificateFolder folder_;
  std::unique_ptr<TlsServer> server_ =
      std::move(*TlsServer::make({{folder_.write("server", authority_.issue("DNS:weir.test"))}, {}, {}}));
};

TEST_F(SecureStreamTest, CarriesBytesInsideTls) {
  open(here(), trusting(authority_));
  EXPECT_TRUE(write("before "));
  const Socket peer = accept();
  const auto server = channel();
  EXPECT_EQ(read_decrypted(peer, *server, 7), "before ");
  EXPECT_TRUE(owner_.wait_for("<connected>"));
  EXPECT_TRUE(write("and after"));
  EXPECT_EQ(read_decrypted(peer, *server, 9), "and after");
  std::string out;
  EXPECT_TRUE(server->send("reply", out));
  ASSERT_EQ(send(peer.fd(), out.data(), out.size(), 0), static_cast<ssize_t>(out.size()));
  EXPECT_TRUE(owner_.wait_for("<connected>reply"));
  thread_.run([&] { stream_->close(); });
  EXPECT_EQ(read_decrypted(peer, *server, 1), "");
  EXPECT_TRUE(server->peer_closed());
}

TEST_F(SecureStreamTest, ReportsWhyItDoesNotTrustThePeer) {
  open(here(), trusting(Authority()));
  const Socket peer = accept();
  const auto server = channel();
  EXPECT_EQ(read_decrypted(peer, *server, 1), "");
  const Error why = owner_.wait_for_end();
  EXPECT_EQ(why.fault, Fault::invalid);
  EXPECT_EQ(why.detail.find("cannot connect to " + here().print() + ": certificate rejected: "), 0u) << why.detail;
}

TEST_F(SecureStreamTest, GivesUpWhenTheTlsHandshakeTimesOut) {
  Stream::Options options = trusting(authority_);
  options.connect_timeout = 50ms;
  open(here(), options);
  const Socket peer = accept();
  EXPECT_EQ(owner_.wait_for_end(),
            (Error{Fault::timeout, "cannot connect to " + here().print() + ": TLS handshake timed out"}));
}

TEST_F(SecureStreamTest, ReportsThatThePeerDoesNotSpeakTls) {
  open(here(), trusting(authority_));
  const Socket peer = accept();
  ASSERT_EQ(send(peer.fd(), "-ERR what?\r\n", 12, 0), 12);
  EXPECT_EQ(owner_.wait_for_end().detail, "cannot connect to " + here().print() + ": received data that is not TLS");
}

}  // namespace
}  // namespace weir::stream_test
