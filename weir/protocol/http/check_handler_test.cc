#include "weir/protocol/http/check_handler.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/testing/http1_peer.h"
#include "weir/http/testing/http1_response.h"
#include "weir/protocol/testing/http_texts.h"

namespace weir::check_handler_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

// The answer of limit "per-ip" (burst 20, 20 per second) to 203.0.113.9.
Answer answer_of(const Decision& decision) {
  Answer answer;
  answer.verdict.all.push_back(decision);
  answer.verdict.allowed = decision.allowed;
  answer.labels[0] = {"per-ip", "203.0.113.9", "ip", {"per-ip:203.0.113.9", 1s, 50ms}};
  answer.now.wall = Wall{1'700'000'000s};
  return answer;
}

Answer allowed() {
  return answer_of({true, 20, 19, 0ns, 50ms});
}
Answer denied() {
  return answer_of({false, 20, 0, 43ms, 993ms});
}
Answer never() {
  return answer_of({false, 20, 20, kNever, 0ns});
}

std::string post(std::string_view target, std::string_view content, std::string_view fields = {}) {
  std::string text = "POST ";
  text.append(target).append(" HTTP/1.1\r\nHost: h\r\nContent-Length: ").append(std::to_string(content.size()));
  if (fields.find("Content-Type") == fields.npos) text.append("\r\nContent-Type: application/json");
  return text.append("\r\n").append(fields).append("\r\n").append(content);
}

std::string get(std::string_view target, std::string_view method = "GET") {
  return std::string(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: h\r\n\r\n");
}

constexpr std::string_view kCheck = R"({"limit":"per-ip","id":"203.0.113.9"})";

struct Reply {
  int status = 0;
  std::string content;
  std::string head;

  std::string field(std::string_view name) const {
    ResponseHead parsed;
    if (parse_response_head(head, false, parsed).size == 0) return "?";
    const HttpHeader* const header = parsed.headers.find(name);
    return header == nullptr ? "" : std::string(header->value);
  }
};

class CheckHandlerTest : public ::testing::Test {
 protected:
  CheckHandlerTest() {
    health_.started = true;
    health_.ready = true;
  }

  std::string send(std::string_view bytes, const http::Http1Peer::AnswerTo& answer) {
    return peer_.send(bytes, answer);
  }
  std::string send(std::string_view bytes, const Result<Answer>& answer = allowed()) {
    return send(bytes, [&](const Asked&) { return answer; });
  }

  static Reply read(const std::string& text, bool to_head = false) {
    const auto response = http::read_http1_response(text, to_head);
    EXPECT_TRUE(response && response->size == text.size()) << text;
    if (!response) return {};
    return {response->head.status, std::string(without_newline(response->content)),
            text.substr(0, text.find("\r\n\r\n") + 4)};
  }
  Reply ask(std::string_view bytes, const Result<Answer>& answer = allowed()) { return read(send(bytes, answer)); }

  // The queries of one call, with what they point to.
  Query only_query(std::string_view bytes) {
    queries_.clear();
    kept_ = bytes;
    const auto taken = session_.receive(kept_, queries_, peer_.now);
    EXPECT_EQ(taken.has_value() ? *taken : 0, kept_.size());
    EXPECT_EQ(peer_.output.bytes, "");
    EXPECT_EQ(queries_.all().size(), 1u);
    return queries_.all().empty() ? Query{} : queries_.all()[0].query;
  }
  // Receives without answering; the bytes that were not taken stay in peer_.pending.
  std::string receive(std::string_view bytes) { return peer_.send(bytes); }
  std::string reply(std::size_t question, const Result<Answer>& answer) {
    peer_.reply(question, answer);
    return peer_.take();
  }

  Health health_;
  CheckHandler handler_{health_};
  http::Http1Peer peer_{handler_};
  http::Http1Session& session_ = *peer_.session;
  Queries queries_;
  std::string kept_;
};

TEST_F(CheckHandlerTest, AnswersACheck) {
  EXPECT_EQ(without_newline(send(post("/v1/check", kCheck))),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 257\r\n"
            "X-RateLimit-Limit: 20\r\nX-RateLimit-Remaining: 19\r\nX-RateLimit-Reset: 1700000001\r\n"
            "RateLimit-Policy: \"per-ip\";q=20;w=1\r\nRateLimit: \"per-ip\";r=19;t=1\r\n\r\n"
            R"({"allowed":true,"limit":"per-ip","id":"203.0.113.9","burst":20,"remaining":19,"retry_after":0,)"
            R"("reset_after":0.05,"decisions":[{"limit":"per-ip","id":"203.0.113.9","allowed":true,"burst":20,)"
            R"("remaining":19,"retry_after":0,"reset_after":0.05,"shadow":false}]})");
}

TEST_F(CheckHandlerTest, AnswersADeniedCheckWith429) {
  EXPECT_EQ(without_newline(send(post("/v1/check", kCheck), denied())),
            "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: 382\r\n"
            "X-RateLimit-Limit: 20\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1700000001\r\n"
            "RateLimit-Policy: \"per-ip\";q=20;w=1\r\nRateLimit: \"per-ip\";r=0;t=1\r\nRetry-After: 1\r\n\r\n"
            R"({"allowed":false,"limit":"per-ip","id":"203.0.113.9","burst":20,"remaining":0,"retry_after":0.043,)"
            R"("reset_after":0.993,"decisions":[{"limit":"per-ip","id":"203.0.113.9","allowed":false,"burst":20,)"
            R"("remaining":0,"retry_after":0.043,"reset_after":0.993,"shadow":false}],"error":"rate limit exceeded",)"
            R"("message":"Too many requests. Please try again later.","identifier":"ip:203.0.113.9"})");
}

TEST_F(CheckHandlerTest, AsksWhatTheBodiesSay) {
  const Query check = only_query(post("/v1/check", R"({"limit":"orders","id":"12\u0033","cost":7})"));
  const auto& one = std::get<NamedCharges>(check.subject);
  ASSERT_EQ(one.charges.size(), 1u);
  EXPECT_EQ(one.charges[0].limit, "orders");
  EXPECT_EQ(one.charges[0].id, "123");
  EXPECT_EQ(one.charges[0].cost, 7);
  EXPECT_EQ(check.mode, Mode::spend);

  const Query many = only_query(
      post("/v1/check", R"({"charge":"in-order","charges":[{"limit":"a","id":"1"},{"limit":"b","id":"2","cost":0}]})"));
  const auto& two = std::get<NamedCharges>(many.subject);
  ASSERT_EQ(two.charges.size(), 2u);
  EXPECT_EQ(two.charges[1].limit, "b");
  EXPECT_EQ(two.charges[1].cost, 0);
  EXPECT_EQ(two.order, Order::in_order);
  EXPECT_EQ(many.mode, Mode::spend);

  const Query throttle =
      only_query(post("/v1/throttle", R"({"key":"user:42","burst":20,"count":100,"period":"1s","cost":3})"));
  const auto& own = std::get<OwnBucket>(throttle.subject);
  EXPECT_EQ(own.key, "user:42");
  EXPECT_EQ(own.limit, Limit::per_second(100).with_burst(20));
  EXPECT_EQ(own.cost, 3);
  const Query minute = only_query(post("/v1/throttle", R"({"key":"k","count":5,"period":"1m"})"));
  EXPECT_EQ(std::get<OwnBucket>(minute.subject).limit, Limit::per_minute(5));

  EXPECT_EQ(only_query(post("/v1/refund", kCheck)).mode, Mode::refund);
  EXPECT_EQ(only_query(post("/v1/peek", kCheck)).mode, Mode::peek);
  EXPECT_EQ(only_query(post("/v1/reset", kCheck)).mode, Mode::reset);
}

TEST_F(CheckHandlerTest, ACostOfZeroOnlyAsksAsOverResp) {
  for (const auto& [target, body] :
       {std::pair("/v1/check", R"({"limit":"a","id":"1","cost":0})"),
        {"/v1/check", R"({"charges":[{"limit":"a","id":"1","cost":0},{"limit":"b","id":"1","cost":0}]})"},
        {"/v1/check", R"({"request":{"ip":"1.2.3.4"},"cost":0})"},
        {"/v1/throttle", R"({"key":"k","rate":1,"cost":0})"}}) {
    EXPECT_EQ(only_query(post(target, body)).mode, Mode::peek) << body;
  }
  EXPECT_EQ(only_query(post("/v1/check", R"({"request":{"ip":"1.2.3.4"}})")).mode, Mode::spend);
  EXPECT_EQ(only_query(post("/v1/refund", R"({"limit":"a","id":"1","cost":0})")).mode, Mode::refund);
}

struct Bad {
  std::string target;
  std::string content;
  std::string fields;
  int status;
  std::string code;
  std::string message;
};

TEST_F(CheckHandlerTest, SaysWhatIsWrongWithARequestAndGoesOn) {
  const std::string check = "/v1/check";
  const std::string throttle = "/v1/throttle";
  const std::vector<Bad> bads = {
      {check, "", "", 400, "bad_json", "byte 1: there is no value"},
      {check, "{", "", 400, "bad_json", R"(byte 1: an object that begins here lacks a ',', a ':', a "key" or its '}')"},
      {check, R"({"limit":"a","limit":"b"})", "", 400, "bad_json",
       R"(byte 14: the key "limit" is written twice in one object)"},
      {check, R"({"id":"b"})", "", 400, "bad_value", "limit is missing"},
      {check, R"({"limit":"a","id":"b","cots":1})", "", 400, "unknown_field",
       R"(unknown field "cots"; known are limit, id, cost, tier, charges, charge and request)"},
      {throttle, R"({"key":"k","count":0,"period":"1s"})", "", 400, "bad_value", "count 0 must be at least 1"},
      {check, "limit=a", "Content-Type: application/x-www-form-urlencoded\r\n", 415, "unsupported_media_type",
       R"(the content must be application/json, not "application/x-www-form-urlencoded")"},
      {"/v1/chek", "{}", "", 404, "not_found", R"(there is nothing at "/v1/chek")"},
      {"/", "", "", 404, "not_found", R"(there is nothing at "/")"},
  };
  for (const Bad& bad : bads) {
    SCOPED_TRACE(bad.target + " " + bad.content);
    const Reply reply = ask(post(bad.target, bad.content, bad.fields));
    EXPECT_EQ(reply.status, bad.status);
    std::string content = R"({"error":)" + json(bad.code).dump() + R"(,"message":)" + json(bad.message).dump() + "}";
    EXPECT_EQ(reply.content, content);
    EXPECT_FALSE(session_.finished());
  }
}

TEST_F(CheckHandlerTest, TellsFaultsByTheirKind) {
  const auto record = [&](Fault fault, std::string_view target = "/v1/check", std::string_view content = kCheck) {
    const Reply reply = ask(post(target, content), Error{fault, "a reason", 503});
    return std::to_string(reply.status) + " " + reply.content;
  };
  EXPECT_EQ(record(Fault::invalid), R"(400 {"error":"bad_id","message":"a reason"})");
  EXPECT_EQ(record(Fault::invalid, "/v1/throttle", R"({"key":"k","count":1,"period":"1s"})"),
            R"(400 {"error":"bad_value","message":"a reason"})");
  EXPECT_EQ(record(Fault::unknown), R"(404 {"error":"unknown_limit","message":"a reason"})");
  EXPECT_EQ(record(Fault::too_large), R"(413 {"error":"too_large","message":"a reason"})");
  EXPECT_EQ(record(Fault::timeout), R"(503 {"error":"store_unavailable","message":"a reason"})");
  EXPECT_EQ(record(Fault::unavailable), R"(503 {"error":"store_unavailable","message":"a reason"})");
  EXPECT_EQ(ask(post("/v1/check", kCheck), Error{Fault::overloaded, "a reason"}).field("retry-after"), "1");
  EXPECT_EQ(record(Fault::internal), R"(500 {"error":"internal","message":"the server failed; its log says why"})");
  EXPECT_EQ(record(Fault::unknown, "/v1/reset"), R"(404 {"error":"unknown_limit","message":"a reason"})");
}

TEST_F(CheckHandlerTest, RefusesACostThatCanNeverPass) {
  const std::string seven = R"({"limit":"per-ip","id":"203.0.113.9","cost":21})";
  const std::string content =
      R"({"error":"cost_exceeds_burst","message":"cost 21 can never pass: burst is 20 in limit \"per-ip\""})";
  for (const std::string_view target : {"/v1/check", "/v1/peek"}) {
    const Reply reply = ask(post(target, seven), never());
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.content, content);
  }
  Answer listed = never();
  listed.labels[0].cost = 21;
  const std::string charges = R"({"charges":[{"limit":"per-ip","id":"203.0.113.9","cost":21}]})";
  EXPECT_EQ(ask(post("/v1/check", charges), listed).content, content);
  Answer own = never();
  own.labels[0].limit = {};
  const Reply reply = ask(post("/v1/throttle", R"({"key":"k","count":20,"period":"1s","cost":21})"), own);
  EXPECT_EQ(reply.content, R"({"error":"cost_exceeds_burst","message":"cost 21 can never pass: burst is 20"})");
}

