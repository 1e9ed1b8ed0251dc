#include "weir/http/choose_session.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "weir/http/testing/fake_exchange.h"

namespace weir::http::choose_session_test {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

SessionChoice choose(std::string_view first_bytes, std::string_view alpn = {}, bool tls = false,
                     bool complete = false) {
  FakeOutput output;
  NewConnection connection{output, {}, alpn, first_bytes, tls};
  connection.complete = complete;
  return choose_session(connection);
}

TEST(ChooseSession, FollowsAlpnUnderTls) {
  EXPECT_EQ(choose("", "h2", true), SessionChoice::http2);
  EXPECT_EQ(choose("", "http/1.1", true), SessionChoice::http1);
  EXPECT_EQ(choose("GET / HTTP/1.1", "h2", true), SessionChoice::http2) << "the session then refuses it";
  EXPECT_EQ(choose(kPreface, "", true), SessionChoice::http1) << "HTTP/2 over TLS needs ALPN";
}

TEST(ChooseSession, WaitsWhileTheBytesCouldBeEither) {
  for (std::size_t size = 0; size < kPreface.size(); ++size)
    EXPECT_EQ(choose(kPreface.substr(0, size)), SessionChoice::wait) << size;
  EXPECT_EQ(choose(kPreface), SessionChoice::http2);
  EXPECT_EQ(choose(std::string(kPreface) + "more"), SessionChoice::http2);
}

TEST(ChooseSession, SpeaksHttp1ToAPrefaceThatStaysIncomplete) {
  EXPECT_EQ(choose("P", {}, false, true), SessionChoice::http1);
  EXPECT_EQ(choose(kPreface.substr(0, kPreface.size() - 1), {}, false, true), SessionChoice::http1);
  EXPECT_EQ(choose(kPreface, {}, false, true), SessionChoice::http2);
}

TEST(ChooseSession, SpeaksHttp1ToEverythingElse) {
  EXPECT_EQ(choose("G"), SessionChoice::http1);
  EXPECT_EQ(choose("PUT / HTTP/1.1"), SessionChoice::http1);
  EXPECT_EQ(choose("\x16\x03\x01"), SessionChoice::http1);
  for (std::size_t size = 1; size <= kPreface.size(); ++size) {
    std::string bytes(kPreface.substr(0, size));
    bytes.back() = '!';
    EXPECT_EQ(choose(bytes), SessionChoice::http1) << size;
  }
}

}  // namespace
}  // namespace weir::http::choose_session_test
