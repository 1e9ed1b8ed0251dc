#include "weir/net/http_url.h"

#include <gtest/gtest.h>

namespace weir::http_url_test {
namespace {

std::string described(std::string_view text) {
  const Result<HttpUrl> url = HttpUrl::parse(text);
  if (!url) return url.error().detail;
  return url->target.print() + " " + url->authority + " " + url->path;
}

TEST(HttpUrl, HasAHostAPortAndAPath) {
  EXPECT_EQ(described("http://127.0.0.1:3000"), "127.0.0.1:3000 127.0.0.1:3000 ");
  EXPECT_EQ(described("https://API.example.com/v2/"), "api.example.com:443 api.example.com /v2");
  EXPECT_EQ(described("H2://[::1]"), "[::1]:80 [::1] ");
  EXPECT_EQ(described("http://[::1]:81//"), "[::1]:81 [::1]:81 ");
  EXPECT_EQ(HttpUrl::parse("h2://x:1/a")->scheme, HttpUrl::Scheme::h2);
  EXPECT_EQ(HttpUrl::parse("HTTPS://X/a/")->print(), "https://x/a");
}

TEST(HttpUrl, RefusesWhatABackendCannotBe) {
  EXPECT_EQ(described("127.0.0.1:80"), "URL \"127.0.0.1:80\" must begin with http://, https:// or h2://");
  EXPECT_EQ(described("ftp://x"), "URL \"ftp://x\" must begin with http://, https:// or h2://");
  EXPECT_EQ(described("http://x?a"), "URL \"http://x?a\" must not have a query");
  EXPECT_EQ(described("http://x/#a"), "URL \"http://x/#a\" must not have a fragment");
  EXPECT_EQ(described("http://u:p@x/"), "URL \"http://u:p@x/\" must not have user info");
  EXPECT_EQ(described("http:///a"), "URL \"http:///a\" must name a host, with a port from 1 to 65535 or without one");
  EXPECT_EQ(described("http://x:70000"),
            "URL \"http://x:70000\" must name a host, with a port from 1 to 65535 or without one");
  EXPECT_EQ(described("http://x:0"), "URL \"http://x:0\" must not have port 0");
  EXPECT_EQ(described("http://unix:/run/x"),
            "URL \"http://unix:/run/x\" must name a host, with a port from 1 to 65535 or without one");
  EXPECT_EQ(described("http://a b"),
            "URL \"http://a b\" must not have spaces, control characters or bytes beyond ASCII");
}

}  // namespace
}  // namespace weir::http_url_test
