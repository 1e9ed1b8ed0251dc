#include "weir/external/freshness.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/external/http_date.h"

namespace weir::external::freshness_test {
namespace {

using namespace std::chrono_literals;

constexpr Wall kNow = std::chrono::sys_days{std::chrono::November / 18 / 2026} + 12h;
constexpr Duration kCacheTtl = 60s;
constexpr Duration kMost = bounds::service_ttl_max;

struct Row {
  std::vector<std::string_view> cache_control;
  std::string_view expires;
  std::int64_t max_age;  // of the body; 0: none
  bool no_store;
  Duration fresh;
  bool keep_stale;
};

Freshness of(const Row& row, bool grpc = false) {
  std::vector<HttpHeader> headers = {{"Content-Type", "application/json"}};
  for (const std::string_view value : row.cache_control) headers.push_back({"cache-Control", value});
  if (!row.expires.empty()) headers.push_back({"EXPIRES", row.expires});
  ServiceReply reply;
  if (row.max_age > 0) reply.max_age = std::chrono::seconds{row.max_age};
  reply.no_store = row.no_store;
  return grpc ? grpc_freshness(reply, kCacheTtl) : http_freshness(headers, reply, kCacheTtl, kNow);
}

std::string show(const Row& row) {
  std::string text = "Cache-Control:";
  for (const std::string_view value : row.cache_control) text.append(" ").append(value);
  return text.append(", Expires: ").append(row.expires) + ", max_age " + std::to_string(row.max_age) +
         (row.no_store ? ", no_store" : "");
}

constexpr std::string_view kInAnHour = "Wed, 18 Nov 2026 13:00:00 GMT";
constexpr std::string_view kAnHourAgo = "Wed, 18 Nov 2026 11:00:00 GMT";

TEST(HttpFreshness, FirstMatchWins) {
  const Row rows[] = {
      // Every row of the precedence, alone.
      {{"max-age=30"}, "", 0, false, 30s, true},
      {{"no-cache"}, "", 0, false, 0s, true},
      {{"no-store"}, "", 0, false, 0s, false},
      {{}, kInAnHour, 0, false, 1h, true},
      {{}, "", 0, true, 0s, false},
      {{}, "", 20, false, 20s, true},
      {{}, "", 0, false, kCacheTtl, true},
      // Each against all that follow it.
      {{"max-age=30, no-cache"}, kInAnHour, 20, false, 30s, true},
      {{"no-cache, max-age=30"}, "", 0, false, 30s, true},
      {{"no-cache"}, kInAnHour, 20, false, 0s, true},
      {{"no-store"}, kInAnHour, 20, false, 0s, false},
      {{}, kInAnHour, 20, false, 1h, true},
      {{}, "", 20, true, 0s, false},
      // max-age wins over no-store, of the header and of the body; then there is no stale copy.
      {{"max-age=30, no-store"}, "", 0, false, 30s, false},
      {{"no-store, max-age=30"}, "", 0, false, 30s, false},
      {{"no-store", "max-age=30"}, "", 0, false, 30s, false},
      {{"max-age=30"}, "", 20, true, 30s, false},
      {{}, kInAnHour, 0, true, 1h, false},
      // Not cached.
      {{"max-age=0"}, kInAnHour, 20, false, 0s, true},
      {{"max-age=0, no-store"}, "", 20, false, 0s, false},
      {{}, kAnHourAgo, 20, false, 0s, true},
      {{}, "Wed, 18 Nov 2026 12:00:00 GMT", 20, false, 0s, true},
      {{}, "0", 20, false, 0s, true},
      {{}, "-1", 20, false, 0s, true},
      {{}, "soon", 20, false, 0s, true},
  };
  for (const Row& row : rows) {
    const Freshness freshness = of(row);
    EXPECT_EQ(freshness.fresh, row.fresh) << show(row);
    EXPECT_EQ(freshness.keep_stale, row.keep_stale) << show(row);
  }
}

TEST(HttpFreshness, ReadsCacheControlAsTheRfcSays) {
  const Row rows[] = {
      {{"MAX-AGE=30"}, "", 0, false, 30s, true},
      {{" private ,, max-age = 30 ,"}, "", 0, false, 30s, true},
      {{"max-age=\"30\""}, "", 0, false, 30s, true},
      {{"max-age=30, max-age=40"}, "", 0, false, 30s, true},
      {{"max-age=30", "max-age=40"}, "", 0, false, 30s, true},
      {{"private=\"a, max-age=5\", max-age=30"}, "", 0, false, 30s, true},
      {{"no-cache=\"set-cookie\""}, "", 0, false, 0s, true},
      {{"x-max-age=5"}, "", 20, false, 20s, true},
      {{"s-maxage=5, stale-if-error=9, public, must-revalidate"}, "", 20, false, 20s, true},
      {{""}, "", 20, false, 20s, true},
      // Invalid freshness is stale (RFC 9111 §4.2.1).
      {{"max-age"}, "", 20, false, 0s, true},
      {{"max-age="}, "", 20, false, 0s, true},
      {{"max-age=-5"}, "", 20, false, 0s, true},
      {{"max-age=1.5"}, "", 20, false, 0s, true},
      {{"max-age=\""}, "", 20, false, 0s, true},
      // One that does not fit is the largest.
      {{"max-age=99999999999999999999999999999"}, "", 0, false, kMost, true},
  };
  for (const Row& row : rows) {
    const Freshness freshness = of(row);
    EXPECT_EQ(freshness.fresh, row.fresh) << show(row);
    EXPECT_EQ(freshness.keep_stale, row.keep_stale) << show(row);
  }
}

TEST(HttpFreshness, NothingIsKeptLongerThanTheBound) {
  const std::int64_t most = kMost / 1s;
  EXPECT_EQ(of({{"max-age=" + std::to_string(most)}, "", 0, false, {}, true}).fresh, kMost);
  EXPECT_EQ(of({{"max-age=" + std::to_string(most + 1)}, "", 0, false, {}, true}).fresh, kMost);
  EXPECT_EQ(of({{}, "Wed, 18 Nov 2126 12:00:00 GMT", 0, false, {}, true}).fresh, kMost);
  EXPECT_EQ(of({{}, "", most + 1, false, {}, true}).fresh, kMost);
  EXPECT_EQ(http_freshness({}, {}, kMost + 1s, kNow).fresh, kMost);
}

TEST(GrpcFreshness, FirstMatchWins) {
  const Row rows[] = {
      {{}, "", 0, true, 0s, false},
      {{}, "", 20, true, 0s, false},
      {{}, "", 20, false, 20s, true},
      {{}, "", 0, false, kCacheTtl, true},
  };
  for (const Row& row : rows) {
    const Freshness freshness = of(row, true);
    EXPECT_EQ(freshness.fresh, row.fresh) << show(row);
    EXPECT_EQ(freshness.keep_stale, row.keep_stale) << show(row);
  }
}

TEST(HttpDate, HasThreeForms) {
  const Wall date = std::chrono::sys_days{std::chrono::November / 6 / 1994} + 8h + 49min + 37s;
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), date);
  EXPECT_EQ(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT"), date);
  EXPECT_EQ(parse_http_date("Sun Nov  6 08:49:37 1994"), date);
  EXPECT_EQ(parse_http_date("Sunday, 06-Nov-26 08:49:37 GMT"),
            std::chrono::sys_days{std::chrono::November / 6 / 2026} + 8h + 49min + 37s);
}

TEST(HttpDate, RefusesEverythingElse) {
  for (const std::string_view text :
       {"", "0", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, x6 Nov 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 9999 08:49:37 GMT", "Sun, 06 Nov 1969 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT "}) {
    EXPECT_EQ(parse_http_date(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace weir::external::freshness_test
