// The decision API over HTTP/1.1 and HTTP/2.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "weir/http/testing/http_conformance.h"
#include "weir/protocol/http/check_handler.h"
#include "weir/protocol/testing/canned_answer.h"

namespace weir::check_versions_test {
namespace {

struct Served {
  Served() { health.ready = true; }
  Health health;
  CheckHandler handler{health};
};

http::ScriptRequest post(std::string path, std::string content) {
  return {"POST", std::move(path), {{"Content-Type", "application/json"}}, {std::move(content)}, {}};
}

http::HttpConversation decisions() {
  http::HttpConversation out;
  out.name = "DecisionApi";
  out.handler = [](http::HttpShared&) {
    const auto served = std::make_shared<Served>();
    return std::shared_ptr<http::Handler>(served, &served->handler);
  };
  out.answer = allow;
  std::string array = "[";
  for (int i = 1; i <= 20; ++i)
    array += (i == 1 ? "" : ",") + (R"({"limit":"per-tenant","id":"acme","cost":)" + std::to_string(i) + "}");
  array += "]";
  out.steps = {
      {{"GET", "/healthz", {}, {}, {}}, 200, "{\"status\":\"alive\"}\n"},
      {{"GET", "/readyz", {}, {}, {}}, 200, "*"},
      {{"HEAD", "/healthz", {}, {}, {}}, 200, ""},
      {post("/v1/check", R"({"limit":"per-tenant","id":"acme"})"), 200, "*"},
      {post("/v1/check", R"({"limit":"per-tenant","id":"acme","cost":7})"), 200, "*"},
      {post("/v1/check?explain=true", R"({"limit":"per-tenant","id":"acme","cost":3})"), 200, "*"},
      {post("/v1/check", array), 200, "*"},
      {post("/v1/peek", R"({"limit":"per-tenant","id":"acme"})"), 200, "*"},
      {post("/v1/reset", R"({"limit":"per-tenant","id":"acme"})"), 204, ""},
      {{"POST",
        "/v1/check",
        {{"Content-Type", "application/json"}},
        {R"({"limit")", R"(:"per-tenant",)", R"("id":"acme"})"},
        {}},
       200,
       "*"},
      {{"GET", "/v1/authorize", {{"X-Original-URI", "/a"}, {"X-Forwarded-For", "192.0.2.7"}}, {}, {}}, 200, "*"},
      {{"GET", "/nothing", {}, {}, {}}, 404, "*"},
      {{"DELETE", "/v1/check", {}, {"{}"}, {}}, 405, "*"},
      {{"OPTIONS", "/v1/check", {}, {}, {}}, 204, ""},
      {post("/v1/check", "{\"limit\":"), 400, "*"},
      {{"POST", "/v1/check", {{"Content-Type", "text/plain"}}, {"a=b"}, {}}, 415, "*"},
  };
  return out;
}

}  // namespace
}  // namespace weir::check_versions_test

namespace weir::http {
INSTANTIATE_TEST_SUITE_P(DecisionApi, HttpConformance,
                         ::testing::ValuesIn(both_versions(check_versions_test::decisions())));
}  // namespace weir::http
