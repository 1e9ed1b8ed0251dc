// What HTTP keeps in memory: within bounds while clients do not read, and little of it for the next request.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/call_state.h"
#include "weir/http/client_parts_test.h"
#include "weir/http/http1_session.h"
#include "weir/http/http2_session.h"
#include "weir/http/testing/fake_exchange.h"
#include "weir/http/testing/session_driver.h"
#include "weir/http/whole.h"
#include "weir/wire/http2_frames_test.h"

// Of AddressSanitizer's runtime; absent in other builds.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace weir::http_memory_test {
namespace {

using namespace http;
using namespace http2_frames;

std::size_t heap() {
  return __sanitizer_get_current_allocated_bytes();
}

class HttpMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (__sanitizer_get_current_allocated_bytes == nullptr) GTEST_SKIP() << "counts with AddressSanitizer only";
  }
  static std::string get(std::uint32_t stream) {
    return headers(stream, {{":method", "GET"}, {":scheme", "http"}, {":authority", "h"}, {":path", "/"}});
  }

  HttpShared shared_;
};

// Responds without an end, and writes whenever there is room.
class Fountain final : public Handler {
 public:
  void begin(Exchange& exchange, const RequestHead&, BodyPart) override {
    exchange.respond({200, {}, {}, {}}, {});
    fill(exchange);
  }
  void body(Exchange&, BodyPart) override {}
  void drained(Exchange& exchange, std::size_t) override { fill(exchange); }

 private:
  static void fill(Exchange& exchange) {
    while (const std::size_t room = exchange.room())
      exchange.write({std::string(std::min<std::size_t>(room, 4096), 'x'), false});
  }
};

