#include "weir/proxy/access_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace weir::proxy::access_log_test {
namespace {

using namespace std::chrono_literals;

AccessLine sample(const std::vector<AccessedLimit>& limits) {
  AccessLine line;
  line.time = Wall{1'700'000'000s + 1us};
  line.client = "192.0.2.7";
  line.method = "GET";
  line.host = "example.com";
  line.target = "/a\"b?secret=1";
  line.protocol = "HTTP/1.1";
  line.status = 200;
  line.bytes_in = 3;
  line.bytes_out = 4;
  line.duration = 1500us;
  line.upstream = "http://127.0.0.1:3000";
  line.upstream_time = 1ms;
  line.request_id = "id";
  line.user_agent = "curl";
  line.route = "rest";
  line.decision = "allowed";
  line.limits = &limits;
  return line;
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

TEST(AccessLog, CommonLogFormatHasThePathWithoutItsQuery) {
  EXPECT_EQ(print_common(sample({})), "192.0.2.7 - - [14/Nov/2023:22:13:20 +0000] \"GET /a\\\"b HTTP/1.1\" 200 4\n");
}

TEST(AccessLog, JsonHasEveryField) {
  EXPECT_EQ(print_json(sample({{"per-ip", "192.0.2.7", true}})),
            R"({"time":"2023-11-14T22:13:20.000001Z","client":"192.0.2.7","method":"GET","host":"example.com",)"
            R"("path":"/a\"b","protocol":"HTTP/1.1","status":200,"bytes_in":3,"bytes_out":4,"duration":0.0015,)"
            R"("upstream":"http://127.0.0.1:3000","upstream_time":0.001,"request_id":"id","user_agent":"curl",)"
            R"("route":"rest","decision":"allowed","limits":[{"limit":"per-ip","id":"192.0.2.7","allowed":true}]})"
            "\n");
}

TEST(AccessLog, LimitsHaveACostUnlessItIsOneAndATierIfThereIsOne) {
  EXPECT_NE(print_json(sample({{"a", "x", true, 3, "pro"}, {"b", "y", false}}))
                .find(R"("limits":[{"limit":"a","id":"x","allowed":true,"cost":3,"tier":"pro"},)"
                      R"({"limit":"b","id":"y","allowed":false}]})"),
            std::string::npos);
}

TEST(AccessLog, ARequestWithoutAHeadIsADash) {
  AccessLine line;
  line.time = Wall{1'700'000'000s};
  line.status = 400;
  EXPECT_EQ(print_common(line), "- - - [14/Nov/2023:22:13:20 +0000] \"-\" 400 0\n");
}

TEST(AccessLog, IsReopenedAfterARotation) {
  const std::string path = testing::TempDir() + "access_log_test." + std::to_string(getpid());
  AccessLog log;
  EXPECT_FALSE(log.enabled());
  config::Log settings;
  settings.access = config::AccessLog::common;
  settings.access_file = path;
  ASSERT_TRUE(log.configure(settings));
  log.write(sample({}));
  const std::string line = print_common(sample({}));
  EXPECT_EQ(read(path), line);
  ASSERT_EQ(std::rename(path.c_str(), (path + ".1").c_str()), 0);
  log.write(sample({}));
  EXPECT_EQ(read(path + ".1"), line + line);
  ASSERT_TRUE(log.reopen());
  log.write(sample({}));
  EXPECT_EQ(read(path), line);
  settings.access_file = "/nonexistent/x";
  EXPECT_FALSE(log.configure(settings));
  log.write(sample({}));
  EXPECT_EQ(read(path), line + line) << "keeps the file it has";
  std::remove(path.c_str());
  std::remove((path + ".1").c_str());
}

}  // namespace
}  // namespace weir::proxy::access_log_test
