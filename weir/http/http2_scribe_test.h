// For tests of Http2Session: a handler that writes down what it is told, and a connection with frames written by hand.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/time.h"
#include "weir/http/http2_session.h"
#include "weir/http/testing/session_driver.h"
#include "weir/wire/http2_frames_test.h"

namespace weir::http {

using namespace http2_frames;

inline std::string word_of(Ending ending) {
  switch (ending) {
    case Ending::complete:
      return "complete";
    case Ending::canceled:
      return "canceled";
    case Ending::aborted:
      return "aborted";
    case Ending::lost:
      return "lost";
    case Ending::drained:
      return "drained";
  }
  return "";
}

// Writes down what it is told, and does what the test says.
class Scribe final : public Handler {
 public:
  using Then = std::function<void(Exchange&)>;

  void begin(Exchange& exchange, const RequestHead& head, BodyPart first) override {
    exchange.notes<Exchange*>() = &exchange;
    open[std::string(head.path)] = &exchange;
    path_of[&exchange] = head.path;
    tell(exchange, "begin " + std::string(head.method));
    tell_part(first);
    if (on_begin) on_begin(exchange);
  }
  void body(Exchange& exchange, BodyPart part) override {
    tell(exchange, "body");
    tell_part(part);
    if (on_body) on_body(exchange);
    if (returns_credit) exchange.consumed(part.bytes.size());
  }
  void answered(Exchange& exchange, std::uint32_t question, const Result<Answer>&) override {
    tell(exchange, "answered " + std::to_string(question));
    if (on_answered) on_answered(exchange);
  }
  void can_ask(Exchange& exchange) override {
    tell(exchange, "can_ask");
    if (on_can_ask) on_can_ask(exchange);
  }
  void expired(Exchange& exchange) override {
    tell(exchange, "expired");
    if (on_expired) on_expired(exchange);
  }
  void drained(Exchange& exchange, std::size_t bytes) override {
    drained_bytes += bytes;
    ++drained_calls;
    if (on_drained) on_drained(exchange);
  }
  void draining(Exchange& exchange) override {
    if (on_draining) on_draining(exchange);
  }
  void ended(Exchange& exchange, Ending ending) override {
    tell(exchange, "ended " + word_of(ending));
    if (on_ended) on_ended(exchange);
    open.erase(path_of[&exchange]);
  }

  std::string take() { return std::exchange(record, {}); }

  Then on_begin, on_body, on_answered, on_can_ask, on_expired, on_drained, on_draining, on_ended;
  bool returns_credit = false;
  std::string record;
  std::map<std::string, Exchange*> open;
  std::map<Exchange*, std::string> path_of;
  std::size_t drained_bytes = 0;
  std::size_t drained_calls = 0;

 private:
  void tell(Exchange& exchange, const std::string& what) {
    record += (record.empty() ? "" : ", ") + path_of[&exchange] + " " + what;
  }
  void tell_part(const BodyPart& part) {
    if (!part.bytes.empty()) {
      record += " " + (part.bytes.size() > 20 ? std::to_string(part.bytes.size()) + " bytes" : std::string(part.bytes));
    }
    if (part.last) record += " last";
    for (const HttpHeader& field : part.trailers) record.append(" ").append(field.name).append("=").append(field.value);
  }
};

inline void answer_ok(Exchange& exchange) {
  exchange.respond({200, "text/plain", {}, {}}, {"ok", true});
}

class Http2SessionTest : public ::testing::Test {
 protected:
  Http2SessionTest() { open(); }

  void open() {
    const std::string start = opening();
    driver.reset();
    driver = std::make_unique<SessionDriver>([&](NewConnection connection) {
      connection.idle_timeout = idle_timeout;
      connection.max_age = max_age;
      return std::make_unique<Http2Session>(shared, handler, connection);
    });
    driver->send(start);
    driver->take();
  }
  // The frames written since, in words, without SETTINGS.
  std::string frames() {
    std::string all;
    for (const Frame& frame : http2_frames::frames(driver->take())) {
      const std::string one = words(frame);
      if (!one.empty()) all += (all.empty() ? "" : ", ") + one;
    }
    return all;
  }
  static std::string get(std::uint32_t stream, const std::string& path = "/", unsigned flags = end_headers | end_stream,
                         const Fields& more = {}, const std::string& method = "GET") {
    Fields fields = {{":method", method}, {":scheme", "http"}, {":authority", "h"}, {":path", path}};
    fields.insert(fields.end(), more.begin(), more.end());
    return headers(stream, fields, flags);
  }
  static std::string post(std::uint32_t stream, const std::string& path = "/", const Fields& more = {}) {
    return get(stream, path, end_headers, more, "POST");
  }
  void send(std::string_view bytes) { driver->send(bytes); }

  HttpShared shared;
  Scribe handler;
  // Of the next connection to open().
  Duration idle_timeout = bounds::http_idle_time_max;
  Duration max_age{};
  std::unique_ptr<SessionDriver> driver;
};

}  // namespace weir::http