TEST_F(CheckHandlerTest, TellsABlockedClientWithoutAWait) {
  const Reply reply = ask(post("/v1/check", kCheck), answer_of({false, 0, 0, kNever, 0ns}));
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(reply.field("Retry-After"), "");
  const json content = json::parse(reply.content);
  EXPECT_EQ(content["retry_after"], -1);
  EXPECT_EQ(content["message"], "This client is blocked.");
}

TEST_F(CheckHandlerTest, APeekTellsADenialWith200) {
  const Reply reply = ask(post("/v1/peek", kCheck), denied());
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(json::parse(reply.content)["allowed"], false);
  EXPECT_FALSE(json::parse(reply.content).contains("error"));
}

TEST_F(CheckHandlerTest, AResetHasNoContent) {
  EXPECT_EQ(send(post("/v1/reset", kCheck)), "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST_F(CheckHandlerTest, ACostMeansNothingToAReset) {
  EXPECT_EQ(ask(post("/v1/reset", R"({"limit":"per-ip","id":"203.0.113.9","cost":21})"), never()).status, 204)
      << "an error would say that nothing was done";
}

TEST_F(CheckHandlerTest, NamesTheKeyOfAThrottle) {
  Answer own = denied();
  own.labels[0] = {"", "user:42", "", {"*:user:42", 1s, 50ms, Source::caller}};
  const Reply reply = ask(post("/v1/throttle", R"({"key":"user:42","burst":20,"count":20,"period":"1s"})"), own);
  const json content = json::parse(reply.content);
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(content["limit"], "");
  EXPECT_EQ(content["id"], "user:42");
  EXPECT_EQ(content["identifier"], "user:42");
  EXPECT_EQ(reply.field("RateLimit-Policy"), "\"throttle\";q=20;w=1");
}

TEST_F(CheckHandlerTest, TellsAllDecisionsAndExplainsThem) {
  Answer answer = denied();
  answer.verdict.all.push_back(Decision{true, 100, 99, 0ns, 36s});
  answer.labels[1] = {"everyone", "", "global", {"everyone:", 3600s, 36s, Source::override}, {}, true};
  answer.verdict.degraded = true;
  const Reply plain = ask(post("/v1/check", kCheck), answer);
  EXPECT_EQ(json::parse(plain.content)["decisions"].size(), 2u);
  EXPECT_EQ(json::parse(plain.content)["degraded"], true);
  EXPECT_FALSE(json::parse(plain.content)["decisions"][0].contains("bucket"));
  EXPECT_EQ(plain.field("RateLimit"), "\"per-ip\";r=0;t=1") << "a shadow limit is nobody's business";

  const json explained = json::parse(ask(post("/v1/check?explain=true", kCheck), answer).content);
  EXPECT_EQ(explained["decisions"][0]["bucket"], "per-ip:203.0.113.9");
  EXPECT_EQ(explained["decisions"][1]["source"], "override");
  EXPECT_EQ(explained["decisions"][1]["shadow"], true);
}

TEST_F(CheckHandlerTest, WhoPassesWaitsForNoShadow) {
  Answer answer = denied();
  answer.verdict.allowed = true;
  answer.labels[0].shadow = true;
  const json content = json::parse(ask(post("/v1/check", kCheck), answer).content);
  EXPECT_EQ(content["allowed"], true);
  EXPECT_EQ(content["retry_after"], 0);
  EXPECT_EQ(content["decisions"][0]["retry_after"], 0.043);
}

TEST_F(CheckHandlerTest, AVerdictWithoutDecisionsAllows) {
  const Reply reply = ask(post("/v1/check", kCheck), Answer{});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.content, R"({"allowed":true,"decisions":[]})");
  EXPECT_EQ(reply.field("X-RateLimit-Limit"), "");
}

