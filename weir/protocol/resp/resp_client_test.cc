#include "weir/protocol/resp/resp_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/base/bounds.h"
#include "weir/protocol/resp/resp_session.h"
#include "weir/protocol/testing/kept_output.h"

namespace weir::resp_client_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A session and its output.
struct Talk {
  Talk(const RespOptions& options, std::uint64_t id) : session(output, options, id) {}
  std::string say(std::string_view bytes, Queries& queries) {
    output.bytes.clear();
    EXPECT_TRUE(session.receive(bytes, queries, Now{}));
    return output.bytes;
  }

  KeptOutput output;
  RespSession session;
};

// Commands that ask no verdict.
class RespClientTest : public ::testing::Test {
 protected:
  static std::string say(Talk& talk, std::string_view bytes) {
    Queries queries;
    const std::string out = talk.say(bytes, queries);
    EXPECT_TRUE(queries.all().empty());
    return out;
  }
  std::string open(std::string_view line) { return say(open_, std::string(line) + "\r\n"); }
  std::string locked(std::string_view line) { return say(locked_, std::string(line) + "\r\n"); }

  const RespOptions open_options_{};
  const RespOptions locked_options_{"hunter2", "weir", "0.1.0"};
  Talk open_{open_options_, 7};
  Talk locked_{locked_options_, 8};
};

