// The commands that change something, against a server that answers by script.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/cli/commands.h"
#include "weir/http/test_backend_test.h"

namespace weir::operate_test {
namespace {

using namespace cli;

class OperateTest : public testing::Test {
 protected:
  void SetUp() override {
    loop_.run([&] {
      backend_ = std::make_unique<http::TestBackend>(loop_.loop(), "127.0.0.1:0");
      backend_->script = [this](http::TestBackend::Peer& peer, std::size_t number, const std::string& text) {
        requests_.push_back(text);
        const auto& [status, content] = answers_[std::min(number, answers_.size() - 1)];
        peer.send("HTTP/1.1 " + status + " X\r\nContent-Type: application/json\r\nContent-Length: " +
                  std::to_string(content.size()) + "\r\n\r\n" + content);
      };
    });
    arguments_.set("--admin", "http://" + backend_->target().print());
    arguments_.set("--output", "table");
  }
  void TearDown() override {
    loop_.run([&] { backend_.reset(); });
    fclose(out_file_);
    fclose(err_file_);
  }
  int run(const Command& command) {
    Output out(fileno(out_file_));
    Output err(fileno(err_file_));
    Console console{out, err};
    const int exit = command.run(arguments_, console);
    out.flush();
    err.flush();
    return exit;
  }
  static std::string text_of(FILE* file) {
    std::string all(64u << 10, '\0');
    const ssize_t size = pread(fileno(file), all.data(), all.size(), 0);
    all.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return all;
  }
  std::string out() const { return text_of(out_file_); }
  std::string err() const { return text_of(err_file_); }
  // The request line and the content of a request.
  std::string request(std::size_t number) const {
    const std::string& text = requests_.at(number);
    return text.substr(0, text.find(" HTTP/1.1")) + " " + text.substr(text.find("\r\n\r\n") + 4);
  }

