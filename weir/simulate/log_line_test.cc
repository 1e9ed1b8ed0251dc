#include "weir/simulate/log_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "weir/base/text.h"

namespace weir::simulate::log_line_test {
namespace {

using testing::HasSubstr;

using Facts = std::map<std::string, std::string>;

// Returns the facts in a line, with its time; or {"error", …}.
Facts read(LogFormat format, const std::string& text, const ReaderOptions& options = {}) {
  const std::unique_ptr<LogReader> reader = make_reader(format, options);
  LogLine line;
  const Result<void> done = reader->read(text, line);
  if (!done) return {{"error", done.error().detail}};
  Facts facts{{"time", print_instant(line.time)}};
  for (std::size_t i = 0; i < reader->fields().size(); ++i) {
    if (!line.values[i].empty()) facts[reader->fields()[i]] = std::string(line.values[i]);
  }
  return facts;
}

TEST(CombinedLog, ReadsNginxAndApache) {
  EXPECT_EQ(read(LogFormat::combined, R"(203.0.113.9 - ann [18/Nov/2026:07:26:32 +0200] "GET /a?b=1 HTTP/1.1" 200 612 )"
                                      R"("https://x/" "curl/8" "198.51.100.1")"),
            (Facts{{"time", "2026-11-18T05:26:32Z"},
                   {"peer", "203.0.113.9"},
                   {"method", "GET"},
                   {"path", "/a?b=1"},
                   {"header:referer", "https://x/"},
                   {"header:user-agent", "curl/8"},
                   {"header:x-forwarded-for", "198.51.100.1"}}));
}

TEST(CombinedLog, ReadsCommonAndTheVirtualHost) {
  EXPECT_EQ(read(LogFormat::combined, R"(2001:db8::1 - - [18/Nov/2026:05:26:32 +0000] "POST / HTTP/2.0" 204 -)"),
            (Facts{{"time", "2026-11-18T05:26:32Z"}, {"peer", "2001:db8::1"}, {"method", "POST"}, {"path", "/"}}));
  EXPECT_EQ(read(LogFormat::combined,
                 R"(www.example.com:443 10.0.0.1 - - [18/Nov/2026:05:26:32 +0000] "GET / HTTP/1.1" 200 1)")["host"],
            "www.example.com:443");
}

TEST(CombinedLog, UndoesTheEscapesOfTheRequest) {
  EXPECT_EQ(
      read(LogFormat::combined, R"(10.0.0.1 - - [18/Nov/2026:05:26:32 +0000] "GET /\x22a\"b HTTP/1.1" 200 1)")["path"],
      "/\"a\"b");
}

TEST(CombinedLog, SaysWhatIsWrongWithALine) {
  const auto error = [](const std::string& text) { return read(LogFormat::combined, text)["error"]; };
  EXPECT_THAT(error("nonsense"), HasSubstr("is not an address"));
  EXPECT_THAT(error(R"(10.0.0.1 - - [18/Foo/2026:05:26:32 +0000] "GET / HTTP/1.1" 200 1)"), HasSubstr("18/Nov/2026"));
  EXPECT_THAT(error(R"(10.0.0.1 - - [30/Feb/2026:05:26:32 +0000] "GET / HTTP/1.1" 200 1)"), HasSubstr("30/Feb/2026"));
  EXPECT_THAT(error(R"(10.0.0.1 - - [18/Nov/2026:05:26:32 +0000] "\x16\x03\x01" 400 1)"), HasSubstr("METHOD TARGET"));
  EXPECT_THAT(error(R"(10.0.0.1 - - [18/Nov/2026:05:26:32 +0000] "GET / HTTP/1.1)"), HasSubstr("in quotes"));
}

TEST(EnvoyLog, ReadsTheDefaultFormat) {
  EXPECT_EQ(read(LogFormat::envoy, R"([2026-11-18T05:26:32.310Z] "POST /api/v1 HTTP/2" 204 - 154 0 226 100 )"
                                   R"("10.9.9.9, 203.0.113.9" "nsq2http" "cc21d9b0" "locations" "tcp://10.0.2.1:80")"),
            (Facts{{"time", "2026-11-18T05:26:32.310Z"},
                   {"peer", "203.0.113.9"},
                   {"method", "POST"},
                   {"path", "/api/v1"},
                   {"host", "locations"},
                   {"header:x-forwarded-for", "10.9.9.9"},
                   {"header:user-agent", "nsq2http"},
                   {"header:x-request-id", "cc21d9b0"}}));
  EXPECT_THAT(read(LogFormat::envoy, R"([2026-11-18T05:26:32.310Z] "GET / HTTP/2" 204 -)")["error"], HasSubstr("four"));
}

TEST(HaproxyLog, ReadsHttplogWithWhatSyslogAdds) {
  const std::string line =
      R"(Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 )"
      R"(10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu|acme} {} "GET /index.html HTTP/1.1")";
  EXPECT_EQ(
      read(LogFormat::haproxy, line),
      (Facts{{"time", "2009-02-06T12:14:14.655Z"}, {"peer", "10.0.1.2"}, {"method", "GET"}, {"path", "/index.html"}}));
  ReaderOptions options;
  options.fields = {{"header:x-tenant-id", "capture.2"}};
  options.zone = *Zone::load("Europe/Paris");
  const Facts facts = read(LogFormat::haproxy, line, options);
  EXPECT_EQ(facts.at("header:x-tenant-id"), "acme");
  EXPECT_EQ(facts.at("time"), "2009-02-06T11:14:14.655Z");
}

TEST(JsonLog, ReadsTheUsualNamesAndTimes) {
  EXPECT_EQ(
      read(LogFormat::json, R"({"time_iso8601":"2026-11-18T07:26:32+02:00","remote_addr":"10.0.0.1",)"
                            R"("request_method":"GET","request_uri":"/a?b","http_host":"x"})"),
      (Facts{
          {"time", "2026-11-18T05:26:32Z"}, {"peer", "10.0.0.1"}, {"method", "GET"}, {"path", "/a?b"}, {"host", "x"}}));
  for (const std::string time : {"1795000000.5", "1795000000500", "1795000000500000", "\"1795000000.500\""}) {
    EXPECT_EQ(read(LogFormat::json, "{\"ts\":" + time + "}")["time"], "2026-11-18T11:06:40.500Z") << time;
  }
}

TEST(JsonLog, FindsFieldsWhereItIsTold) {
  ReaderOptions options;
  options.fields = {{"time", "when"},
                    {"ip", "who.ip"},
                    {"header:X-Tenant-Id", "tenant"},
                    {"cookie:idx", "session"},
                    {"apikey", "key"}};
  EXPECT_EQ(
      read(LogFormat::json, R"({"when":1,"who":{"ip":"10.0.0.1"},"tenant":"acme","session":"s1","key":"k"})", options),
      (Facts{{"time", "1970-01-01T00:00:01Z"},
             {"ip", "10.0.0.1"},
             {"header:x-tenant-id", "acme"},
             {"header:cookie", "idx=s1"},
             {"header:x-api-key", "k"}}));
  EXPECT_EQ(read(LogFormat::json, R"({"time":1})", options)["error"], "there is no when");
}

TEST(JsonLog, KnowsRequestsThatAServerRefusedBeforeItAskedALimit) {
  const std::unique_ptr<LogReader> reader = make_reader(LogFormat::json, {});
  LogLine line;
  ASSERT_TRUE(reader->read(R"({"time":1,"method":"","decision":"refused","limits":[]})", line));
  EXPECT_TRUE(line.refused);
  ASSERT_TRUE(reader->read(R"({"time":1,"decision":"denied"})", line));
  EXPECT_FALSE(line.refused);
}

TEST(JsonLog, ReadsWhatAServerCounted) {
  const std::unique_ptr<LogReader> reader = make_reader(LogFormat::json, {});
  LogLine line;
  ASSERT_TRUE(reader->read(
      R"({"time":1,"route":"r","limits":[{"limit":"a","id":"x"},{"limit":"b","id":"y","cost":3}]})", line));
  EXPECT_EQ(line.route, "r");
  EXPECT_FALSE(line.refused);
  ASSERT_EQ(line.counted.size(), 2u);
  EXPECT_EQ(line.counted[1].limit, "b");
  EXPECT_EQ(line.counted[1].cost, 3);
  std::string many = R"({"time":1,"limits":[)";
  for (std::size_t i = 0; i < bounds::charges_max; ++i) many += R"({"limit":"a","id":"x"},)";
  EXPECT_TRUE(reader->read(many.substr(0, many.size() - 1) + "]}", line));
  EXPECT_FALSE(reader->read(many + R"({"limit":"a","id":"x"}]})", line));
}

TEST(LogReader, RefusesAnEmptyLine) {
  for (const LogFormat format : {LogFormat::combined, LogFormat::envoy, LogFormat::haproxy, LogFormat::json}) {
    LogLine line;
    EXPECT_FALSE(make_reader(format, {})->read(std::string_view{}, line)) << print(format);
  }
}

TEST(DetectFormat, FindsTheFormatThatReadsMostLines) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(detect_format(Lines{"#", R"(10.0.0.1 - - [18/Nov/2026:05:26:32 +0000] "GET / HTTP/1.1" 200 1)"}, {}),
            LogFormat::combined);
  EXPECT_EQ(detect_format(Lines{R"({"time":1})"}, {}), LogFormat::json);
  EXPECT_EQ(
      detect_format(Lines{R"(10.0.1.2:33317 [06/Feb/2009:12:14:14.655] a b/c 1/2/3/4/5 200 1 "GET / HTTP/1.1")"}, {}),
      LogFormat::haproxy);
  EXPECT_EQ(detect_format(Lines{"nothing", ""}, {}), std::nullopt);
}

}  // namespace
}  // namespace weir::simulate::log_line_test
