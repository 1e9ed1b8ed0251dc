#include "weir/proxy/relay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weir/http/test_backend_test.h"
#include "weir/http/testing/fake_exchange.h"
#include "weir/net/resolve.h"
#include "weir/proxy/proxy_handler.h"

namespace weir::proxy::relay_test {
namespace {

using namespace std::chrono_literals;
using http::FakeExchange;
using http::TestBackend;

constexpr std::string_view kForm = "Content-Type: application/x-www-form-urlencoded\r\n";

Answer allowed() {
  Answer answer;
  answer.verdict.all.push_back(Decision{true, 20, 19, Duration::zero(), 1s});
  answer.labels[0].limit = "per-ip";
  answer.labels[0].key = "ip";
  answer.labels[0].id = "192.0.2.1";
  return answer;
}

Answer denied() {
  Answer answer = allowed();
  answer.verdict.all[0] = Decision{false, 20, 0, 1s, 1s};
  answer.verdict.allowed = false;
  return answer;
}

// A proxy and two backends on one loop, with exchanges that have no connection. Everything is touched on the loop's
// thread only.
class RelayTest : public testing::Test {
 protected:
  void SetUp() override {
    loop_.run([&] {
      one_ = std::make_unique<TestBackend>(loop_.loop());
      two_ = std::make_unique<TestBackend>(loop_.loop());
      pool_ = std::make_unique<http::ClientPool>(loop_.loop(), resolver_, http::ClientPool::Options{});
      proxy_ = std::make_unique<ProxyLoop>(gateway_, *pool_, metrics_, service_metrics_, 1);
      handler_ = std::make_unique<ProxyHandler>(*proxy_);
    });
    gateway_.log = [&](LogLevel, std::string_view line) { logged_ += std::string(line) + "\n"; };
    configure("limits: {per-ip: {key: ip, rate: 20/s}}\nbackend: " + url(*one_) + "\n");
  }
  void TearDown() override {
    loop_.run([&] {
      exchange_.reset();
      EXPECT_EQ(gateway_.active.load(), 0) << "every request was counted out";
      EXPECT_EQ(metrics_.active.value(), 0u);
      handler_.reset();
      proxy_.reset();
      pool_.reset();
      one_.reset();
      two_.reset();
    });
  }

  std::string url(const TestBackend& backend, std::string_view scheme = "http") const {
    return std::string(scheme) + "://" + backend.target().print();
  }
  void configure(const std::string& text) {
    const config::Outcome read =
        config::parse("listen: [{address: \"127.0.0.1:0\", speak: proxy}]\n" + text, "test.yaml", {});
    const auto* const loaded = std::get_if<config::Loaded>(&read);
    ASSERT_NE(loaded, nullptr) << text;
    loop_.run([&] { proxy_->configure(*loaded); });
  }

  // A request with these fields begins.
  void begin(std::string_view line, std::string_view fields = "", std::string_view body = "", bool last = true) {
    loop_.run([&] {
      exchange_ = std::make_unique<FakeExchange>(
          *handler_, std::string(line) + " HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n", "192.0.2.1", now_);
      exchange_->begin(body, last);
    });
  }
  void answer(const Result<Answer>& answer) {
    loop_.run([&] { exchange_->answer(0, answer); });
  }
  void pass(std::string_view line = "GET /", std::string_view fields = "", std::string_view body = "",
            bool last = true) {
    begin(line, fields, body, last);
    answer(allowed());
  }
  void send(std::string_view bytes, bool last = false) {
    loop_.run([&] { exchange_->body(bytes, last); });
  }
  bool until(const std::function<bool()>& condition) { return loop_.until(condition); }
  FakeExchange::Record& seen() { return **exchange_; }
  // "404 no_route": the status and the code of an error, as soon as it has responded.
  std::string error() {
    EXPECT_TRUE(until([&] { return seen().status != 0; }));
    return loop_.run([&] {
      const std::string& content = seen().content;
      const std::size_t start = std::string_view("{\"error\":\"").size();
      const std::size_t end = std::min(content.find('"', start), content.size());
      return std::to_string(seen().status) + " " + (content.size() > start ? content.substr(start, end - start) : "");
    });
  }
  std::size_t asked() {
    return loop_.run([&] { return exchange_->asked().size(); });
  }
  // Runs until the response is complete and returns its content.
  std::string content() {
    EXPECT_TRUE(until([&] { return seen().complete || seen().aborted; }));
    return loop_.run([&] { return seen().content; });
  }
  std::size_t requests(const TestBackend& backend) {
    return loop_.run([&] { return backend.requests; });
  }
  // The script of a backend: keeps the peer and the request, and says nothing.
  void hold(TestBackend& backend) {
    loop_.run([&] {
      backend.script = [this](TestBackend::Peer& peer, std::size_t, const std::string& request) {
        peer_ = &peer;
        request_ = request;
      };
    });
  }