TEST_F(CheckHandlerTest, TellsADenialAsAProblemDocumentToThoseWhoAsk) {
  const Reply reply = ask(post("/v1/check", kCheck, "Accept: application/problem+json\r\n"), denied());
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(reply.field("Content-Type"), "application/problem+json");
  EXPECT_EQ(reply.field("Retry-After"), "1");
  EXPECT_EQ(reply.content, R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",)"
                           R"("title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,)"
                           R"("detail":"Too many requests. Please try again later.","violated-policies":["per-ip"]})");
  EXPECT_EQ(ask(post("/v1/check", kCheck, "Accept: application/problem+json\r\n")).field("Content-Type"),
            "application/json");
}

TEST_F(CheckHandlerTest, AnswersAnArrayInItsOrder) {
  const std::string items = R"([{"limit":"a","id":"1","cost":1},{"limit":"a"},{"limit":"a","id":"3","cost":3},)"
                            R"({"limit":"a","id":"4","cost":4},5])";
  EXPECT_EQ(receive(post("/v1/check", items)), "");
  ASSERT_EQ(peer_.asked.size(), 3u);
  EXPECT_EQ(this->reply(2, denied()), "");
  EXPECT_EQ(this->reply(0, allowed()), "");
  const Reply reply = read(this->reply(1, Error{Fault::unknown, "no limit \"a\""}));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.field("X-RateLimit-Limit"), "");
  const json answers = json::parse(reply.content);
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_EQ(answers[0]["allowed"], true);
  EXPECT_EQ(answers[1], json({{"error", "bad_value"}, {"message", "id is missing"}}));
  EXPECT_EQ(answers[2], json({{"error", "unknown_limit"}, {"message", "no limit \"a\""}}));
  EXPECT_EQ(answers[3]["allowed"], false);
  EXPECT_EQ(answers[3]["retry_after"], 0.043);
  EXPECT_FALSE(answers[3].contains("error"));
  EXPECT_EQ(answers[4]["message"], "a check must be an object, not a number");
}

