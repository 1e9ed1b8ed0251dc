#include "weir/wire/resp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace weir::resp::resp_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> arguments(const Request& request) {
  return {request.arguments().begin(), request.arguments().end()};
}

std::vector<std::string> parse_whole(std::string_view bytes) {
  Request request;
  EXPECT_EQ(request.parse(bytes), Parsed::done) << request.problem();
  EXPECT_EQ(request.size(), bytes.size());
  return arguments(request);
}

std::string problem_of(std::string_view bytes) {
  Request request;
  EXPECT_EQ(request.parse(bytes), Parsed::broken);
  return std::string(request.problem());
}

std::string command(const std::vector<std::string>& words) {
  std::string out;
  const std::vector<std::string_view> views(words.begin(), words.end());
  write_command(views, out);
  return out;
}

TEST(RespRequest, ReadsAnArrayOfBulkStrings) {
  EXPECT_THAT(parse_whole("*2\r\n$4\r\nECHO\r\n$5\r\na\r\nbc\r\n"), ElementsAre("ECHO", "a\r\nbc"));
  EXPECT_THAT(parse_whole("*1\r\n$0\r\n\r\n"), ElementsAre(""));
}

TEST(RespRequest, PointsIntoTheBytes) {
  const std::string bytes = command({"CL.THROTTLE", "user:42"});
  Request request;
  ASSERT_EQ(request.parse(bytes), Parsed::done);
  EXPECT_FALSE(request.copied());
  for (const std::string_view argument : request.arguments()) {
    EXPECT_GE(argument.data(), bytes.data());
    EXPECT_LE(argument.data() + argument.size(), bytes.data() + bytes.size());
  }
}

TEST(RespRequest, LeavesFollowingBytesForTheNextCommand) {
  const std::string first = command({"PING"});
  Request request;
  ASSERT_EQ(request.parse(first + command({"QUIT"})), Parsed::done);
  EXPECT_EQ(request.size(), first.size());
}

TEST(RespRequest, WaitsForTheRestAtEveryByte) {
  for (const std::string& whole :
       {command({"CL.THROTTLE", "user:42", "15", "30", "60"}), std::string("ping \"a b\"\r\n")}) {
    Request request;
    for (std::size_t cut = 0; cut < whole.size(); ++cut) {
      EXPECT_EQ(request.parse(whole.substr(0, cut)), Parsed::more) << cut;
    }
    EXPECT_EQ(request.parse(whole), Parsed::done);
  }
}

TEST(RespRequest, EmptyLineOrArrayIsNoCommand) {
  EXPECT_THAT(parse_whole("\r\n"), IsEmpty());
  EXPECT_THAT(parse_whole("  \n"), IsEmpty());
  EXPECT_THAT(parse_whole("*0\r\n"), IsEmpty());
}

TEST(RespRequest, ReadsInlineCommands) {
  EXPECT_THAT(parse_whole("PING\r\n"), ElementsAre("PING"));
  EXPECT_THAT(parse_whole(" SET  a\tb \n"), ElementsAre("SET", "a", "b"));
  EXPECT_THAT(parse_whole("echo \"a b\\n\\x41\\\"\" 'it\\'s \\n' x\"y\"\r\n"),
              ElementsAre("echo", "a b\nA\"", "it's \\n", "xy"));
  EXPECT_THAT(parse_whole("echo \"\" ''\r\n"), ElementsAre("echo", "", ""));
  EXPECT_THAT(parse_whole("echo \"\\xzz\\q\"\r\n"), ElementsAre("echo", "xzzq"));
}

TEST(RespRequest, RefusesUnbalancedQuotes) {
  const std::string problem = "Protocol error: unbalanced quotes in request";
  for (const std::string_view line :
       {"echo \"a", "echo 'a", "echo \"a\"b", "echo \"a\\\"", "echo 'a\\'", "\"", "a\"\\"}) {
    EXPECT_EQ(problem_of(std::string(line) + "\r\n"), problem) << line;
  }
}

TEST(RespRequest, RefusesNegativeOverflowingAndMalformedLengths) {
  for (const std::string_view length : {"-1", "-2", "99999999999999999999", "18446744073709551617", "+1", "01", "",
                                        " 1", "1 ", "x", "1\n", "1\rx", "00"}) {
    EXPECT_EQ(problem_of("*" + std::string(length) + "\r\n"), "Protocol error: invalid multibulk length") << length;
    EXPECT_EQ(problem_of("*1\r\n$" + std::string(length) + "\r\n"), "Protocol error: invalid bulk length") << length;
  }
  EXPECT_EQ(problem_of("*1\r\n:1\r\n"), "Protocol error: expected '$', got ':'");
  EXPECT_EQ(problem_of("*1\r\n$4\r\nPINGxx"), "Protocol error: expected CRLF after a bulk string");
}

TEST(RespRequest, LimitsAnArgument) {
  const std::string longest(bounds::resp_argument_bytes_max, 'k');
  EXPECT_THAT(parse_whole(command({"DEL", longest})), ElementsAre("DEL", longest));
  EXPECT_EQ(problem_of("*2\r\n$3\r\nDEL\r\n$" + std::to_string(longest.size() + 1) + "\r\n"),
            "Protocol error: invalid bulk length");
}

