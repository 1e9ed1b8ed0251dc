// The commands that call a server, against one that answers by script: over TCP, a UNIX socket and TLS.
#include "weir/cli/remote.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>

#include "weir/cli/commands.h"
#include "weir/http/test_backend_test.h"
#include "weir/net/certificates_test.h"

namespace weir::remote_test {
namespace {

using namespace cli;

// What a command printed, read back from a file.
class Printed {
 public:
  Printed() : file_(tmpfile()), out(fileno(file_)) {}
  ~Printed() { fclose(file_); }
  std::string text() {
    out.flush();
    std::string all(64u << 10, '\0');
    const ssize_t size = pread(fileno(file_), all.data(), all.size(), 0);
    all.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return all;
  }

 private:
  FILE* file_;

 public:
  cli::Output out;
};

struct Ran {
  int exit;
  std::string out;
  std::string err;
};

class RemoteTest : public testing::Test {
 protected:
  void SetUp() override { start("127.0.0.1:0"); }
  void TearDown() override {
    loop.run([&] { backend.reset(); });
  }
  void start(const std::string& address, std::unique_ptr<TlsServer> tls = nullptr) {
    loop.run([&] {
      backend.reset();
      backend = std::make_unique<http::TestBackend>(loop.loop(), address);
      backend->tls = std::move(tls);
      backend->script = [this](http::TestBackend::Peer& peer, std::size_t, const std::string& text) {
        request = text;
        peer.send("HTTP/1.1 " + status + " X\r\nContent-Type: application/json\r\nContent-Length: " +
                  std::to_string(answer.size()) + "\r\n\r\n" + answer);
      };
    });
    url = "http://" + backend->target().print();
  }
  Ran run(const Command& command, const Arguments& given) {
    Arguments arguments = given;
    if (arguments["--output"].empty()) arguments.set("--output", "table");
    Printed out;
    Printed err;
    Console console{out.out, err.out};
    const Exit exit = command.run(arguments, console);
    return {exit, out.text(), err.text()};
  }
  Arguments check_arguments() const {
    Arguments arguments;
    arguments.set("LIMIT", "per-ip");
    arguments.set("ID", "192.0.2.1");
    arguments.set("--server", url);
    return arguments;
  }

  http::ManualLoop loop;
  std::unique_ptr<http::TestBackend> backend;
  std::string url;
  std::string status = "200";
  std::string answer =
      R"({"allowed":true,"limit":"per-ip","id":"192.0.2.1","burst":20,"remaining":19,"reset_after":0.05,)"
      R"("decisions":[{"limit":"per-ip","id":"192.0.2.1","allowed":true,"burst":20,"remaining":19,"retry_after":0,)"
      R"("reset_after":0.05,"shadow":false}]})";
  std::string request;
};

TEST_F(RemoteTest, CheckPrintsATableAndExitsWithZeroIfAllowed) {
  Arguments arguments = check_arguments();
  arguments.set("--cost", "3");
  arguments.set("--token", "secret");
  const Ran ran = run(check(), arguments);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "allowed\n"
            "LIMIT   ID         ALLOWED  BURST  REMAINING  RETRY_AFTER  RESET_AFTER\n"
            "per-ip  192.0.2.1  yes      20     19         0s           50ms\n");
  EXPECT_TRUE(request.starts_with("POST /v1/check HTTP/1.1\r\n")) << request;
  EXPECT_NE(request.find("Authorization: Bearer secret\r\n"), request.npos);
  EXPECT_NE(request.find(R"({"cost":3,"id":"192.0.2.1","limit":"per-ip"})"), request.npos) << request;
}

TEST_F(RemoteTest, CheckSaysWhatDecidedIfNotTheLimits) {
  answer = R"({"allowed":true,"limit":"per-ip","id":"192.0.2.1","degraded":true})";
  EXPECT_TRUE(run(check(), check_arguments())
                  .out.starts_with("allowed by the failure policy: the store is unavailable\nLIMIT "));
  status = "403";
  answer = R"({"allowed":false,"limit":"per-ip","id":"192.0.2.1","error":"access denied"})";
  EXPECT_TRUE(run(check(), check_arguments()).out.starts_with("denied by the deny list\nLIMIT "));
}

TEST_F(RemoteTest, CheckExitsWithThreeIfDenied) {
  status = "429";
  answer = R"({"allowed":false,"limit":"per-ip","id":"192.0.2.1","burst":20,"remaining":0,"retry_after":0.0043})";
  Arguments arguments = check_arguments();
  EXPECT_EQ(run(check(), arguments).exit, 3);
  arguments.set("--output", "json");
  EXPECT_EQ(run(check(), arguments).out, answer);
  arguments.set("--output", "csv");
  EXPECT_EQ(run(check(), arguments).out,
            "limit,id,allowed,burst,remaining,retry_after,reset_after,shadow\nper-ip,192.0.2.1,no,20,0,0.0043,,\n");
}

TEST_F(RemoteTest, AClientOnTheDenyListIsDenied) {
  status = "403";
  answer = R"({"allowed":false,"limit":"per-ip","id":"192.0.2.1","retry_after":-1,"error":"access denied"})";
  EXPECT_EQ(run(check(), check_arguments()).exit, 3);
  answer = R"({"error":"forbidden","message":"the call needs the write token"})";
  EXPECT_EQ(run(check(), check_arguments()).exit, 1);
}

TEST_F(RemoteTest, CheckSaysWhyTheServerRefuses) {
  status = "404";
  answer = R"({"error":"unknown_limit","message":"there is no limit \"per-ip\""})";
  const Ran ran = run(check(), check_arguments());
  EXPECT_EQ(ran.exit, 3);
  EXPECT_EQ(ran.err, "weir: there is no limit \"per-ip\" (404)\n");
}

