// Calls the admin API, and checks requests like a client, against a real pipeline and table without sockets.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "weir/admin/admin_handler.h"
#include "weir/admin/admin_shared_test.h"
#include "weir/http/testing/http1_peer.h"
#include "weir/http/testing/http1_response.h"
#include "weir/protocol/testing/http_texts.h"
#include "weir/server/pipeline.h"
#include "weir/store/memory/memory_bucket_scan.h"
#include "weir/store/memory/memory_store.h"

namespace weir::admin {

struct HttpReply {
  int status = 0;
  std::string content;
  std::string allow;
  bool keep_alive = true;

  nlohmann::json json() const { return nlohmann::json::parse(content); }
  std::string error() const { return json().value("error", ""); }
};

class AdminClient final : public Asker {
 public:
  explicit AdminClient(std::string_view more = {}, KnownArchive* archive = nullptr)
      : fixture(bucket_scan_, more, archive) {}

  // Sends one request. `fields` are more header fields, each with its CRLF.
  HttpReply call(std::string_view method, std::string_view target, std::string_view content = {},
                 std::string_view fields = "Content-Type: application/json\r\n") {
    http::Http1Peer caller(handler, peer);
    return read(talk(caller, request(method, target, content, fields)), method == "HEAD");
  }
  HttpReply get(std::string_view target) { return call("GET", target, {}, {}); }

  static std::string request(std::string_view method, std::string_view target, std::string_view content = {},
                             std::string_view fields = {}) {
    std::string text(method);
    text.append(" ").append(target).append(" HTTP/1.1\r\nHost: localhost:9090\r\n").append(fields);
    if (!content.empty()) text.append("Content-Length: ").append(std::to_string(content.size())).append("\r\n");
    return text.append("\r\n").append(content);
  }

  // Sends a request and returns the first bytes of the response, as soon as there are any.
  std::string talk(http::Http1Peer& caller, std::string_view bytes) {
    begin(caller, bytes);
    return wait(caller);
  }
  void begin(http::Http1Peer& caller, std::string_view bytes) {
    caller.now = now();
    caller.on_asked = [this, &caller](const Asked& asked) {
      session_ = caller.session.get();
      pipeline_.refresh();
      pipeline_.ask(asked.token, asked.query, *this, now());
      pipeline_.flush(now());
      session_ = nullptr;
    };
    written_ = caller.send(bytes);
    EXPECT_FALSE(caller.lost);
  }
  std::string wait(http::Http1Peer& caller) {
    std::string out = std::exchange(written_, {});
    while ((out += caller.turn()).empty()) {
      caller.wait_for_posted();
      caller.run_posted();
    }
    return out;
  }

  // Returns the answer that a client gets.
  Result<Answer> check(std::string_view limit, std::string_view id, Count cost = 1) {
    const NamedCharge charge{limit, id, cost};
    const Query query{NamedCharges{{&charge, 1}}};
    last_ = Error{Fault::internal, "not answered"};
    pipeline_.refresh();
    pipeline_.ask(0, query, *this, now());
    pipeline_.flush(now());
    return last_;
  }
  void ask(std::string_view limit, std::string_view id, Count cost = 1) { (void)check(limit, id, cost); }
  bool allowed(std::string_view limit, std::string_view id, Count cost = 1) {
    const auto answer = check(limit, id, cost);
    return answer && answer->verdict.allowed;
  }

  void answered(std::uint64_t token, const Result<Answer>& answer) override {
    if (session_ != nullptr) return session_->reply(token, answer);
    last_ = answer;
  }

  Now now() { return fixture.clock().now(); }

 private:
  static HttpReply read(const std::string& out, bool head) {
    HttpReply reply;
    const auto response = http::read_http1_response(out, head);
    EXPECT_TRUE(response) << out;
    if (!response) return reply;
    reply.status = response->head.status;
    reply.content = without_newline(response->content);
    reply.keep_alive = response->head.framing.keep_alive;
    if (const HttpHeader* allow = response->head.headers.find("Allow")) reply.allow = allow->value;
    return reply;
  }

  std::unique_ptr<Table> table_ =
      std::move(*Table::create({.buckets_max = 100'000, .names = true, .huge_pages = false}, HashKey{1, 2}));
  MemoryBucketScan bucket_scan_{*table_};

 public:
  std::string peer = "127.0.0.1";
  AdminFixture fixture;
  AdminHandler handler{fixture.shared()};

 private:
  MemoryStore store_{*table_, fixture.clock()};
  Pipeline pipeline_{fixture.reloader().published(), fixture.keeper().known(), store_, fixture.metrics,
                     fixture.clock()};
  Session* session_ = nullptr;
  std::string written_;  // by begin()
  Result<Answer> last_ = Error{Fault::internal, {}};
};

}  // namespace weir::admin