TEST_F(CheckHandlerTest, AnswersEmptyArraysAndArraysOfMistakesAtOnce) {
  EXPECT_EQ(ask(post("/v1/check", "[]")).content, "[]");
  EXPECT_EQ(json::parse(ask(post("/v1/check", "[1,2]")).content).size(), 2u);
}

TEST_F(CheckHandlerTest, ResetsManyWith204UnlessOneFails) {
  const std::string two = "[" + std::string(kCheck) + "," + std::string(kCheck) + "]";
  EXPECT_EQ(ask(post("/v1/reset", two)).status, 204);
  const Reply reply = ask(post("/v1/reset", "[" + std::string(kCheck) + ",1]"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.content, R"([{},{"error":"bad_value","message":"a check must be an object, not a number"}])");
}

std::string array_of(std::size_t count) {
  std::string text = "[";
  for (std::size_t i = 0; i < count; ++i) {
    text += std::string(i > 0 ? "," : "") + R"({"limit":"a","id":")" + std::to_string(i) + "\"}";
  }
  return text + "]";
}

TEST_F(CheckHandlerTest, TakesAThousandChecksInOneCallAndNotOneMore) {
  std::vector<std::string> ids;
  const auto answer = [&](const Asked& asked) -> Result<Answer> {
    ids.emplace_back(std::get<NamedCharges>(asked.query.subject).charges[0].id);
    return allowed();
  };
  for (const std::string_view fields : {"", "Connection: close\r\n"}) {
    if (!fields.empty()) ids.clear();
    const Reply reply = read(send(post("/v1/check", array_of(1000), fields), answer));
    EXPECT_EQ(json::parse(reply.content).size(), 1000u);
    ASSERT_EQ(ids.size(), 1000u);
    for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], std::to_string(i));
    EXPECT_EQ(session_.finished(), !fields.empty());
    if (!fields.empty()) break;
    const Reply more = read(send(post("/v1/check", array_of(1001)), answer));
    EXPECT_EQ(more.status, 413);
    EXPECT_EQ(more.content, R"({"error":"too_large","message":"the array has more than 1000 checks"})");
  }
}

