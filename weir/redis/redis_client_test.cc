#include "weir/redis/redis_client.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "weir/redis/refusal.h"

namespace weir::redis::redis_client_test {
namespace {

using namespace std::chrono_literals;

constexpr Script kScript{"return 1", "0123456789012345678901234567890123456789"};

std::string encode(const std::vector<std::string>& arguments) {
  const std::vector<std::string_view> views(arguments.begin(), arguments.end());
  std::string out;
  resp::write_command(views, out);
  return out;
}

struct Journal : RedisClient::Replies {
  RedisClient* client = nullptr;
  std::vector<std::string> lines;

  void replied(Tag tag, const resp::Reply& reply) override {
    const resp::Reply::Value& root = reply.root();
    lines.push_back(std::to_string(tag) + " " +
                    (root.type == resp::Type::integer ? std::to_string(root.integer) : std::string(root.text)));
  }
  void lost(Tag tag, Lost how) override {
    constexpr std::string_view kHow[] = {"unsent", "unknown", "late"};
    lines.push_back(std::to_string(tag) + " " + std::string(kHow[static_cast<std::size_t>(how)]) + " " +
                    std::to_string(client->command().size()));
  }
  void unreplicated() override { lines.emplace_back("unreplicated"); }
  void pushed(const resp::Reply&) override { lines.emplace_back("push"); }
};

class Client : public testing::Test {
 protected:
  explicit Client(RedisClient::Options options = {.script = kScript}) : client_(std::move(options), journal_) {
    journal_.client = &client_;
  }

  std::string written() {
    const std::string out(client_.unwritten());
    client_.wrote(out.size());
    return out;
  }
  bool send(Tag tag, const std::vector<std::string>& arguments, Time deadline = Time{1s},
            Effect effect = Effect::writes) {
    const std::vector<std::string_view> views(arguments.begin(), arguments.end());
    return client_.send(tag, views, deadline, effect);
  }
  void agree() {
    client_.open();
    written();
    ASSERT_TRUE(client_.receive("%0\r\n"));
    written();
    ASSERT_TRUE(client_.receive("$40\r\n" + std::string(kScript.sha) + "\r\n$0\r\n\r\n"));
    ASSERT_TRUE(client_.is_ready());
  }

