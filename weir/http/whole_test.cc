#include "weir/http/whole.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "weir/http/testing/fake_exchange.h"

namespace weir::http::whole_test {
namespace {

std::string post(std::string_view fields) {
  return "POST /path?a=b HTTP/1.1\r\nHost: h\r\nX-Y: z\r\n" + std::string(fields) + "\r\n";
}

class Echo final : public WholeHandler {
 public:
  std::size_t body_max(const RequestHead&) const override { return 100'000; }
  bool refuse(Exchange& exchange, const RequestHead& head) override {
    ++refusals_asked;
    if (head.headers.find("refuse") == nullptr) return false;
    exchange.respond({403, {}, {}, {}}, {{}, true});
    return true;
  }
  void request(Exchange& exchange, const RequestHead& head, std::string_view content) override {
    text = std::string(head.path) + "?" + std::string(head.query) + " " + std::string(head.headers.find("x-y")->value);
    text.append(" ").append(content.substr(0, 40));
    Query* const query = exchange.ask();
    ASSERT_NE(query, nullptr);
    OwnBucket own;
    own.key = content;
    query->subject = own;
  }
  void answered(Exchange& exchange, std::uint32_t, const Result<Answer>&) override {
    exchange.respond({200, {}, {}, {}}, {text, true});
  }
  void ended(Exchange&, Ending) override { ++endings; }

  std::string text;
  int refusals_asked = 0;
  int endings = 0;
};

TEST(WholeHandler, PassesOnARequestThatArrivedWhole) {
  Echo handler;
  FakeExchange exchange(handler, post("Content-Length: 3\r\n"));
  exchange.begin("abc");
  exchange.answer(0, Answer{});
  EXPECT_EQ(exchange->content, "/path?a=b z abc");
  EXPECT_EQ(handler.refusals_asked, 1);
}

TEST(WholeHandler, GathersPiecesAndReturnsTheirCredit) {
  Echo handler;
  FakeExchange exchange(handler, post("Content-Length: 6\r\n"));
  exchange.begin("ab", false);
  exchange.body("cd");
  EXPECT_EQ(exchange->returned, 4u);
  EXPECT_EQ(handler.refusals_asked, 0);
  exchange.body("ef", true);
  EXPECT_EQ(handler.refusals_asked, 1);
  // The query points to gathered bytes, which live as long as the queries.
  ASSERT_EQ(exchange.asked().size(), 1u);
  EXPECT_EQ(std::get<OwnBucket>(exchange.asked()[0].query.subject).key, "abcdef");
  exchange.answer(0, Answer{});
  EXPECT_EQ(exchange->content, "/path?a=b z abcdef");
  EXPECT_EQ(exchange->proceeded, 1);
}

TEST(WholeHandler, RefusesFromTheHeadWhenTheClientWaitsForContinue) {
  Echo handler;
  FakeExchange exchange(handler, post("Content-Length: 6\r\nExpect: 100-continue\r\nRefuse: yes\r\n"));
  exchange.begin({}, false);
  EXPECT_EQ(exchange->status, 403);
  EXPECT_EQ(exchange->proceeded, 0);
}

TEST(WholeHandler, RefusesFromTheHeadOnlyWhatDoesNotFitAWindow) {
  Echo handler;
  const std::string length = std::to_string(bounds::http_window_bytes);
  FakeExchange fits(handler, post("Refuse: yes\r\nContent-Length: " + length + "\r\n"));
  fits.begin({}, false);
  EXPECT_EQ(fits->status, 0);
  fits.body(std::string(bounds::http_window_bytes, 'x'), true);
  EXPECT_EQ(fits->status, 403);
  const std::string more = std::to_string(bounds::http_window_bytes + 1);
  FakeExchange larger(handler, post("Refuse: yes\r\nContent-Length: " + more + "\r\n"));
  larger.begin({}, false);
  EXPECT_EQ(larger->status, 403);
}

TEST(WholeHandler, RefusesContentBeyondItsBound) {
  Echo handler;
  const std::string most(100'000, 'x');
  FakeExchange fits(handler, post("Transfer-Encoding: chunked\r\n"));
  fits.begin({}, false);
  fits.body(most);
  EXPECT_EQ(fits->status, 0);
  fits.body("x");
  EXPECT_EQ(fits->status, 413);
  EXPECT_EQ(fits->content, "{\"error\":\"too_large\",\"message\":\"the content is larger than the server accepts\"}\n");

  FakeExchange announced(handler, post("Content-Length: 100001\r\n"));
  announced.begin("x", false);
  EXPECT_EQ(announced->status, 413);
  FakeExchange at_bound(handler, post("Content-Length: 100000\r\n"));
  at_bound.begin("x", false);
  EXPECT_EQ(at_bound->status, 0);
}

TEST(WholeHandler, IsToldWhenThePeerLeavesInTheMiddle) {
  Echo handler;
  FakeExchange exchange(handler, post("Content-Length: 6\r\n"));
  exchange.begin("ab", false);
  exchange.end(Ending::lost);
  EXPECT_EQ(handler.endings, 1);
}

}  // namespace
}  // namespace weir::http::whole_test