TEST_F(RemoteTest, AnotherServerIsAFailureAndNotAMissingClient) {
  status = "404";
  Arguments arguments;
  arguments.set("--admin", url);
  for (const char* const content : {R"({"error":"not_found","message":"there is nothing at \"/ratelimit/stats\""})",
                                    R"({"detail":"not found"})", "<html>not found</html>"}) {
    answer = content;
    const Ran ran = run(stats(), arguments);
    EXPECT_EQ(ran.exit, 1) << content;
    EXPECT_EQ(ran.err,
              "weir: " + url + " is not the admin API of Weir (404); choose another with --admin or WEIR_ADMIN\n");
  }
}

TEST_F(RemoteTest, SaysWhatToDoWhenNoServerIsThere) {
  loop.run([&] { backend.reset(); });
  const Ran ran = run(check(), check_arguments());
  EXPECT_EQ(ran.exit, 1);
  EXPECT_NE(ran.err.find("no answer from the decision API at " + url), ran.err.npos) << ran.err;
  EXPECT_NE(ran.err.find("is the server running? Choose another with --server or WEIR_SERVER"), ran.err.npos);
}

TEST_F(RemoteTest, SaysWhatToDoAboutTheToken) {
  status = "401";
  EXPECT_NE(run(check(), check_arguments()).err.find("asks for a token; use --token"), std::string::npos);
  Arguments arguments = check_arguments();
  arguments.set("--token", "wrong");
  const Ran ran = run(check(), arguments);
  EXPECT_EQ(ran.exit, 1);
  EXPECT_NE(ran.err.find("refused the token"), ran.err.npos);
}

TEST_F(RemoteTest, TakesOneToken) {
  Arguments arguments = check_arguments();
  arguments.set("--token", "one");
  arguments.set("--token-file", "/nonexistent");
  const Ran ran = run(check(), arguments);
  EXPECT_EQ(ran.exit, 2);
  EXPECT_EQ(ran.err, "weir: give either --token or --token-file\n");
}

TEST_F(RemoteTest, RefusesBadOptions) {
  const std::pair<std::string_view, std::string> kBad[] = {
      {"--server", "ftp://x"}, {"--server", "http://"},          {"--timeout", "soon"}, {"--token", "a b"},
      {"--cert", "/tmp/x"},    {"--token-file", "/nonexistent"}, {"--cost", "many"}};
  for (const auto& [option, value] : kBad) {
    Arguments arguments = check_arguments();
    arguments.set(option, value);
    const Ran ran = run(check(), arguments);
    EXPECT_EQ(ran.exit, 2) << option << value;
    EXPECT_NE(ran.err, "");
  }
}

TEST_F(RemoteTest, ThrottleSendsItsNumbers) {
  Arguments arguments;
  arguments.set("KEY", "user:42");
  arguments.set("--rate", "200");
  arguments.set("--burst", "50");
  arguments.set("--server", url);
  EXPECT_EQ(run(throttle(), arguments).exit, 0);
  EXPECT_NE(request.find(R"({"burst":50,"count":200,"key":"user:42","period":"1s"})"), request.npos) << request;
  arguments.set("--rate", "fast");
  EXPECT_EQ(run(throttle(), arguments).exit, 2);
}

TEST_F(RemoteTest, StatsPrintsTotalsAndLimits) {
  answer = R"({"uptime_seconds":3661,"policy_version":3,"store":{"kind":"memory","up":true},"totals":{"requests":10,)"
           R"("allowed":7,"denied":2,"shadow_denied":0,"allow_listed":1,"deny_listed":0},"limits":[{"limit":"per-ip",)"
           R"("allowed":7,"denied":2,"shadow_denied":0,"active":4}],)"
           R"("latency_seconds":{"p50":0.001,"p99":0.002,"p999":0.003}})";
  Arguments arguments;
  arguments.set("--admin", url);
  const Ran ran = run(stats(), arguments);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "up 1h1m1s, policy version 3, store memory\n"
            "10 requests: 7 allowed (70.0 %), 2 denied (20.0 %), 1 on the allow list (10.0 %)\n"
            "latency: p50 1ms, p99 2ms, p99.9 3ms\n"
            "LIMIT   ALLOWED  DENIED  SHADOW_DENIED  ACTIVE\n"
            "per-ip        7       2              0       4\n");
  EXPECT_TRUE(request.starts_with("GET /ratelimit/stats HTTP/1.1\r\n"));
}

TEST_F(RemoteTest, CallsAUnixSocket) {
  std::string folder = testing::TempDir() + "weirXXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  start("unix:" + folder + "/s");
  Arguments arguments = check_arguments();
  arguments.set("--server", "unix:" + folder + "/s");
  EXPECT_EQ(run(check(), arguments).exit, 0);
  loop.run([&] { backend.reset(); });
  unlink((folder + "/s").c_str());
  rmdir(folder.c_str());
}

TEST_F(RemoteTest, ChecksTheServersCertificate) {
  Authority authority;
  CertificateFolder files;
  TlsServer::Options options;
  options.certificates = {files.write("server", authority.issue("IP:127.0.0.1"))};
  options.protocols = {"http/1.1"};
  start("127.0.0.1:0", std::move(*TlsServer::make(std::move(options))));
  Arguments arguments = check_arguments();
  arguments.set("--server", "https://" + backend->target().print());
  const Ran refused = run(check(), arguments);
  EXPECT_EQ(refused.exit, 1);
  arguments.set("--ca-file", files.write("ca.pem", authority.cert()));
  EXPECT_EQ(run(check(), arguments).exit, 0);
}

}  // namespace
}  // namespace weir::remote_test