TEST_F(CheckHandlerTest, WritesAnswersInTheOrderOfTheRequests) {
  EXPECT_EQ(receive(post("/v1/check", kCheck) + get("/healthz") + post("/v1/peek", kCheck) + post("/v1/check", "x") +
                    post("/v1/reset", kCheck)),
            "");
  EXPECT_EQ(reply(2, allowed()), "");
  EXPECT_EQ(reply(1, denied()), "");
  const std::string out = reply(0, allowed());
  std::string statuses;
  for (std::size_t at = out.find("HTTP/1.1 "); at != out.npos; at = out.find("HTTP/1.1 ", at + 1)) {
    statuses += out.substr(at + 9, 4);
  }
  EXPECT_EQ(statuses, "200 200 200 400 204 ");
}

TEST_F(CheckHandlerTest, ReadsNoMoreWhileTooMuchIsUnanswered) {
  std::string bytes = post("/v1/check", kCheck);
  for (std::size_t i = 0; i < 2 * bounds::http_pipeline_max; ++i) bytes += get("/healthz");
  receive(bytes);
  const std::size_t taken = bytes.size() - peer_.pending.size();
  EXPECT_EQ(taken, post("/v1/check", kCheck).size() + (bounds::http_pipeline_max - 1) * get("/healthz").size());
  EXPECT_FALSE(session_.reading());
  reply(0, allowed());
  receive({});
  EXPECT_EQ(peer_.pending, "");
}