TEST_F(HttpMemory, IsBoundedForAThousandStreamsThatNobodyReads) {
  constexpr std::size_t kConnections = 10;
  constexpr std::size_t kStreams = 100;
  Fountain handler;
  const auto connect = [&](std::uint32_t window) {
    auto client = std::make_unique<SessionDriver>(
        [&](const NewConnection& connection) { return std::make_unique<Http2Session>(shared_, handler, connection); });
    client->send(std::string(kPreface) + settings({{4, window}}) + settings_ack());
    return client;
  };
  std::vector<std::unique_ptr<SessionDriver>> slow;
  const std::size_t before = heap();
  for (std::size_t i = 0; i < kConnections; ++i) {
    slow.push_back(connect(0));
    for (std::uint32_t stream = 1; stream < 2 * kStreams; stream += 2) slow.back()->send(get(stream));
    slow.back()->take();
  }
  ASSERT_EQ(shared_.exchanges->open_count(), kConnections * kStreams);
  const std::size_t grown = heap() - before;
  // The stream that passes the first bound may add a window to it. A text has at most twice the room that it needs.
  constexpr std::size_t kBodies =
      bounds::http2_buffered_bytes + bounds::http_window_bytes + kStreams * bounds::http2_crowded_stream_bytes;
  constexpr std::size_t kEach = 64u << 10;   // a connection and its tables
  constexpr std::size_t kStream = 2u << 10;  // an exchange and its stream
  EXPECT_LT(grown, kConnections * (2 * kBodies + kEach + kStreams * kStream));
  EXPECT_GT(grown, kConnections * bounds::http2_buffered_bytes) << "there is something to bound";

  // One of them reads a little, and somebody else everything.
  slow[0]->send(window_update(5, 1000));
  EXPECT_EQ(frames(slow[0]->take()).size(), 1u);
  const auto other = connect(65'535);
  other->take();
  other->send(get(1));
  EXPECT_GT(other->take().size(), 60'000u);

  slow.clear();
  other->cut();
  EXPECT_EQ(shared_.exchanges->open_count(), 0u);
  EXPECT_LT(heap() - before, bounds::http_spare_exchanges_max * (bounds::http_spare_text_bytes_max + kStream));
}

// Responds with so many bytes.
class Whole final : public Handler {
 public:
  void begin(Exchange& exchange, const RequestHead&, BodyPart) override {
    exchange.respond({200, {}, {}, {}}, {std::string(bytes, 'x'), true});
  }
  void body(Exchange&, BodyPart) override {}
  std::size_t bytes = 0;
};

constexpr std::size_t kKept = bounds::http_spare_text_bytes_max;
constexpr std::size_t kNoise = 4096;  // compression tables and the like

TEST_F(HttpMemory, AnHttp2ExchangeThatIsOverKeepsABoundedResponse) {
  Whole handler;
  SessionDriver client(
      [&](const NewConnection& connection) { return std::make_unique<Http2Session>(shared_, handler, connection); });
  client.send(opening());
  std::uint32_t stream = 1;
  const auto left_by = [&](std::size_t bytes) {
    handler.bytes = bytes;
    client.send(get(stream));
    stream += 2;
    EXPECT_GT(client.take().size(), bytes);
    EXPECT_EQ(shared_.exchanges->open_count(), 0u);
    return heap();
  };
  const std::size_t before = left_by(1);
  EXPECT_LT(left_by(kKept + 1), before + kNoise);
  EXPECT_GE(left_by(kKept), before + kKept);
}

TEST_F(HttpMemory, AnHttp2ConnectionKeepsNothingOfALargeHead) {
  Whole handler;
  SessionDriver client(
      [&](const NewConnection& connection) { return std::make_unique<Http2Session>(shared_, handler, connection); });
  client.send(opening());
  std::uint32_t stream = 1;
  const auto left_by = [&](std::size_t bytes) {
    Fields fields = {{":method", "GET"}, {":scheme", "http"}, {":authority", "h"}, {":path", "/"}};
    for (std::size_t left = bytes; left > 0; left -= std::min<std::size_t>(left, 15'000))
      fields.emplace_back("x", std::string(std::min<std::size_t>(left, 15'000), 'y'));
    const std::string head = block(fields);
    std::string frames = headers(stream, {}, end_stream);
    for (std::size_t at = 0; at < head.size(); at += 16'384)
      frames += continuation(stream, head.substr(at, 16'384), at + 16'384 < head.size() ? 0 : end_headers);
    client.send(frames);
    stream += 2;
    client.take();
    return shared_.exchanges->open_count();
  };
  left_by(1);
  client.send(repeat(frame(0xFA, 0, 0, std::string(15'500, 'x')), 4));  // so that the driver has room
  const std::size_t before = heap();
  EXPECT_EQ(left_by(60'000), 0u);
  left_by(1);  // what was decoded is kept until the next read
  EXPECT_LT(heap(), before + 3 * kNoise);
}

// Responds when it is told to.
class Late final : public Handler {
 public:
  void begin(Exchange& exchange, const RequestHead&, BodyPart) override { open.push_back(&exchange); }
  void body(Exchange&, BodyPart) override {}
  bool overlaps() const noexcept override { return true; }
  std::vector<Exchange*> open;
};

TEST_F(HttpMemory, AnHttp1ExchangeThatIsOverKeepsABoundedResponse) {
  Late handler;
  SessionDriver client(
      [&](const NewConnection& connection) { return std::make_unique<Http1Session>(shared_, handler, connection); });
  const std::string get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  // The second response waits for the first, with its head.
  const std::size_t head = std::string_view("HTTP/1.1 200 OK\r\nContent-Length: 16000\r\n\r\n").size();
  const auto left_by = [&](std::size_t bytes) {
    handler.open.clear();
    client.send(get + get);
    handler.open.at(1)->respond({200, {}, {}, {}}, {std::string(bytes - head, 'x'), true});
    handler.open.at(0)->respond({200, {}, {}, {}}, {"y", true});
    client.settle();
    EXPECT_TRUE(client.take().ends_with("x"));
    EXPECT_EQ(shared_.exchanges->open_count(), 0u);
    return heap();
  };
  const std::size_t before = left_by(head + 1);
  EXPECT_LT(left_by(kKept + 1), before + kNoise);
  EXPECT_GE(left_by(kKept), before + kKept - kNoise);
}

TEST_F(HttpMemory, ABoundedNumberOfExchangesIsKept) {
  constexpr std::size_t kSpare = bounds::http_spare_exchanges_max;
  Whole handler;
  FakeOutput output;
  ExchangeHost host(shared_, handler, output, "192.0.2.1", false);
  std::vector<FakeExchange::Record*> open;
  open.reserve(kSpare + 1);
  const auto take = [&](std::size_t count) {
    while (open.size() < count) open.push_back(shared_.exchanges->take<FakeExchange::Record>(host));
    return heap();
  };
  const auto release = [&] {
    for (FakeExchange::Record* const exchange : open) shared_.exchanges->release(*exchange);
    open.clear();
    return heap();
  };
  take(kSpare + 1);
  const std::size_t kept = release();
  EXPECT_EQ(take(kSpare), kept) << "at the bound";
  EXPECT_GT(take(kSpare + 1), kept) << "one past it";
  EXPECT_EQ(release(), kept);
}

class Gatherer final : public WholeHandler {
 public:
  void request(Exchange& exchange, const RequestHead&, std::string_view content) override {
    exchange.respond({200, {}, {}, {}}, {std::to_string(content.size()), true});
  }
};

TEST(HttpKept, IsBoundedForAllIncompleteRequestsOfAConnection) {
  constexpr std::size_t kLarge = bounds::http_body_bytes_max;
  HttpShared shared;
  Gatherer handler;
  SessionDriver client(
      [&](const NewConnection& connection) { return std::make_unique<Http2Session>(shared, handler, connection); });
  client.send(opening());
  const auto send = [&](std::uint32_t stream, std::size_t bytes, unsigned flags) {
    client.send(
        headers(stream, {{":method", "POST"}, {":scheme", "http"}, {":authority", "h"}, {":path", "/"}}, end_headers));
    for (std::size_t left = bytes; left > 0; left -= std::min<std::size_t>(left, 16'384))
      client.send(data(stream, std::string(std::min<std::size_t>(left, 16'384), 'x')));
    if (flags != 0) client.send(data(stream, "", flags));
    std::string content;
    for (const Frame& frame : frames(client.take())) content += frame.type == type_data ? frame.payload : "";
    return content;
  };
  std::uint32_t stream = 1;
  for (; stream < 2 * (bounds::http_kept_bytes_max / kLarge); stream += 2) EXPECT_EQ(send(stream, kLarge, 0), "");
  EXPECT_NE(send(stream, 1, 0).find("\"overloaded\""), std::string::npos) << "one byte more";
  client.send(data(1, "", end_stream));
  std::string first;
  for (const Frame& frame : frames(client.take())) first += frame.type == type_data ? frame.payload : "";
  EXPECT_EQ(first, std::to_string(kLarge));
  EXPECT_EQ(send(stream + 2, kLarge, end_stream), std::to_string(kLarge)) << "there is room again";
  client.send(rst_stream(3, 8));
  EXPECT_EQ(send(stream + 4, kLarge, 0), "");
  EXPECT_EQ(send(stream + 6, kLarge, end_stream), std::to_string(kLarge)) << "and here";
  client.cut();
  EXPECT_EQ(shared.exchanges->open_count(), 0u);
}

// Where a call is that nobody carries.
class Nowhere final : public CallPlace {
 public:
  void write(CallState&, BodyPart) override {}
  void consumed(CallState&, std::size_t) override {}
  void cancel(CallState&) override {}
  bool has_sent(const CallState&) const noexcept override { return false; }
};

TEST_F(HttpMemory, ABoundedNumberOfCallsIsKept) {
  constexpr std::size_t kSpare = bounds::http_spare_calls_max;
  Nowhere nowhere;
  TellingOwner owner;
  CallStates calls;
  std::vector<Call> open;
  open.reserve(kSpare + 1);
  const auto take = [&](std::size_t count) {
    while (open.size() < count) {
      CallState& state = calls.take({}, {{}, true, {}}, owner, {}, {});
      state.place = &nowhere;
      open.push_back(state.handle());
    }
    return heap();
  };
  const auto cancel = [&] {
    open.clear();
    return heap();
  };
  take(kSpare + 1);
  const std::size_t kept = cancel();
  EXPECT_EQ(take(kSpare), kept) << "at the bound";
  EXPECT_GT(take(kSpare + 1), kept) << "one past it";
  EXPECT_EQ(cancel(), kept);
}

TEST_F(HttpMemory, ACallThatIsOverKeepsABoundedHead) {
  Nowhere nowhere;
  TellingOwner owner;
  CallStates calls;
  const std::string slashes(kKept + 1, '/');
  const auto left_by = [&](std::size_t bytes) {
    CallHead head;
    head.path = std::string_view(slashes).substr(0, bytes - std::string_view("GEThttp").size());
    CallState& state = calls.take(head, {{}, true, {}}, owner, {}, {});
    state.place = &nowhere;
    state.handle().cancel();
    return heap();
  };
  const std::size_t before = left_by(8);
  EXPECT_LT(left_by(kKept + 1), before + kNoise);
  EXPECT_GE(left_by(kKept), before + kKept);
}

}  // namespace
}  // namespace weir::http_memory_test