TEST(RespRequest, LimitsTheNumberOfArguments) {
  std::vector<std::string> most(bounds::resp_arguments_max, "k");
  EXPECT_THAT(parse_whole(command(most)), ::testing::SizeIs(most.size()));
  std::string line;
  for (const std::string& word : most) line += word + " ";
  EXPECT_THAT(parse_whole(line + "\n"), ::testing::SizeIs(most.size()));
  most.emplace_back("k");
  EXPECT_EQ(problem_of(command(most)), "Protocol error: invalid multibulk length");
  EXPECT_EQ(problem_of(line + "k\n"), "Protocol error: too many arguments in inline request");
}

TEST(RespRequest, LimitsACommand) {
  // 15 arguments of maximum length, and a last one that fills the rest exactly.
  std::vector<std::string> words(15, std::string(bounds::resp_argument_bytes_max, 'k'));
  words.emplace_back();
  const std::size_t room = bounds::resp_command_bytes_max - command(words).size();
  words.back().assign(room - 4, 'k');  // its length takes five digits instead of one
  ASSERT_EQ(command(words).size(), bounds::resp_command_bytes_max);
  EXPECT_THAT(parse_whole(command(words)), ::testing::SizeIs(16));
  words.back() += 'k';
  EXPECT_EQ(problem_of(command(words)), "Protocol error: too big request");
}

TEST(RespRequest, LimitsAnInlineCommand) {
  const std::string longest(bounds::resp_argument_bytes_max, 'k');
  EXPECT_THAT(parse_whole(longest + "\r\n"), ElementsAre(longest));
  EXPECT_EQ(problem_of(longest + "k\n"), "Protocol error: too big inline request");
  EXPECT_EQ(problem_of(longest + "kk"), "Protocol error: too big inline request");
  Request request;
  EXPECT_EQ(request.parse(longest + "\r"), Parsed::more);
}

template <class Write>
std::string written(Version version, Write write) {
  std::string out;
  ReplyWriter writer(out, version);
  write(writer);
  return out;
}

TEST(RespReplyWriter, WritesEveryType) {
  const auto all = [](ReplyWriter& writer) {
    writer.simple("OK");
    writer.error("ERR no");
    writer.integer(std::numeric_limits<std::int64_t>::min());
    writer.bulk("a\r\nb");
    writer.null();
    writer.boolean(true);
    writer.real(0.5);
    writer.array(1);
    writer.integer(-1);
    writer.set(1);
    writer.bulk("");
    writer.map(1);
    writer.bulk("k");
    writer.boolean(false);
  };
  EXPECT_EQ(written(Version::resp2, all),
            "+OK\r\n-ERR no\r\n:-9223372036854775808\r\n$4\r\na\r\nb\r\n$-1\r\n:1\r\n$3\r\n0.5\r\n*1\r\n:-1\r\n"
            "*1\r\n$0\r\n\r\n*2\r\n$1\r\nk\r\n:0\r\n");
  EXPECT_EQ(written(Version::resp3, all),
            "+OK\r\n-ERR no\r\n:-9223372036854775808\r\n$4\r\na\r\nb\r\n_\r\n#t\r\n,0.5\r\n*1\r\n:-1\r\n"
            "~1\r\n$0\r\n\r\n%1\r\n$1\r\nk\r\n#f\r\n");
}

TEST(RespReplyWriter, ReplacesLineBreaks) {
  EXPECT_EQ(written(Version::resp2, [](ReplyWriter& writer) { writer.error("ERR 'a\r\n+OK\r\n'"); }),
            "-ERR 'a  +OK  '\r\n");
}

TEST(RespReplyWriter, WritesInfinityAndNan) {
  const auto all = [](ReplyWriter& writer) {
    writer.real(std::numeric_limits<double>::infinity());
    writer.real(-std::numeric_limits<double>::infinity());
    writer.real(std::nan(""));
    writer.real(-1.7976931348623157e308);
  };
  EXPECT_EQ(written(Version::resp3, all), ",inf\r\n,-inf\r\n,nan\r\n,-1.7976931348623157e+308\r\n");
}