TEST_F(CheckHandlerTest, AsksNoMoreWhileAThousandQuestionsAreOpen) {
  const std::string one = post("/v1/check", array_of(250));
  receive(one + one + one + one + one);
  EXPECT_EQ(peer_.asked.size(), bounds::http_checks_max);
  EXPECT_EQ(peer_.pending, one);
}

TEST_F(CheckHandlerTest, AnswersProbes) {
  const auto record = [&](std::string_view target) {
    const Reply reply = ask(get(target));
    return std::to_string(reply.status) + " " + reply.content;
  };
  EXPECT_EQ(record("/healthz"), R"(200 {"status":"alive"})");
  EXPECT_EQ(record("/readyz"), R"(200 {"status":"ready"})");
  EXPECT_EQ(record("/startz"), R"(200 {"status":"started"})");
  EXPECT_EQ(record("/readyz?deep=true"), R"(200 {"status":"ready"})");
  health_.ready = false;
  health_.started = false;
  EXPECT_EQ(record("/healthz"), R"(200 {"status":"alive"})");
  EXPECT_EQ(record("/readyz?deep=true"), R"(503 {"status":"not ready"})");
  EXPECT_EQ(record("/startz"), R"(503 {"status":"starting"})");
}

TEST_F(CheckHandlerTest, AnswersHeadAndOptions) {
  EXPECT_EQ(send(get("/healthz", "HEAD")),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 19\r\n\r\n");
  EXPECT_EQ(send(get("/v1/check", "OPTIONS")), "HTTP/1.1 204 No Content\r\nAllow: POST, OPTIONS\r\n\r\n");
  EXPECT_EQ(send(get("/readyz", "OPTIONS")), "HTTP/1.1 204 No Content\r\nAllow: GET, HEAD, OPTIONS\r\n\r\n");
  EXPECT_EQ(send(get("*", "OPTIONS")), "HTTP/1.1 204 No Content\r\nAllow: GET, HEAD, POST, OPTIONS\r\n\r\n");
  const Reply get_check = ask(get("/v1/check"));
  EXPECT_EQ(get_check.status, 405);
  EXPECT_EQ(get_check.field("Allow"), "POST, OPTIONS");
  EXPECT_EQ(get_check.content, R"({"error":"method_not_allowed","message":"/v1/check takes POST, not \"GET\""})");
  const Reply post_probe = ask(post("/healthz", "{}"));
  EXPECT_EQ(post_probe.content,
            R"({"error":"method_not_allowed","message":"/healthz takes GET or HEAD, not \"POST\""})");
  EXPECT_EQ(read(send(get("/v1/check", "HEAD")), true).status, 405);
}

