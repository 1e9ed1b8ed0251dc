// What an array of checks holds while its response is not read.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "weir/http/http2_session.h"
#include "weir/http/http_shared.h"
#include "weir/http/testing/session_driver.h"
#include "weir/protocol/http/check_handler.h"
#include "weir/wire/http2_frames_test.h"

// Of AddressSanitizer's runtime; absent in other builds.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace weir::check_array_test {
namespace {

using namespace http2_frames;
using namespace std::chrono_literals;

TEST(CheckArray, HoldsOnlyTheResponseWhileAClientDoesNotReadIt) {
  if (__sanitizer_get_current_allocated_bytes == nullptr) GTEST_SKIP() << "counts with AddressSanitizer only";
  Health health;
  CheckHandler handler(health);
  http::HttpShared shared;
  http::SessionDriver client([&](const NewConnection& connection) {
    return std::make_unique<http::Http2Session>(shared, handler, connection);
  });
  client.answers_later = false;
  client.answer = [](const Asked&) -> Result<Answer> {
    Answer allowed;
    allowed.verdict.all.push_back(Decision{true, 20, 19, 0ns, 50ms});
    allowed.labels[0] = {"per-ip", "203.0.113.9", "ip", {"per-ip:203.0.113.9", 1s, 50ms}};
    return allowed;
  };
  std::string checks = "[";
  for (int i = 0; i < 1000; ++i) checks.append(i == 0 ? "" : ",").append(R"({"limit":"per-ip","id":"203.0.113.9"})");
  checks += "]";
  const auto ask = [&](std::uint32_t stream) {
    std::string bytes = headers(stream,
                                {{":method", "POST"},
                                 {":scheme", "http"},
                                 {":authority", "h"},
                                 {":path", "/v1/check"},
                                 {"content-type", "application/json"}},
                                end_headers);
    for (std::size_t at = 0; at < checks.size(); at += 16'384) {
      const std::string part = checks.substr(at, 16'384);
      bytes += data(stream, part, at + part.size() == checks.size() ? end_stream : 0);
    }
    client.send(bytes);
    return __sanitizer_get_current_allocated_bytes();
  };
  client.send(opening() + settings({{4, 0}}));
  const std::size_t before = ask(1);  // also grows what one loop uses for all arrays
  const std::size_t held = ask(3) - before;
  client.take();
  client.send(window_update(1, 1u << 20) + window_update(0, 1u << 20));
  std::size_t content = 0;
  for (const Frame& frame : frames(client.take())) content += frame.type == type_data ? frame.payload.size() : 0;
  EXPECT_GT(content, 200'000u);
  EXPECT_GE(held, content);
  EXPECT_LT(held, content + content / 4);
}

}  // namespace
}  // namespace weir::check_array_test