TEST(RespReply, ReadsEveryType) {
  Reply reply;
  const std::string bytes =
      "*13\r\n+OK\r\n-ERR "
      "no\r\n:-7\r\n$2\r\n\r\n\r\n$-1\r\n*-1\r\n_\r\n#t\r\n,-1.5e3\r\n(123456789012345678901234567890"
      "\r\n=6\r\ntxt:hi\r\n!3\r\nERR\r\n%1\r\n+k\r\n~2\r\n:1\r\n:2\r\n";
  ASSERT_EQ(reply.parse(bytes), Parsed::done) << reply.problem();
  EXPECT_EQ(reply.size(), bytes.size());
  std::vector<Type> types;
  for (const Reply::Value& value : reply.values()) types.push_back(value.type);
  EXPECT_THAT(types, ElementsAre(Type::array, Type::simple, Type::error, Type::integer, Type::bulk, Type::null,
                                 Type::null, Type::null, Type::boolean, Type::real, Type::big_number, Type::verbatim,
                                 Type::error, Type::map, Type::simple, Type::set, Type::integer, Type::integer));
  EXPECT_EQ(reply.root().count, 13u);
  EXPECT_EQ(reply.root().skip, 18u);
  EXPECT_EQ(reply.values()[2].text, "ERR no");
  EXPECT_EQ(reply.values()[3].integer, -7);
  EXPECT_EQ(reply.values()[4].text, "\r\n");
  EXPECT_EQ(reply.values()[8].integer, 1);
  EXPECT_EQ(reply.values()[9].real, -1500);
  EXPECT_EQ(reply.values()[11].text, "hi");
  EXPECT_EQ(reply.values()[13].count, 2u);
  EXPECT_EQ(reply.values()[13].skip, 5u);
}

TEST(RespReply, SkipsAttributes) {
  Reply reply;
  ASSERT_EQ(reply.parse("*2\r\n:1\r\n|1\r\n+ttl\r\n:3600\r\n:2\r\n"), Parsed::done);
  ASSERT_EQ(reply.values().size(), 3u);
  EXPECT_EQ(reply.values()[2].integer, 2);
}

TEST(RespReply, WaitsForTheRestAtEveryByte) {
  const std::string whole = "%1\r\n$1\r\nk\r\n*2\r\n:12\r\n|1\r\n+a\r\n_\r\n,0.5\r\n";
  Reply reply;
  for (std::size_t cut = 0; cut < whole.size(); ++cut)
    EXPECT_EQ(reply.parse(whole.substr(0, cut)), Parsed::more) << cut;
  EXPECT_EQ(reply.parse(whole), Parsed::done);
}

TEST(RespReply, RefusesInvalidReplies) {
  for (const std::string_view bytes : {"x\r\n",         ":\r\n",          ":1x\r\n",   ":99999999999999999999\r\n",
                                       "$-2\r\n",       "$01\r\n",        "$x\r\n",    "$?\r\n",
                                       "$1\r\nabc",     "*-2\r\n",        "%-1\r\n",   "#x\r\n",
                                       "_x\r\n",        ",x\r\n",         "(1x\r\n",   "(\r\n",
                                       "=3\r\ntxt\r\n", "=4\r\ntxtx\r\n", "+a\rb\r\n", "*1\r\n?"}) {
    Reply reply;
    EXPECT_EQ(reply.parse(bytes), Parsed::broken) << bytes;
    EXPECT_FALSE(reply.problem().empty());
  }
}

TEST(RespReply, LimitsDepthValuesAndBytes) {
  const auto nested = [](int depth) {
    std::string bytes;
    for (int i = 0; i < depth; ++i) bytes += "*1\r\n";
    return bytes + ":1\r\n";
  };
  Reply reply;
  EXPECT_EQ(reply.parse(nested(bounds::resp_reply_depth_max)), Parsed::done);
  EXPECT_EQ(reply.parse(nested(bounds::resp_reply_depth_max + 1)), Parsed::broken);

  const auto wide = [](std::size_t count) {
    std::string bytes = "*" + std::to_string(count) + "\r\n";
    for (std::size_t i = 0; i < count; ++i) bytes += "_\r\n";
    return bytes;
  };
  EXPECT_EQ(reply.parse(wide(bounds::resp_reply_values_max - 1)), Parsed::done);
  EXPECT_EQ(reply.parse(wide(bounds::resp_reply_values_max)), Parsed::broken);
  EXPECT_EQ(reply.parse("*1000000000\r\n"), Parsed::broken);

  const std::string head = "$1048564\r\n";  // 10 bytes, and two at the end
  const std::string most(bounds::resp_reply_bytes_max - 12, 'x');
  EXPECT_EQ(reply.parse(head + most + "\r\n"), Parsed::done);
  EXPECT_EQ(reply.parse("$1048565\r\n"), Parsed::broken);
  EXPECT_EQ(reply.parse("+" + std::string(bounds::resp_reply_bytes_max - 3, 'x') + "\r\n"), Parsed::done);
  EXPECT_EQ(reply.parse("+" + std::string(bounds::resp_reply_bytes_max - 2, 'x') + "\r\n"), Parsed::broken);
}

TEST(RespReply, ReadsWhatTheWriterWrites) {
  for (const Version version : {Version::resp2, Version::resp3}) {
    std::string out;
    ReplyWriter writer(out, version);
    const std::array<std::int64_t, 5> five{0, 16, 15, -1, 2};
    writer.integers(five);
    Reply reply;
    ASSERT_EQ(reply.parse(out), Parsed::done);
    ASSERT_EQ(reply.root().count, 5u);
    for (std::size_t i = 0; i < five.size(); ++i) EXPECT_EQ(reply.values()[i + 1].integer, five[i]);
  }
}

}  // namespace
}  // namespace weir::resp::resp_test