TEST_F(CheckHandlerTest, TakesEveryJsonMediaType) {
  for (const std::string_view type : {"application/json", "Application/JSON; charset=utf-8", "application/x+json"}) {
    EXPECT_EQ(ask(post("/v1/check", kCheck, "Content-Type: " + std::string(type) + "\r\n")).status, 200) << type;
  }
  EXPECT_EQ(ask(post("/v1/check", kCheck, "Content-Type: +json\r\n")).status, 415);
}

TEST_F(CheckHandlerTest, ClosesWhenAskedToAndReadsNothingAfterwards) {
  const std::string last = post("/v1/check", kCheck, "Connection: close\r\n");
  const Reply reply = read(send(last + post("/v1/check", kCheck)));
  EXPECT_EQ(reply.field("Connection"), "close");
  EXPECT_TRUE(session_.finished());
}

TEST_F(CheckHandlerTest, Http10ClosesUnlessItAsksToStay) {
  EXPECT_EQ(ask("GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").field("Connection"), "keep-alive");
  EXPECT_FALSE(session_.finished());
  EXPECT_EQ(ask("GET /healthz HTTP/1.0\r\n\r\n").field("Connection"), "close");
  EXPECT_TRUE(session_.finished());
}

TEST_F(CheckHandlerTest, SaysContinueOnlyWhenItsTurnHasCome) {
  const std::string head =
      "POST /v1/check HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
      "Content-Length: " +
      std::to_string(kCheck.size()) + "\r\n\r\n";
  EXPECT_EQ(send(head), kHttpContinue);
  EXPECT_EQ(ask(kCheck).status, 200);

  EXPECT_EQ(receive(post("/v1/check", kCheck) + head), "");
  const std::string out = reply(1, allowed());
  EXPECT_TRUE(out.starts_with("HTTP/1.1 200 OK"));
  EXPECT_TRUE(out.ends_with(kHttpContinue));
}