  http::ManualLoop loop_;
  std::unique_ptr<http::TestBackend> backend_;
  std::vector<std::pair<std::string, std::string>> answers_{{"200", "{}"}};
  std::vector<std::string> requests_;
  Arguments arguments_;
  FILE* out_file_ = tmpfile();
  FILE* err_file_ = tmpfile();
};

TEST_F(OperateTest, ResetSendsTheClientInTheContent) {
  answers_ = {{"200", R"({"reset":2})"}};
  arguments_.set("--ip", "192.168.1.1");
  EXPECT_EQ(run(reset()), 0) << err();
  EXPECT_EQ(request(0), R"(POST /ratelimit/reset {"id":"ip:192.168.1.1"})");
  EXPECT_EQ(out(), "2 buckets reset\n");
}

TEST_F(OperateTest, ResetOfAllNeedsYesWhereNobodyCanBeAsked) {
  arguments_.set("--all", "yes");
  // The test's own standard input is not a terminal.
  const int saved = dup(STDIN_FILENO);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  EXPECT_EQ(run(reset()), 2);
  dup2(saved, STDIN_FILENO);
  close(saved);
  close(null);
  EXPECT_TRUE(requests_.empty());
  EXPECT_EQ(err(), "weir: reset --all resets every bucket; confirm it with --yes\n");
}

TEST_F(OperateTest, ResetOfAllWithYesResets) {
  answers_ = {{"200", R"({"limits":[{"active":3}]})"}, {"200", R"({"reset":1234,"unblocked":true})"}};
  arguments_.set("--all", "yes");
  arguments_.set("--yes", "yes");
  arguments_.set("--block", "yes");
  EXPECT_EQ(run(reset()), 0) << err();
  EXPECT_EQ(request(1), R"(POST /ratelimit/reset {"id":"all","confirm":"all","block":true})");
  EXPECT_EQ(out(), "1,234 buckets reset; automatic block lifted\n");
}

TEST_F(OperateTest, ClientsAreNamedInOneWayOnly) {
  const std::vector<std::vector<std::pair<std::string_view, std::string>>> bad{
      {},
      {{"--ip", "1.2.3.4"}, {"--apikey", "k"}},
      {{"--limit", "orders"}},
      {{"--ip", "1.2.3.4"}, {"--limit", "orders"}, {"--id", "7"}},
      {{"--ip", "1.2.3.4"}, {"--all", "yes"}}};
  const Arguments plain = arguments_;
  for (const auto& given : bad) {
    arguments_ = plain;
    for (const auto& [name, value] : given) arguments_.set(name, value);
    EXPECT_EQ(run(reset()), 2);
    if (given == bad.back()) continue;  // adjust knows no --all
    arguments_.set("--rate", "5");
    EXPECT_EQ(run(adjust()), 2);
  }
}

TEST_F(OperateTest, AdjustByAddressAdjustsEveryLimitKeyedByIp) {
  answers_ = {
      {"200", R"({"settings":[{"path":"limits.per-ip.key","value":"ip"},{"path":"limits.per-ip.rate","value":"1/s"},)"
              R"({"path":"limits.daily.key","value":"[ip]"},{"path":"limits.daily.quota","value":"5/day"},)"
              R"({"path":"limits.slow.key","value":"ip"},{"path":"limits.slow.count","value":"5"},)"
              R"({"path":"limits.k.key","value":"apikey"},{"path":"limits.k.rate","value":"5/s"}]})"},
      {"200", R"({"limit":"per-ip","id":"192.168.1.1","burst":50,"count":200,"period":"1s","expires":"x"})"},
      {"200", R"({"limit":"slow","id":"192.168.1.1","burst":50,"count":200,"period":"1s","expires":"y"})"}};
  arguments_.set("--ip", "192.168.1.1");
  arguments_.set("--rate", "200");
  arguments_.set("--burst", "50");
  EXPECT_EQ(run(adjust()), 0) << err();
  ASSERT_EQ(requests_.size(), 3u) << "a limit that has only a quota has nothing to adjust";
  EXPECT_EQ(request(1), R"(PUT /ratelimit/adjust {"limit":"per-ip","id":"192.168.1.1","count":200,"period":"1s",)"
                        R"("burst":50,"for":"1h"})");
  EXPECT_EQ(out(),
            "LIMIT   ID           RATE   BURST  EXPIRES\n"
            "per-ip  192.168.1.1  200/s     50  x\n"
            "slow    192.168.1.1  200/s     50  y\n");
}

TEST_F(OperateTest, AdjustRefusesNumbersThatAreNone) {
  arguments_.set("--limit", "orders");
  arguments_.set("--id", "7");
  EXPECT_EQ(run(adjust()), 2) << "no numbers";
  const Arguments plain = arguments_;
  for (const auto& [name, value] : {std::pair<std::string_view, std::string>{"--rate", "fast"},
                                    {"--burst", "0"},
                                    {"--burst", "many"},
                                    {"--for", "soon"}}) {
    arguments_ = plain;
    if (name == "--for") arguments_.set("--rate", "5");
    arguments_.set(name, value);
    EXPECT_EQ(run(adjust()), 2) << name << value;
  }
  EXPECT_TRUE(requests_.empty());
}

TEST_F(OperateTest, AccessSendsTheEntry) {
  answers_ = {{"200", R"({"entries":[{"list":"deny","ip":"203.0.113.0/24","reason":"abuse","expires":null,)"
                      R"("added_by":"127.0.0.1"}]})"}};
  arguments_.set("LIST", "deny");
  arguments_.set("--ip", "203.0.113.0/24");
  arguments_.set("--reason", "abuse");
  arguments_.set("--for", "24h");
  EXPECT_EQ(run(access_add()), 0) << err();
  EXPECT_EQ(request(0), R"(POST /ratelimit/access/deny {"ip":"203.0.113.0/24","reason":"abuse","for":"24h"})");
  EXPECT_EQ(out(),
            "LIST  IP              REASON  EXPIRES  ADDED_BY\n"
            "deny  203.0.113.0/24  abuse   never    127.0.0.1\n");
}

TEST_F(OperateTest, AccessRemoveLooksInBothListsAndExitsWithThreeIfThereIsNone) {
  answers_ = {{"404", R"({"error":"not_found","message":"no such entry"})"}};
  arguments_.set("--apikey", "key-1");
  EXPECT_EQ(run(access_remove()), 3);
  EXPECT_EQ(request(0), R"(DELETE /ratelimit/access/allow {"apikey":"key-1"})");
  EXPECT_EQ(request(1), R"(DELETE /ratelimit/access/deny {"apikey":"key-1"})");
  EXPECT_EQ(err(), "weir: no such entry (404)\n");
}

TEST_F(OperateTest, ExternalForgetSaysWhatTheServerLacks) {
  arguments_.set("LIMIT", "per-tenant");
  arguments_.set("ID", "acme/7");
  answers_ = {{"404", R"({"error":"unknown_limit","message":"there is no limit \"per-tenant\""})"},
              {"400", R"({"error":"bad_value","message":"limit \"per-tenant\" has no external service"})"},
              {"200", R"({"forgotten":true})"}};
  EXPECT_EQ(run(external_forget()), 3);
  EXPECT_EQ(request(0), "DELETE /ratelimit/external/per-tenant/acme%2f7 ");
  EXPECT_NE(err().find("there is no limit \"per-tenant\" (404)"), std::string::npos) << err();
  EXPECT_EQ(run(external_forget()), 2);
  EXPECT_NE(err().find("has no external service (400)"), std::string::npos) << err();
  EXPECT_EQ(run(external_forget()), 0);
  EXPECT_EQ(out(), "forgotten: the next request of per-tenant:acme/7 asks the limits service again\n");
  arguments_.set("ID", "");
  EXPECT_EQ(run(external_forget()), 2);
}

TEST_F(OperateTest, ConfigShowPrintsWhatAServerHasInForce) {
  answers_ = {{"200", R"({"policy_version":2,"settings":[{"path":"threads","value":"auto","source":"default"},)"
                      R"({"path":"limits.a.burst","value":"4\u001b","source":"api"}],"overrides":0})"}};
  EXPECT_EQ(run(config_show()), 0) << err();
  EXPECT_EQ(request(0), "GET /ratelimit/config ");
  EXPECT_EQ(out(), "threads: auto  # default\nlimits.a.burst: 4\\x1b  # api\n");
  arguments_.set("--config", "weir.yaml");
  EXPECT_EQ(run(config_show()), 2);
  EXPECT_EQ(err(), "weir: give either --admin, or FILE and --set\n");
}

TEST_F(OperateTest, SomethingElseThatAnswersIsNamed) {
  answers_ = {{"200", "<html>"}};
  EXPECT_EQ(run(stats()), 1);
  EXPECT_NE(err().find("does not answer like Weir's admin API"), std::string::npos) << err();
}

TEST_F(OperateTest, ControlCharactersOfAServersSentenceStayAway) {
  answers_ = {{"503", "{\"error\":\"x\",\"message\":\"a\\u001b[2Jb\"}"}};
  EXPECT_EQ(run(stats()), 1);
  EXPECT_EQ(err(), "weir: a\\x1b[2Jb (503)\n");
}

}  // namespace
}  // namespace weir::operate_test