TEST_F(RespClientTest, NothingWorksBeforeThePassword) {
  for (const std::string_view line : {"PING", "CL.THROTTLE a 1 1 1", "DEL a", "INFO", "COMMAND", "CLIENT ID", "RESET",
                                      "foo", "WEIR.CHECK a b", "CONFIG GET save", "SELECT 0"}) {
    EXPECT_EQ(locked(line), "-NOAUTH Authentication required.\r\n") << line;
  }
  EXPECT_THAT(locked("HELLO 3"), StartsWith("-NOAUTH HELLO must be called"));
  EXPECT_EQ(locked("AUTH wrong"), "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
  EXPECT_EQ(locked("PING"), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(locked("AUTH hunter2"), "+OK\r\n");
  EXPECT_EQ(locked("PING"), "+PONG\r\n");
}

TEST_F(RespClientTest, TheOnlyUserIsCalledDefault) {
  EXPECT_THAT(locked("AUTH root hunter2"), StartsWith("-WRONGPASS"));
  EXPECT_EQ(locked("AUTH default hunter2"), "+OK\r\n");
}

TEST_F(RespClientTest, AWrongPasswordLaterTakesNothingAway) {
  EXPECT_EQ(locked("AUTH hunter2"), "+OK\r\n");
  EXPECT_THAT(locked("AUTH wrong"), StartsWith("-WRONGPASS"));
  EXPECT_EQ(locked("PING"), "+PONG\r\n");
}

TEST_F(RespClientTest, RefundResetAndDelNeedTheWritePassword) {
  RespOptions options{"reader", "weir", "0.1.0"};
  options.write_password = "writer";
  const auto asks = [](Talk& talk, std::string_view line) {
    Queries queries;
    const std::string out = talk.say(std::string(line) + "\r\n", queries);
    return queries.all().empty() ? out : "asked";
  };
  Talk session(options, 1);
  EXPECT_EQ(asks(session, "AUTH reader"), "+OK\r\n");
  for (const std::string_view line : {"DEL k", "WEIR.REFUND a b", "WEIR.RESET a b"}) {
    EXPECT_THAT(asks(session, line), StartsWith("-NOPERM '")) << line;
  }
  EXPECT_EQ(asks(session, "WEIR.CHECK a b"), "asked");
  EXPECT_THAT(asks(session, "HELLO 2 AUTH default writer"), Not(StartsWith("-")));
  Talk writer(options, 2);
  EXPECT_EQ(asks(writer, "AUTH writer"), "+OK\r\n");
  EXPECT_EQ(asks(writer, "DEL k"), "asked");
  options.password.clear();
  Talk asking(options, 3);
  EXPECT_EQ(asks(asking, "WEIR.CHECK a b"), "asked");
  Talk anyone(options, 4);
  EXPECT_THAT(asks(anyone, "DEL k"), StartsWith("-NOPERM '"));
  EXPECT_EQ(asks(anyone, "AUTH anything"), "+OK\r\n");
  EXPECT_THAT(asks(anyone, "DEL k"), StartsWith("-NOPERM '"));
}

TEST_F(RespClientTest, GoodbyeNeedsNoPassword) {
  EXPECT_EQ(locked("QUIT"), "+OK\r\n");
  EXPECT_TRUE(locked_.session.finished());
}

TEST_F(RespClientTest, HelloMayCarryThePassword) {
  EXPECT_THAT(locked("HELLO 3 AUTH default wrong"), StartsWith("-WRONGPASS"));
  EXPECT_THAT(locked("HELLO 3 AUTH default hunter2 SETNAME me"), StartsWith("%7\r\n"));
  EXPECT_EQ(locked("CLIENT GETNAME"), "$2\r\nme\r\n");
}

TEST_F(RespClientTest, HelloIsTakenWholeOrNotAtAll) {
  EXPECT_EQ(open("HELLO 4"), "-NOPROTO unsupported protocol version\r\n");
  EXPECT_EQ(open("HELLO -1"), "-NOPROTO unsupported protocol version\r\n");
  EXPECT_EQ(open("HELLO x"), "-ERR Protocol version is not an integer or out of range\r\n");
  EXPECT_EQ(open("HELLO 3 SETNAME me FOO"), "-ERR Syntax error in HELLO option 'FOO'\r\n");
  EXPECT_EQ(open("HELLO 3 AUTH default"), "-ERR Syntax error in HELLO option 'AUTH'\r\n");
  EXPECT_EQ(open("HELLO 3 SETNAME \"a b\""),
            "-ERR Client names cannot contain spaces, newlines or special characters.\r\n");
  EXPECT_EQ(open("CLIENT GETNAME"), "$-1\r\n");
  EXPECT_THAT(open("HELLO"), StartsWith("*14\r\n"));
}

TEST_F(RespClientTest, AuthWithoutAPasswordSetIsSurelyAMistake) {
  EXPECT_THAT(open("AUTH x"), StartsWith("-ERR AUTH <password> called without any password configured"));
  EXPECT_EQ(open("AUTH default x"), "+OK\r\n");
  EXPECT_THAT(open("AUTH root x"), StartsWith("-WRONGPASS"));
}

TEST_F(RespClientTest, ResetMakesTheConnectionAsNew) {
  locked("HELLO 3 AUTH default hunter2 SETNAME me");
  EXPECT_EQ(locked("RESET"), "+RESET\r\n");
  EXPECT_EQ(locked("CLIENT GETNAME"), "-NOAUTH Authentication required.\r\n");
  locked("AUTH hunter2");
  EXPECT_EQ(locked("CLIENT GETNAME"), "$-1\r\n");
}

TEST_F(RespClientTest, AnswersPingAndEcho) {
  EXPECT_EQ(open("ping"), "+PONG\r\n");
  EXPECT_EQ(open("PiNg hi"), "$2\r\nhi\r\n");
  EXPECT_EQ(open("ECHO hi"), "$2\r\nhi\r\n");
  EXPECT_EQ(open("PING a b"), "-ERR wrong number of arguments for 'ping' command\r\n");
}

TEST_F(RespClientTest, ThereIsOneDatabase) {
  EXPECT_EQ(open("SELECT 0"), "+OK\r\n");
  EXPECT_EQ(open("SELECT 1"), "-ERR DB index is out of range\r\n");
  EXPECT_EQ(open("SELECT -1"), "-ERR DB index is out of range\r\n");
  EXPECT_EQ(open("SELECT x"), "-ERR value is not an integer or out of range\r\n");
}

TEST_F(RespClientTest, KnowsTheConnectionsName) {
  EXPECT_EQ(open("CLIENT SETNAME me"), "+OK\r\n");
  EXPECT_EQ(open("client getname"), "$2\r\nme\r\n");
  EXPECT_EQ(open("CLIENT SETINFO LIB-NAME node-redis"), "+OK\r\n");
  EXPECT_EQ(open("CLIENT SETINFO lib-ver 4.6.0"), "+OK\r\n");
  EXPECT_EQ(open("CLIENT SETINFO lib-colour red"), "-ERR Unrecognized option 'lib-colour'\r\n");
  EXPECT_EQ(open("CLIENT ID"), ":7\r\n");
  EXPECT_THAT(open("CLIENT INFO"), HasSubstr("id=7 name=me db=0 resp=2 lib-name=node-redis lib-ver=4.6.0"));
  EXPECT_THAT(open("CLIENT LIST"), HasSubstr("id=7"));
  EXPECT_EQ(open("CLIENT SETNAME"), "-ERR wrong number of arguments for 'client|setname' command\r\n");
  EXPECT_EQ(open("CLIENT SETINFO LIB-NAME"), "-ERR wrong number of arguments for 'client|setinfo' command\r\n");
  EXPECT_EQ(open("CLIENT FOO"), "-ERR unknown subcommand 'FOO'. Try CLIENT HELP.\r\n");
  EXPECT_EQ(open("CLIENT NO-EVICT on"), "+OK\r\n");
}

TEST_F(RespClientTest, BoundsNames) {
  const std::string longest(bounds::client_name_bytes_max, 'n');
  EXPECT_EQ(open("CLIENT SETNAME " + longest), "+OK\r\n");
  EXPECT_EQ(open("CLIENT SETNAME " + longest + "n"), "-ERR Client names cannot be longer than 256 bytes.\r\n");
  EXPECT_EQ(open("HELLO 2 SETNAME " + longest + "n"), "-ERR Client names cannot be longer than 256 bytes.\r\n");
  EXPECT_EQ(open("CLIENT SETINFO LIB-VER " + longest + "n"), "-ERR lib-ver cannot be longer than 256 bytes.\r\n");
}

TEST_F(RespClientTest, TellsItsCommands) {
  EXPECT_EQ(open("COMMAND COUNT"), ":22\r\n");
  EXPECT_THAT(open("COMMAND"), StartsWith("*22\r\n*10\r\n$11\r\ncl.throttle\r\n:-5\r\n"
                                          "*2\r\n+write\r\n+fast\r\n:1\r\n:1\r\n:1\r\n"));
  EXPECT_THAT(open("COMMAND INFO ping nothing"), HasSubstr("*0\r\n$-1\r\n"));
  EXPECT_THAT(open("COMMAND DOCS"), StartsWith("*44\r\n$11\r\ncl.throttle\r\n*8\r\n$7\r\nsummary\r\n"));
  EXPECT_THAT(open("COMMAND DOCS ping"),
              HasSubstr("$9\r\narguments\r\n*1\r\n*6\r\n$4\r\nname\r\n$7\r\nmessage\r\n$4\r\ntype\r\n$6\r\nstring\r\n"
                        "$5\r\nflags\r\n*1\r\n+optional\r\n"));
  EXPECT_EQ(open("COMMAND DOCS nothing"), "*0\r\n");
  EXPECT_THAT(open("COMMAND LIST"), StartsWith("*22\r\n"));
  EXPECT_EQ(open("COMMAND FOO"), "-ERR unknown subcommand 'FOO'. Try COMMAND HELP.\r\n");
}

TEST_F(RespClientTest, EveryAnswerIsOneWholeReplyInBothVersions) {
  for (const std::string_view version : {"2", "3"}) {
    open("HELLO " + std::string(version));
    for (const std::string_view line :
         {"COMMAND", "COMMAND DOCS", "COMMAND DOCS ping", "COMMAND INFO ping x", "COMMAND LIST", "COMMAND HELP",
          "CLIENT HELP", "CLIENT LIST", "INFO", "INFO server", "CONFIG GET save", "CONFIG GET appendonly",
          "CONFIG HELP", "HELLO"}) {
      const std::string out = open(line);
      resp::Reply reply;
      ASSERT_EQ(reply.parse(out), resp::Parsed::done) << line;
      EXPECT_EQ(reply.size(), out.size()) << line;
      EXPECT_NE(reply.root().type, resp::Type::error) << line;
    }
  }
}

TEST_F(RespClientTest, AnswersWhatBenchmarksAsk) {
  EXPECT_EQ(open("CONFIG GET save"), "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
  EXPECT_EQ(open("CONFIG GET appendonly"), "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n");
  EXPECT_EQ(open("CONFIG GET maxmemory"), "*0\r\n");
  EXPECT_EQ(open("CONFIG GET"), "-ERR wrong number of arguments for 'config|get' command\r\n");
  EXPECT_EQ(open("CONFIG SET save 1"), "-ERR unknown subcommand 'SET'. Try CONFIG HELP.\r\n");
}

TEST_F(RespClientTest, SaysThatItIsReady) {
  const std::string info = open("INFO");
  EXPECT_THAT(info, HasSubstr("redis_version:7.0.0\r\n"));
  EXPECT_THAT(info, HasSubstr("server_name:weir\r\n"));
  EXPECT_THAT(info, HasSubstr("loading:0\r\n"));
}

}  // namespace
}  // namespace weir::resp_client_test