  Journal journal_;
  RedisClient client_;
};

TEST_F(Client, HandshakeSendsHelloThenLoadsTheScriptAndReadsTheEvictionPolicy) {
  client_.open();
  EXPECT_EQ(written(), encode({"HELLO", "3", "SETNAME", "weir"}));
  EXPECT_FALSE(send(1, {"PING"})) << "not before the handshake is done";
  ASSERT_TRUE(client_.receive("%1\r\n+server\r\n+redis\r\n"));
  EXPECT_EQ(written(), encode({"SCRIPT", "LOAD", "return 1"}) + encode({"INFO", "memory"}));
  ASSERT_TRUE(client_.receive("$40\r\n" + std::string(kScript.sha) + "\r\n"));
  EXPECT_FALSE(client_.is_ready());
  ASSERT_TRUE(client_.receive("$31\r\nx:1\r\nmaxmemory_policy:noevict\r\n\r\n"));
  EXPECT_TRUE(client_.is_ready());
  EXPECT_EQ(client_.maxmemory_policy(), "noevict");
}

TEST(ClientHandshake, SendsUserPasswordAndDatabase) {
  Journal journal;
  RedisClient client({.username = "app", .password = "secret", .db = 3, .name = "weir"}, journal);
  client.open();
  EXPECT_EQ(client.unwritten(), encode({"HELLO", "3", "AUTH", "app", "secret", "SETNAME", "weir"}));
  client.wrote(client.unwritten().size());
  ASSERT_TRUE(client.receive("%0\r\n"));
  EXPECT_EQ(client.unwritten(), encode({"SELECT", "3"}) + encode({"INFO", "memory"}));
}

TEST(ClientHandshake, LogsInAsAUserWithoutAPassword) {
  Journal journal;
  RedisClient client({.username = "app", .password = "", .db = 0, .name = ""}, journal);
  client.open();
  EXPECT_EQ(client.unwritten(), encode({"HELLO", "3", "AUTH", "app", ""}));
  client.wrote(client.unwritten().size());
  ASSERT_TRUE(client.receive("-NOPROTO\r\n"));
  EXPECT_EQ(client.unwritten(), encode({"AUTH", "app", ""}) + encode({"INFO", "memory"}));
}

TEST(ClientHandshake, FallsBackToResp2WhereHelloIsUnknown) {
  Journal journal;
  RedisClient client({.username = "", .password = "secret", .db = 0, .name = "weir"}, journal);
  client.open();
  EXPECT_EQ(client.unwritten(), encode({"HELLO", "3", "AUTH", "default", "secret", "SETNAME", "weir"}));
  client.wrote(client.unwritten().size());
  ASSERT_TRUE(client.receive("-ERR unknown command 'HELLO'\r\n"));
  EXPECT_EQ(client.unwritten(),
            encode({"AUTH", "secret"}) + encode({"CLIENT", "SETNAME", "weir"}) + encode({"INFO", "memory"}));
  client.wrote(client.unwritten().size());
  ASSERT_TRUE(client.receive("+OK\r\n-ERR no names here\r\n-NOPERM no INFO here\r\n"));
  EXPECT_TRUE(client.is_ready());
}

TEST(ClientHandshake, ReportsTheCommandThatRedisRefused) {
  Journal journal;
  RedisClient client({.username = "", .password = "wrong"}, journal);
  client.open();
  const auto refused = client.receive("-WRONGPASS invalid username-password pair\r\n");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "Redis refused HELLO: \"WRONGPASS invalid username-password pair\"");
}

TEST_F(Client, DeliversRepliesInOrderHoweverTheyAreSplit) {
  const std::string replies = ":1\r\n$3\r\ntwo\r\n-ERR three\r\n";
  for (std::size_t cut = 0; cut <= replies.size(); ++cut) {
    journal_.lines.clear();
    agree();
    for (const Tag tag : {1, 2, 3}) ASSERT_TRUE(send(tag, {"PING"}));
    EXPECT_EQ(written(), encode({"PING"}) + encode({"PING"}) + encode({"PING"})) << "in one piece";
    ASSERT_TRUE(client_.receive(replies.substr(0, cut)));
    ASSERT_TRUE(client_.receive(replies.substr(cut)));
    EXPECT_EQ(journal_.lines, (std::vector<std::string>{"1 1", "2 two", "3 ERR three"}));
    client_.close();
  }
}

TEST_F(Client, LoadsAMissingScriptAndRepeatsTheCommand) {
  agree();
  const std::vector<std::string> call = {"EVALSHA", std::string(kScript.sha), "0"};
  send(1, call);
  send(2, {"PING"});
  written();
  ASSERT_TRUE(client_.receive("-NOSCRIPT No matching script.\r\n+PONG\r\n"));
  EXPECT_EQ(journal_.lines, (std::vector<std::string>{"2 PONG"}));
  EXPECT_EQ(written(), encode({"SCRIPT", "LOAD", "return 1"}) + encode(call));
  ASSERT_TRUE(client_.receive("$40\r\n" + std::string(kScript.sha) + "\r\n:1\r\n"));
  EXPECT_EQ(journal_.lines.back(), "1 1");
  EXPECT_EQ(client_.unanswered(), 0u);
}

TEST_F(Client, RepeatsACommandOnlyOnce) {
  agree();
  send(1, {"EVALSHA", "x", "0"});
  written();
  ASSERT_TRUE(client_.receive("-NOSCRIPT gone\r\n"));
  written();
  ASSERT_TRUE(client_.receive("-NOPERM no\r\n-NOSCRIPT gone\r\n"));
  EXPECT_EQ(journal_.lines, (std::vector<std::string>{"1 NOSCRIPT gone"}));
}

TEST_F(Client, GivesUpAtTheDeadlineAndDropsTheLateReply) {
  agree();
  send(1, {"PING"}, Time{1s});
  send(2, {"PING"}, Time{2s});
  written();
  EXPECT_EQ(client_.deadline(), Time{1s});
  client_.expire(Time{1s} - 1ns);
  EXPECT_TRUE(journal_.lines.empty());
  client_.expire(Time{1s});
  EXPECT_EQ(journal_.lines, (std::vector<std::string>{"1 late 14"}));
  EXPECT_EQ(client_.unanswered(), 2u);
  EXPECT_EQ(client_.deadline(), Time{2s});
  ASSERT_TRUE(client_.receive("+LATE\r\n+PONG\r\n"));
  EXPECT_EQ(journal_.lines.back(), "2 PONG");
  EXPECT_EQ(journal_.lines.size(), 2u);
  EXPECT_EQ(client_.unanswered(), 0u);
  EXPECT_EQ(client_.deadline(), Time::max());
}

TEST_F(Client, ARepeatedCommandKeepsItsDeadline) {
  agree();
  send(1, {"EVALSHA", "x", "0"}, Time{1s});
  send(2, {"PING"}, Time{3s});
  written();
  ASSERT_TRUE(client_.receive("-NOSCRIPT gone\r\n"));
  EXPECT_EQ(client_.deadline(), Time{1s});
  client_.expire(Time{2s});
  EXPECT_EQ(journal_.lines.size(), 1u);
  EXPECT_TRUE(journal_.lines[0].starts_with("1 late"));
}

TEST_F(Client, ReportsWhichCommandsRedisNeverReceived) {
  agree();
  send(1, {"PING"});
  send(2, {"PING"});
  send(3, {"PING"});
  const std::size_t one = encode({"PING"}).size();
  client_.wrote(one + one / 2);
  client_.close();
  EXPECT_EQ(journal_.lines, (std::vector<std::string>{"1 unknown 14", "2 unsent 14", "3 unsent 14"}));
}

TEST_F(Client, CountsBytesStillInTheConnectionAsNeverReceived) {
  agree();
  send(1, {"PING"});
  send(2, {"PING"});
  written();
  client_.close(encode({"PING"}).size() - 1);
  EXPECT_EQ(journal_.lines, (std::vector<std::string>{"1 unknown 14", "2 unsent 14"}));
}

TEST_F(Client, SendsAskingBeforeAnEncodedCommand) {
  agree();
  ASSERT_TRUE(client_.send_encoded(1, encode({"GET", "k"}), Time{1s}, true));
  EXPECT_EQ(written(), encode({"ASKING"}) + encode({"GET", "k"}));
  ASSERT_TRUE(client_.receive("+OK\r\n$1\r\nv\r\n"));
  EXPECT_EQ(journal_.lines, (std::vector<std::string>{"1 v"}));
}

TEST_F(Client, RefusesToQueueBeyondItsLimits) {
  agree();
  for (Tag tag = 0; tag < bounds::redis_unanswered_max; ++tag) ASSERT_TRUE(send(tag, {"PING"}));
  EXPECT_FALSE(send(1, {"PING"}));
  client_.close();
  agree();
  const std::string large(bounds::redis_unanswered_bytes_max - 100, 'x');
  EXPECT_TRUE(send(1, {"SET", "k", large}));
  const std::size_t queued = client_.unwritten().size();
  EXPECT_FALSE(send(2, {"SET", "k", std::string(200, 'x')}));
  EXPECT_EQ(client_.unwritten().size(), queued) << "a refused command queues nothing";
}

TEST_F(Client, RejectsRepliesWithoutACommandAndInvalidResp) {
  agree();
  EXPECT_EQ(client_.receive("+OK\r\n").error().detail, "Redis sent a reply without a command");
  client_.close();
  agree();
  send(1, {"PING"});
  EXPECT_FALSE(client_.receive("HTTP/1.1 400 Bad Request\r\n"));
}

TEST_F(Client, DeliversPushesSeparatelyFromReplies) {
  agree();
  send(1, {"PING"});
  ASSERT_TRUE(client_.receive(">2\r\n+a\r\n+b\r\n+PONG\r\n"));
  EXPECT_EQ(journal_.lines, (std::vector<std::string>{"push", "1 PONG"}));
}

TEST_F(Client, MemoryStaysBoundedInLongUse) {
  agree();
  const std::string text(1000, 'x');
  for (Tag tag = 0; tag < 1000; ++tag) {
    ASSERT_TRUE(send(tag, {"SET", "k", text}));
    written();
    ASSERT_TRUE(client_.receive("+OK\r\n"));
  }
  EXPECT_EQ(journal_.lines.size(), 1000u);
  EXPECT_EQ(client_.unanswered(), 0u);
}

TEST(Refusal, IsReadFromTheFirstWord) {
  EXPECT_EQ(parse_refusal("READONLY You can't write against a read only replica.").refusal, Refusal::read_only);
  EXPECT_EQ(parse_refusal("OOM command not allowed").refusal, Refusal::no_memory);
  EXPECT_EQ(parse_refusal("ERR wrong number of arguments").refusal, Refusal::other);
  EXPECT_EQ(parse_refusal("").refusal, Refusal::other);
}

TEST(Refusal, IsFoundInsideAScriptErrorOfOlderServers) {
  const std::string_view text =
      "ERR Error running script (call to f_0123): @user_script:49: @user_script: 49: -OOM command not allowed";
  EXPECT_EQ(parse_refusal(text).refusal, Refusal::no_memory);
}

TEST(Refusal, ReturnsTheNewAddressOfASlot) {
  const Refused moved = parse_refusal("MOVED 3999 127.0.0.1:6381");
  EXPECT_EQ(moved.refusal, Refusal::moved);
  EXPECT_EQ(moved.slot, 3999);
  EXPECT_EQ(moved.address, "127.0.0.1:6381");
  EXPECT_EQ(parse_refusal("ASK 16383 [::1]:1").address, "[::1]:1");
  EXPECT_EQ(parse_refusal("MOVED 16384 127.0.0.1:6381").slot, -1);
  EXPECT_EQ(parse_refusal("MOVED").slot, -1);
}

TEST(Refusal, AllowsARepeatOnlyIfRedisDidNotApplyTheCommand) {
  for (const Refusal refusal :
       {Refusal::moved, Refusal::ask, Refusal::try_again, Refusal::loading, Refusal::read_only, Refusal::no_script}) {
    EXPECT_TRUE(is_not_applied(refusal)) << print(refusal);
  }
  for (const Refusal refusal : {Refusal::cluster_down, Refusal::no_memory, Refusal::not_writable, Refusal::not_allowed,
                                Refusal::busy, Refusal::clock, Refusal::other}) {
    EXPECT_FALSE(is_not_applied(refusal)) << print(refusal);
  }
}

class WaitingClient : public Client {
 protected:
  WaitingClient() : Client({.script = kScript, .wait_replicas = 2}) {}
  // Sends one command and appends a WAIT.
  void ask(Tag tag, Time deadline = Time{1s}) {
    send(tag, {"PING"}, deadline);
    client_.add_wait(Time{}, 125ms);
    written();
  }
  using Lines = std::vector<std::string>;
};

TEST_F(WaitingClient, AppendsOneWaitToABatch) {
  agree();
  client_.add_wait(Time{}, 125ms);
  EXPECT_EQ(written(), "") << "nothing was sent";
  send(1, {"A"});
  send(2, {"B"});
  client_.add_wait(Time{}, 125ms);
  client_.add_wait(Time{}, 125ms);
  EXPECT_EQ(written(), encode({"A"}) + encode({"B"}) + encode({"WAIT", "2", "125"}));
}

TEST_F(WaitingClient, DoesNotWaitForReads) {
  agree();
  send(1, {"GET", "a"}, Time{1s}, Effect::reads);
  client_.add_wait(Time{}, 125ms);
  EXPECT_EQ(written(), encode({"GET", "a"}));
  ASSERT_TRUE(client_.receive("+one\r\n"));
  EXPECT_EQ(journal_.lines, (Lines{"1 one"}));
  send(2, {"A"});
  send(3, {"GET", "a"}, Time{1s}, Effect::reads);
  client_.add_wait(Time{}, 125ms);
  written();
  ASSERT_TRUE(client_.receive("+two\r\n+three\r\n"));
  EXPECT_EQ(journal_.lines, (Lines{"1 one", "3 three"}));
}

// Redis starts a second WAIT only after the first; together they would take longer than the timeout.
TEST_F(WaitingClient, CommandsSentDuringAWaitGoOutTogetherAfterIt) {
  agree();
  send(1, {"A"});
  client_.add_wait(Time{}, 125ms);
  const std::string first = encode({"A"}) + encode({"WAIT", "2", "125"});
  EXPECT_EQ(client_.unwritten(), first);
  client_.wrote(5);
  for (const Tag tag : {2u, 3u}) {
    send(tag, {"B"}, Time{1s});
    client_.add_wait(Time{800ms}, 125ms);
  }
  EXPECT_EQ(written(), first.substr(5)) << "the rest of the first batch";
  ASSERT_TRUE(client_.receive("+one\r\n:2\r\n"));
  client_.add_wait(Time{800ms}, 125ms);
  EXPECT_EQ(written(), encode({"B"}) + encode({"B"}) + encode({"WAIT", "2", "100"})) << "half of the time left";
  ASSERT_TRUE(client_.receive("+two\r\n+three\r\n:0\r\n"));
  EXPECT_EQ(journal_.lines, (Lines{"1 one", "unreplicated", "2 two", "3 three"}));
}

TEST_F(WaitingClient, WithoutPatienceNeverAppendsAWait) {
  agree();
  send(1, {"A"});
  client_.add_wait(Time{}, 0ms);
  EXPECT_EQ(written(), encode({"A"}));
  client_.add_wait(Time{}, 125ms);
  EXPECT_EQ(written(), "");
}

TEST_F(WaitingClient, HoldsRepliesUntilTheReplicasConfirm) {
  agree();
  ask(1);
  ASSERT_TRUE(client_.receive("+one\r\n"));
  EXPECT_EQ(journal_.lines, Lines{});
  ASSERT_TRUE(client_.receive(":2\r\n"));
  EXPECT_EQ(journal_.lines, (Lines{"1 one"}));
  ask(2);
  ASSERT_TRUE(client_.receive("+two\r\n"));
  EXPECT_EQ(journal_.lines, (Lines{"1 one"}));
  ASSERT_TRUE(client_.receive(":3\r\n"));
  EXPECT_EQ(journal_.lines, (Lines{"1 one", "2 two"}));
}

TEST_F(WaitingClient, DeliversAndReportsADecisionThatTooFewReplicasConfirmed) {
  agree();
  ask(1);
  ASSERT_TRUE(client_.receive("+one\r\n:1\r\n"));
  EXPECT_EQ(journal_.lines, (Lines{"unreplicated", "1 one"}));
}

TEST_F(WaitingClient, DoesNotHoldErrors) {
  agree();
  ask(1);
  ASSERT_TRUE(client_.receive("-MOVED 1 a:1\r\n"));
  EXPECT_EQ(journal_.lines, (Lines{"1 MOVED 1 a:1"}));
}

TEST_F(WaitingClient, DeliversTheReplyWithoutTheReplicasAtTheDeadline) {
  agree();
  ask(1, Time{1s});
  ASSERT_TRUE(client_.receive("+one\r\n"));
  EXPECT_EQ(client_.deadline(), Time{1s});
  client_.expire(Time{1s});
  EXPECT_EQ(journal_.lines, (Lines{"unreplicated", "1 one"}));
  EXPECT_EQ(client_.unanswered(), 1u);
  ASSERT_TRUE(client_.receive(":2\r\n"));
  EXPECT_EQ(journal_.lines.size(), 2u);
  EXPECT_EQ(client_.unanswered(), 0u);
}

TEST_F(WaitingClient, DeliversHeldRepliesWhenTheConnectionIsLost) {
  agree();
  ask(1);
  ASSERT_TRUE(client_.receive("+one\r\n"));
  ask(2);
  client_.close();
  EXPECT_EQ(journal_.lines, (Lines{"unreplicated", "1 one", "2 unsent 14"}));
}

}  // namespace
}  // namespace weir::redis::redis_client_test