  http::ManualLoop loop_;
  // An attacker's name has a private address by the time it is dialed.
  Resolver resolver_{[](const Target& target) -> Result<std::vector<Address>> {
    if (target.host != "rebound.test") return look_up(target);
    return std::vector<Address>{{"127.0.0.1", target.port, {}}};
  }};
  Gateway gateway_{"."};
  ProxyMetrics metrics_;
  std::unique_ptr<TestBackend> one_;
  std::unique_ptr<TestBackend> two_;
  std::unique_ptr<http::ClientPool> pool_;
  ServiceMetrics service_metrics_;
  std::unique_ptr<ProxyLoop> proxy_;
  std::unique_ptr<ProxyHandler> handler_;
  std::unique_ptr<FakeExchange> exchange_;
  TestBackend::Peer* peer_ = nullptr;
  std::string request_;
  std::string logged_;
  Now now_{Time{1000s}, Wall{1'700'000'000s}};
};

// --- before the limits ---

TEST_F(RelayTest, RefusesWhatIsNotForwardedBeforeItAsks) {
  begin("TRACE /");
  EXPECT_EQ(error(), "405 method_not_allowed");
  EXPECT_EQ(asked(), 0u);
  configure("limits: {}\nroutes: [{name: a, match: {path: /a}, limits: none, backend: \"" + url(*one_) + "\"}]\n");
  begin("GET /b");
  EXPECT_EQ(error(), "404 no_route");
  EXPECT_EQ(asked(), 0u);
  begin("GET /%00");
  EXPECT_EQ(error(), "400 bad_request");
}

TEST_F(RelayTest, RefusesABodyThatIsTooLargeByItsLengthAndWhileItComes) {
  configure("limits: {}\nbackend: " + url(*one_) + "\nproxy: {body_max: 10}\n");
  begin("POST /", "Content-Length: 11\r\n", "", false);
  EXPECT_EQ(error(), "413 too_large");
  EXPECT_EQ(asked(), 0u);
  hold(*one_);
  pass("POST /", "Transfer-Encoding: chunked\r\n", "", false);
  send("0123456789");
  EXPECT_EQ(loop_.run([&] { return seen().status; }), 0) << "at the bound";
  send("x");
  EXPECT_EQ(error(), "413 too_large");
}

TEST_F(RelayTest, AbortsAResponseWhoseRequestBecomesTooLarge) {
  configure("limits: {}\nbackend: " + url(*one_) + "\nproxy: {body_max: 10}\n");
  loop_.run([&] {
    one_->answers_early = true;
    one_->script = [](TestBackend::Peer& peer, std::size_t, const std::string&) {
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\npart");
    };
  });
  pass("POST /", "Transfer-Encoding: chunked\r\n", "012345678", false);
  ASSERT_TRUE(until([&] { return seen().content == "part"; }));
  send("xyz");
  EXPECT_TRUE(loop_.run([&] { return seen().aborted; }));
}

TEST_F(RelayTest, BoundsTheRequestsInProgress) {
  configure("limits: {}\nbackend: " + url(*one_) + "\nproxy: {max_concurrent_requests: 1}\n");
  hold(*one_);
  pass();
  std::unique_ptr<FakeExchange> first = std::move(exchange_);
  begin("GET /");
  EXPECT_EQ(error(), "503 overloaded");
  EXPECT_NE(seen().fields.find("Retry-After: 1\r\n"), std::string::npos);
  loop_.run([&] {
    exchange_.reset();
    first.reset();
  });
  begin("GET /");
  EXPECT_EQ(asked(), 1u) << "there is room again";
}

// --- the question ---

TEST_F(RelayTest, AsksAgainWhenThereIsRoom) {
  loop_.run([&] {
    exchange_ = std::make_unique<FakeExchange>(*handler_, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "192.0.2.1", now_);
    exchange_->leave_no_room();
    exchange_->begin();
    EXPECT_TRUE(exchange_->waits_to_ask());
    exchange_->let_ask();
    ASSERT_EQ(exchange_->asked().size(), 1u);
    EXPECT_FALSE(std::get<RequestFacts>(exchange_->asked()[0].query.subject).attributes.empty());
  });
  answer(allowed());
  EXPECT_EQ(content(), "ok");
}

TEST_F(RelayTest, SaysWhoAsksSoThatATierInAHeaderIsBelievedOfTrustedPeersOnly) {
  loop_.run([&] {
    exchange_ = std::make_unique<FakeExchange>(*handler_, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "192.0.2.9", now_);
    exchange_->begin();
    EXPECT_EQ(std::get<RequestFacts>(exchange_->asked()[0].query.subject).caller, "192.0.2.9");
    exchange_ = std::make_unique<FakeExchange>(*handler_, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "", now_);
    exchange_->begin();
    EXPECT_EQ(std::get<RequestFacts>(exchange_->asked()[0].query.subject).caller, "unix");
  });
}

TEST_F(RelayTest, RespondsToDenialsAndToStoresThatCannotBeAsked) {
  begin("GET /");
  answer(denied());
  EXPECT_EQ(error(), "429 rate limit exceeded");
  EXPECT_NE(seen().fields.find("Retry-After: 1\r\n"), std::string::npos);
  begin("GET /");
  answer(Error{Fault::unavailable, "secret", 599});
  EXPECT_EQ(error(), "599 store_unavailable");
  EXPECT_EQ(seen().content.find("secret"), std::string::npos);
  EXPECT_EQ(requests(*one_), 0u);
}

TEST_F(RelayTest, APreflightPassesWithoutATokenUnlessAListDeniesIt) {
  configure("limits: {per-ip: {key: ip, rate: 20/s}}\npreflight: pass\nbackend: " + url(*one_) + "\n");
  const std::string_view fields = "Origin: https://a\r\nAccess-Control-Request-Method: PUT\r\n";
  begin("OPTIONS /", fields);
  loop_.run([&] { EXPECT_EQ(exchange_->asked()[0].query.mode, Mode::peek); });
  answer(denied());
  EXPECT_EQ(content(), "ok");
  EXPECT_EQ(seen().fields.find("RateLimit"), std::string::npos);
  begin("OPTIONS /", fields);
  Answer listed = denied();
  listed.access = Access::deny_listed;
  answer(listed);
  EXPECT_EQ(error(), "403 access denied");
  begin("OPTIONS /", "Origin: https://a\r\n");
  loop_.run([&] { EXPECT_EQ(exchange_->asked()[0].query.mode, Mode::spend) << "not a preflight"; });
}

TEST_F(RelayTest, APreflightNeedsNoKeyNoCostAndNoStore) {
  configure("limits: {per-ip: {key: ip, rate: 20/s}}\npreflight: pass\nbackend: " + url(*one_) + "\n");
  const std::string_view fields = "Origin: https://a\r\nAccess-Control-Request-Method: PUT\r\n";
  begin("OPTIONS /", fields);
  loop_.run([&] {
    const auto& facts = std::get<RequestFacts>(exchange_->asked()[0].query.subject);
    EXPECT_TRUE(facts.may_lack_keys);
    EXPECT_EQ(facts.cost, 1);
  });
  answer(Error{Fault::unavailable, "no store"});
  EXPECT_EQ(content(), "ok");
  begin("OPTIONS /", fields);
  answer(Error{Fault::invalid, "why", 0, "bad_request"});
  EXPECT_EQ(error(), "400 bad_request");
  pass("OPTIONS /", "Origin: https://a\r\n");
  loop_.run([&] { EXPECT_FALSE(std::get<RequestFacts>(exchange_->asked()[0].query.subject).may_lack_keys); });
}

// --- forms ---

class FormTest : public RelayTest {
 protected:
  void SetUp() override {
    RelayTest::SetUp();
    configure("limits: {email: {key: form:email, rate: 20/s}}\nbackend: " + url(*one_) + "\n");
  }
  // The values of form:email in the question.
  std::vector<std::string> emails() {
    return loop_.run([&] {
      std::vector<std::string> values;
      for (const Attribute& one : std::get<RequestFacts>(exchange_->asked()[0].query.subject).attributes) {
        if (one.name == "form:email") values.emplace_back(one.value);
      }
      return values;
    });
  }
};

TEST_F(FormTest, IsReadBeforeTheQuestionAndForwardedIntact) {
  hold(*one_);
  begin("POST /", std::string(kForm) + "Content-Length: 13\r\nExpect: 100-continue\r\n", "", false);
  EXPECT_EQ(asked(), 0u);
  EXPECT_EQ(loop_.run([&] { return seen().proceeded; }), 1) << "the backend cannot be asked whether it wants the body";
  send("x=1&ema");
  EXPECT_EQ(asked(), 0u);
  send("il=a+b", true);
  EXPECT_EQ(emails(), std::vector<std::string>{"a b"});
  answer(allowed());
  ASSERT_TRUE(until([&] { return peer_ != nullptr; }));
  EXPECT_TRUE(request_.ends_with("\r\n\r\nx=1&email=a+b")) << request_;
}

TEST_F(FormTest, HasTwoValuesIfTheyDifferSoThatTheQuestionIsRefused) {
  begin("POST /", std::string(kForm) + "Content-Length: 15\r\n", "email=a&email=b");
  EXPECT_EQ(emails(), (std::vector<std::string>{"a", "b"}));
  begin("POST /", std::string(kForm) + "Content-Length: 15\r\n", "email=a&email=a");
  EXPECT_EQ(emails(), std::vector<std::string>{"a"});
}

TEST_F(FormTest, OfAnotherTypeOrEncodingHasNoFieldsAndIsNotWaitedFor) {
  for (const std::string_view fields : {"Content-Type: text/plain\r\n", "", "Content-Type: application/json\r\n"}) {
    begin("POST /", std::string(fields) + "Content-Length: 10\r\n", "", false);
    EXPECT_EQ(asked(), 1u) << fields;
  }
  begin("POST /", std::string(kForm) + "Content-Encoding: gzip\r\nContent-Length: 7\r\n", "email=a");
  EXPECT_TRUE(emails().empty());
}

TEST_F(FormTest, OfExactlyTheBoundPassesAndOneByteMoreIsTooLarge) {
  begin("POST /", std::string(kForm) + "Content-Length: 65537\r\n", "", false);
  EXPECT_EQ(error(), "413 too_large");
  const std::string exact = "email=a&x=" + std::string(bounds::proxy_form_bytes_max - 10, 'y');
  begin("POST /", std::string(kForm) + "Transfer-Encoding: chunked\r\n", "", false);
  send(exact);
  EXPECT_EQ(loop_.run([&] { return seen().returned; }), exact.size()) << "more may come, to be too large";
  send("", true);
  EXPECT_EQ(emails(), std::vector<std::string>{"a"});
  begin("POST /", std::string(kForm) + "Transfer-Encoding: chunked\r\n", "", false);
  send(exact);
  send("z");
  EXPECT_EQ(error(), "413 too_large");
}

// --- the call ---

TEST_F(RelayTest, ReturnsCreditToEachSideOnlyWhenTheOtherHasTakenTheBytes) {
  hold(*one_);
  pass("POST /", "Content-Length: 5\r\n", "he", false);
  ASSERT_TRUE(until([&] { return seen().returned == 2; })) << "the backend's connection took them";
  send("llo", true);
  ASSERT_TRUE(until([&] { return peer_ != nullptr; }));
  EXPECT_TRUE(request_.ends_with("hello")) << request_;
  const std::string part(bounds::http_window_bytes, 'x');
  loop_.run([&] {
    peer_->send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(part.size() + 1) + "\r\n\r\n" + part + "!");
  });
  ASSERT_TRUE(until([&] { return seen().content.size() == part.size(); }));
  EXPECT_FALSE(loop_.run([&] { return seen().complete; })) << "one byte waits for credit";
  loop_.run([&] { exchange_->drained(part.size()); });
  EXPECT_EQ(content(), part + "!");
}

TEST_F(RelayTest, PassesOnInterimResponsesAndTrailers) {
  loop_.run([&] {
    one_->script = [](TestBackend::Peer& peer, std::size_t, const std::string&) {
      peer.send(
          "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
          "2\r\nok\r\n0\r\nX-T: v\r\n\r\n");
    };
  });
  pass();
  EXPECT_EQ(content(), "ok");
  ASSERT_EQ(seen().interim.size(), 1u);
  EXPECT_EQ(seen().interim[0].status, 103);
  EXPECT_EQ(seen().interim[0].fields, "Link: </a>\r\n");
  ASSERT_EQ(seen().trailers.size(), 1u);
  EXPECT_EQ(seen().trailers[0], (std::pair<std::string, std::string>{"X-T", "v"}));
}

TEST_F(RelayTest, ForwardsThe100OfTheBackendOrSendsItAfterASecond) {
  loop_.run([&] {
    one_->answers_early = true;
    one_->script = [this](TestBackend::Peer& peer, std::size_t, const std::string& request) {
      EXPECT_NE(request.find("Expect: 100-continue\r\n"), std::string::npos) << request;
      peer_ = &peer;
    };
  });
  const std::string_view fields = "Expect: 100-continue\r\nContent-Length: 2\r\n";
  pass("POST /", fields, "", false);
  ASSERT_TRUE(until([&] { return peer_ != nullptr; }));
  EXPECT_EQ(loop_.run([&] { return seen().proceeded; }), 0);
  loop_.run([&] { peer_->send("HTTP/1.1 100 Continue\r\n\r\n"); });
  EXPECT_TRUE(until([&] { return seen().proceeded == 1; }));
  pass("POST /", fields, "", false);
  loop_.run([&] { exchange_->expire(now_.time + 1s); });
  EXPECT_EQ(loop_.run([&] { return seen().proceeded; }), 1);
}

TEST_F(RelayTest, GoesToAnotherBackendIfNothingWasSentAndSaysWhenOneIsDown) {
  const std::string dead = "http://127.0.0.1:1";
  configure("limits: {}\nbackend: [\"" + dead + "\", \"" + url(*two_) + "\"]\n");
  for (int i = 0; i < 8; ++i) {
    pass("POST /", "Content-Length: 5\r\n", "hello");
    EXPECT_EQ(content(), "ok");
  }
  EXPECT_EQ(requests(*two_), 8u);
  EXPECT_EQ(metrics_.retries.value(), 3u) << "then it is out";
  EXPECT_TRUE(logged_.starts_with("backend unavailable: backend=http://127.0.0.1:1 error=cannot connect to "))
      << logged_;
  EXPECT_EQ(std::ranges::count(logged_, '\n'), 1) << logged_;
}

TEST_F(RelayTest, DoesNotSendARequestTwice) {
  configure("limits: {}\nbackend: [\"" + url(*one_) + "\", \"" + url(*two_) + "\"]\n");
  loop_.run(
      [&] { one_->script = [](TestBackend::Peer& peer, std::size_t, const std::string&) { peer.transport.close(); }; });
  pass();
  EXPECT_EQ(error(), "502 bad_backend_answer");
  EXPECT_EQ(requests(*two_), 0u);
}

TEST_F(RelayTest, AbortsAResponseThatTheBackendDoesNotFinish) {
  loop_.run([&] {
    one_->script = [](TestBackend::Peer& peer, std::size_t, const std::string&) {
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart");
      peer.transport.finish();
    };
  });
  pass();
  EXPECT_EQ(content(), "part");
  EXPECT_TRUE(loop_.run([&] { return seen().aborted; }));
}

TEST_F(RelayTest, EndsTheCallWhenTheClientLeavesOrItsRequestCannotBeRead) {
  hold(*one_);
  pass("POST /", "Content-Length: 5\r\n", "hello");
  ASSERT_TRUE(until([&] { return peer_ != nullptr; }));
  loop_.run([&] { exchange_->end(http::Ending::lost); });
  EXPECT_TRUE(until([&] { return one_->open() == 0; }));
  EXPECT_EQ(metrics_.route("").by_class[3].value(), 1u) << "499";
  loop_.run([&] {
    peer_ = nullptr;
    one_->answers_early = true;  // so that the head alone reaches the script
  });
  pass("POST /", "Accept: application/problem+json\r\nContent-Length: 5\r\n", "he", false);
  ASSERT_TRUE(until([&] { return peer_ != nullptr; }))
      << "a call that is not sent yet leaves its connection in the pool";
  loop_.run([&] { exchange_->refuse({408, "the content did not come in time"}); });
  EXPECT_EQ(loop_.run([&] { return std::pair(seen().status, seen().content_type); }),
            (std::pair<int, std::string>{408, "application/problem+json"}));
  EXPECT_NE(seen().content.find("\"detail\":\"The content did not come in time.\""), std::string::npos);
  loop_.run([&] { exchange_->end(http::Ending::canceled); });
  EXPECT_TRUE(until([&] { return one_->open() == 0; }));
  EXPECT_EQ(metrics_.route("").by_class[3].value(), 2u);
}

TEST_F(RelayTest, AnswersWhereTheHeadCouldNotBeReadWithTheErrorHeaders) {
  configure("limits: {}\nerror_headers: {x-a: b}\nbackend: " + url(*one_) + "\n");
  loop_.run([&] {
    exchange_ = std::make_unique<FakeExchange>(*handler_, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "192.0.2.1", now_);
    exchange_->refuse({431, "the head is longer than 64 KiB"});
  });
  EXPECT_EQ(error(), "431 header_too_large");
  EXPECT_TRUE(seen().fields.starts_with("x-a: b\r\nX-Request-Id: ")) << seen().fields;
  EXPECT_NE(seen().content.find("\"message\":\"The head is longer than 64 KiB.\""), std::string::npos);
  EXPECT_EQ(metrics_.route("").by_class[3].value(), 1u);
}

// --- backends that an answer names ---

TEST_F(RelayTest, GoesWhereTheAnswerSaysIfThatIsAllowed) {
  Answer elsewhere = allowed();
  const std::string named = url(*two_);
  elsewhere.backend_url = named;
  begin("GET /");
  answer(elsewhere);
  EXPECT_EQ(error(), "502 backend_refused") << "it is private";
  const std::vector<std::string> hosts = {"127.0.0.1"};
  elsewhere.backend_hosts = hosts;
  begin("GET /");
  answer(elsewhere);
  EXPECT_EQ(content(), "ok");
  EXPECT_EQ(requests(*one_), 0u);
  EXPECT_EQ(requests(*two_), 1u);
}

TEST_F(RelayTest, ChecksTheAddressThatANameHasWhenItIsDialed) {
  Answer elsewhere = allowed();
  const std::string named = "http://rebound.test:" + std::to_string(two_->target().port);
  elsewhere.backend_url = named;
  begin("GET /");
  answer(elsewhere);
  EXPECT_EQ(error(), "502 backend_refused");
  EXPECT_EQ(requests(*one_) + requests(*two_), 0u);
  EXPECT_EQ(service_metrics_.refused_backends[0].value(), 1u) << "private_address";
  const std::vector<std::string> hosts = {"rebound.test"};
  elsewhere.backend_hosts = hosts;
  begin("GET /");
  answer(elsewhere);
  EXPECT_EQ(content(), "ok") << "an allowed host may be private";
}

// --- tunnels ---

TEST_F(RelayTest, ATunnelCarriesBytesUntilBothSidesHaveEnded) {
  hold(*one_);
  pass("GET /", "Connection: upgrade\r\nUpgrade: chat\r\n");
  ASSERT_TRUE(until([&] { return peer_ != nullptr; }));
  EXPECT_NE(request_.find("Connection: Upgrade\r\nUpgrade: chat\r\n"), std::string::npos) << request_;
  loop_.run([&] { peer_->send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: chat\r\n\r\nhi"); });
  ASSERT_TRUE(until([&] { return seen().upgraded && seen().content == "hi"; }));
  peer_ = nullptr;
  send("ping\r\n\r\n");
  ASSERT_TRUE(until([&] { return peer_ != nullptr; })) << "the backend takes it for a request";
  EXPECT_EQ(request_, "ping\r\n\r\n");
  send("", true);
  EXPECT_TRUE(until([&] { return seen().complete; })) << "the backend's peer closes when the client's side ends";
}

TEST_F(RelayTest, AnUpgradeToHttp2IsNotPassedOnNorOneOfARequestWithContent) {
  hold(*one_);
  pass("GET /", "Connection: upgrade\r\nUpgrade: h2c\r\n");
  ASSERT_TRUE(until([&] { return peer_ != nullptr; }));
  EXPECT_EQ(request_.find("Upgrade"), std::string::npos) << request_;
  peer_ = nullptr;
  pass("POST /", "Connection: upgrade\r\nUpgrade: chat\r\nContent-Length: 2\r\n", "hi");
  ASSERT_TRUE(until([&] { return peer_ != nullptr; }));
  EXPECT_EQ(request_.find("Upgrade"), std::string::npos) << request_;
}

TEST_F(RelayTest, AnHttp2BackendGetsARequestWithoutItsUpgrade) {
  loop_.run([&] { one_->speaks_http2 = true; });
  configure("limits: {}\nbackend: " + url(*one_, "h2") + "\n");
  for (int i = 0; i < 4; ++i) {
    pass("GET /", "Connection: upgrade\r\nUpgrade: chat\r\n");
    content();
    EXPECT_EQ(seen().status, 200);
  }
  EXPECT_EQ(gateway_.upstreams.list().front().up, true);
}

}  // namespace
}  // namespace weir::proxy::relay_test
