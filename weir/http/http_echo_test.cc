// The conformance kit with a handler that uses everything an exchange has.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/testing/http_conformance.h"
#include "weir/http/whole.h"

namespace weir::http::http_echo_test {
namespace {

// Sends back what it gets, once it has all of it.
class Echo final : public Receiver {
 public:
  explicit Echo(std::string_view content_type) : content_type_(content_type) {}

  void body(Exchange& exchange, BodyPart part) override {
    text_ += part.bytes;
    exchange.consumed(part.bytes.size());
    if (!part.last) return;
    exchange.respond({200, content_type_, {}, {}}, {text_, part.trailers.empty(), {}});
    if (!part.trailers.empty()) exchange.write({{}, true, part.trailers});
  }

 private:
  std::string content_type_;
  std::string text_;
};

class EchoHandler final : public Handler {
 public:
  void begin(Exchange& exchange, const RequestHead& head, BodyPart first) override {
    if (head.path == "/echo") {
      auto echo = std::make_unique<Echo>(head.content_type);
      Echo& receiver = *echo;
      exchange.attach(std::move(echo));
      if (!first.bytes.empty() || first.last) receiver.body(exchange, first);
    } else if (head.path == "/head") {
      tell(exchange, head);
    } else if (head.path == "/ask") {
      if (exchange.ask() == nullptr) exchange.attach(std::make_unique<Late>());
    } else if (head.path == "/hint") {
      exchange.inform(103, {"Link: </a>\r\n", {}});
      exchange.respond({200, {}, {"X-A: 1\r\nx-a: 2\r\n", {}}, {}}, {"hinted", true});
    } else if (head.path == "/empty") {
      exchange.respond({204, {}, {}, {}}, {{}, true});
    } else if (head.path == "/large") {
      exchange.respond({200, "text/plain", {}, {}}, {std::string(200'000, 'x'), true});
    } else {
      exchange.respond({404, {}, {}, {}}, {{}, true});
    }
  }
  void body(Exchange&, BodyPart) override {}
  void answered(Exchange& exchange, std::uint32_t, const Result<Answer>& answer) override {
    exchange.respond({answer ? 200 : 503, {}, {}, {}}, {"answered", true});
  }

 private:
  class Late final : public Receiver {
   public:
    void body(Exchange&, BodyPart) override {}
    void can_ask(Exchange& exchange) override { exchange.ask(); }
    void answered(Exchange& exchange, std::uint32_t, const Result<Answer>&) override {
      exchange.respond({200, {}, {}, {}}, {"answered", true});
    }
  };

  // Everything that a handler can see of the head.
  static void tell(Exchange& exchange, const RequestHead& head) {
    std::string text;
    for (const std::string_view part : {head.method, head.target, head.path, head.query, head.host, head.content_type,
                                        head.content_encoding, head.accept, head.scheme, head.upgrade, exchange.peer()})
      text.append(part).append("|");
    text += head.content_length ? std::to_string(*head.content_length) : "no length";
    std::map<std::string, std::string> fields;
    for (const HttpHeader& header : head.headers.all()) fields[to_lower(header.name)] += header.value;
    fields.erase("transfer-encoding");
    for (const auto& [name, value] : fields) text.append(" ").append(name).append("=").append(value);
    exchange.respond({200, "text/plain", {}, {}}, {text, true});
  }
};

HttpConversation echo_conversation() {
  HttpConversation out;
  out.name = "Echo";
  out.handler = [](HttpShared&) { return std::make_shared<EchoHandler>(); };
  out.answer = [](const Asked&) { return Answer{}; };
  const ScriptFields text = {{"Content-Type", "text/plain"}};
  const std::string large(60'000, 'x');  // within a window: the kit sends without waiting
  out.steps = {
      {{"GET", "/none", {}, {}, {}}, 404, ""},
      {{"POST", "/echo", text, {"whole"}, {}}, 200, "whole"},
      {{"POST", "/echo", text, {"one", "two", "three"}, {}}, 200, "onetwothree"},
      {{"POST", "/echo", text, {"one", "two"}, {{"sum", "6"}}}, 200, "onetwo"},
      {{"GET", "/head?a=b", {{"Accept", "a/b"}, {"Content-Encoding", "x"}, {"Cookie", "c=d"}}, {}, {}}, 200, "*"},
      {{"POST", "/head", text, {"xyz"}, {}}, 200, "*"},
      {{"GET", "/ask", {}, {}, {}}, 200, "answered"},
      {{"GET", "/hint", {}, {}, {}}, 200, "hinted"},
      {{"GET", "/empty", {}, {}, {}}, 204, ""},
      {{"HEAD", "/large", {}, {}, {}}, 200, ""},
      {{"GET", "/large", {}, {}, {}}, 200, std::string(200'000, 'x')},
      {{"POST", "/echo", text, {large}, {}}, 200, large},
  };
  return out;
}

INSTANTIATE_TEST_SUITE_P(Echo, HttpConformance, ::testing::ValuesIn(both_versions(echo_conversation())));

}  // namespace
}  // namespace weir::http::http_echo_test