TEST_F(CheckHandlerTest, RefusesInsteadOfSayingContinue) {
  const Reply reply = ask("POST /v1/nothing HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.field("Connection"), "close");
  EXPECT_TRUE(session_.finished());
}

TEST_F(CheckHandlerTest, GivesAPeerTenSecondsForAHeadAndThirtyForContent) {
  const Time start{1000s};
  peer_.now.time = start;
  EXPECT_EQ(session_.deadline(), Time::max());
  EXPECT_EQ(send("POST /v1/check HT"), "");
  peer_.now.time = start + 9s;
  EXPECT_EQ(send("TP/1.1\r\nHost: h\r\n"), "");
  EXPECT_EQ(session_.deadline(), start + 10s);
  EXPECT_EQ(send("Content-Length: 37\r\n\r\n{"), "");
  EXPECT_EQ(session_.deadline(), start + 39s);
  peer_.now.time = start + 20s;
  EXPECT_EQ(send("\"limit\""), "");
  EXPECT_EQ(session_.deadline(), start + 39s);
  session_.expire(start + 38s);
  EXPECT_EQ(peer_.take(), "");
  session_.expire(start + 39s);
  const std::string out = peer_.take();
  EXPECT_EQ(read(out).status, 408);
  EXPECT_EQ(read(out).content, R"({"error":"request_timeout","message":"the content did not come in time"})");
  EXPECT_TRUE(session_.finished());
  EXPECT_EQ(session_.deadline(), Time::max());
}

TEST_F(CheckHandlerTest, CountsEachRequestsTimeAnew) {
  peer_.now.time = Time{100s};
  send("GET /hea");
  peer_.now.time = Time{105s};
  send("lthz HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(session_.deadline(), Time::max());
  peer_.now.time = Time{106s};
  send("GET /");
  EXPECT_EQ(session_.deadline(), Time{116s});
  session_.expire(Time{116s});
  EXPECT_EQ(read(peer_.take()).content,
            R"({"error":"request_timeout","message":"the head of the request did not come in time"})");
}

TEST_F(CheckHandlerTest, DoesNotHurryAPeerThatWaitsForItsAnswer) {
  peer_.now.time = Time{100s};
  receive(post("/v1/check", kCheck));
  EXPECT_EQ(session_.deadline(), Time::max());
}

TEST_F(CheckHandlerTest, FinishesARequestItHasBegunToReadBeforeItDrains) {
  const std::string bytes = post("/v1/check", kCheck);
  EXPECT_EQ(send(bytes.substr(0, bytes.size() - 1)), "");
  session_.drain(peer_.now.time);
  EXPECT_FALSE(session_.finished());
  const Reply reply = read(send(bytes.substr(bytes.size() - 1) + bytes));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.field("Connection"), "close");
  EXPECT_TRUE(session_.finished());
}

TEST_F(CheckHandlerTest, DatesItsAnswersOnceItWasToldTheTime) {
  EXPECT_EQ(ask(get("/healthz")).field("Date"), "");
  peer_.now.wall = Wall{784'111'777s + 999ms};
  EXPECT_EQ(ask(get("/healthz")).field("Date"), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(ask(get("/nowhere")).field("Date"), "Sun, 06 Nov 1994 08:49:37 GMT");
  peer_.now.wall = Wall{784'111'778s};
  EXPECT_EQ(ask(get("/healthz")).field("Date"), "Sun, 06 Nov 1994 08:49:38 GMT");
  peer_.now.wall = Wall{784'111'770s};  // the wall clock may be set back
  EXPECT_EQ(ask(get("/healthz")).field("Date"), "Sun, 06 Nov 1994 08:49:30 GMT");
}

TEST_F(CheckHandlerTest, IgnoresAnswersToWhatWasNeverAsked) {
  session_.reply(7, allowed());
  EXPECT_EQ(peer_.output.bytes, "");
}

}  // namespace
}  // namespace weir::check_handler_test
