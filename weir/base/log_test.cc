#include "weir/base/log.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::log_test {
namespace {

// 2026-11-15T14:07:31.123456789Z
constexpr Wall kNow{std::chrono::sys_days{std::chrono::year{2026} / 11 / 15} + std::chrono::hours{14} +
                    std::chrono::minutes{7} + std::chrono::nanoseconds{31'123'456'789}};

TEST(Log, WritesTimeLevelAndMessage) {
  EXPECT_EQ(log_line(LogFormat::text, LogLevel::warn, kNow, "a port is taken"),
            "2026-11-15T14:07:31.123Z warn a port is taken\n");
  EXPECT_EQ(log_line(LogFormat::json, LogLevel::info, kNow, "ready: \"x\" \\ y"),
            R"({"time":"2026-11-15T14:07:31.123Z","level":"info","message":"ready: \"x\" \\ y"})"
            "\n");
}

TEST(Log, AddsTheFieldsOfARecordToAJsonLine) {
  constexpr std::string_view fields = R"("who":"127.0.0.1","after":{"burst":50})";
  EXPECT_EQ(
      json_log_line(LogLevel::info, kNow, "audit", fields),
      R"({"time":"2026-11-15T14:07:31.123Z","level":"info","message":"audit","who":"127.0.0.1","after":{"burst":50}})"
      "\n");
}

TEST(Log, ReportsWhichLevelsAreEnabled) {
  Log log([](std::string_view) {});
  EXPECT_FALSE(log.enabled(LogLevel::debug));
  EXPECT_TRUE(log.enabled(LogLevel::info));
  log.configure(LogLevel::debug, LogFormat::text);
  EXPECT_TRUE(log.enabled(LogLevel::debug));
}

TEST(Log, KeepsAMessageOnOneLine) {
  EXPECT_EQ(log_line(LogFormat::text, LogLevel::error, kNow, "a\nb\x1b[31m"),
            "2026-11-15T14:07:31.123Z error a\\nb\\u001b[31m\n");
  EXPECT_EQ(log_line(LogFormat::json, LogLevel::error, kNow, "a\nb\x01"),
            R"({"time":"2026-11-15T14:07:31.123Z","level":"error","message":"a\nb\u0001"})"
            "\n");
}

TEST(Log, ReplacesBytesThatAreNotUtf8) {
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    const std::string line = log_line(format, LogLevel::warn, kNow, "client=a\xff\xc3\xbc\xe2\x82");
    EXPECT_NE(line.find("client=a\xEF\xBF\xBD\xc3\xbc\xEF\xBF\xBD\xEF\xBF\xBD"), std::string::npos) << line;
  }
}

TEST(Log, WritesOnlyEnabledLevels) {
  std::string seen;
  Log log([&](std::string_view line) { seen += line.substr(line.find(' ') + 1); });
  log.write(LogLevel::debug, "one");
  log.info("two");
  log.configure(LogLevel::warn, LogFormat::text);
  log.info("three");
  log.error("four");
  log.configure(LogLevel::off, LogFormat::text);
  log.error("five");
  log.always(LogLevel::info, "six");
  EXPECT_EQ(seen, "info two\nerror four\ninfo six\n");
}

TEST(Log, ParsesLevelNames) {
  for (const auto word : {"trace", "debug", "info", "warn", "error", "off"}) EXPECT_EQ(print(log_level(word)), word);
}

}  // namespace
}  // namespace weir::log_test
