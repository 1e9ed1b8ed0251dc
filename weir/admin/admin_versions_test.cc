// The admin API over HTTP/1.1 and HTTP/2.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "weir/admin/admin_handler.h"
#include "weir/admin/admin_shared_test.h"
#include "weir/http/testing/http_conformance.h"
#include "weir/protocol/testing/canned_answer.h"
#include "weir/store/memory/memory_bucket_scan.h"

namespace weir::admin_versions_test {
namespace {

// One fixture for all sessions: the kit opens thousands, and none of them changes anything.
admin::AdminFixture& fixture() {
  static const std::unique_ptr<Table> table =
      std::move(*Table::create({.buckets_max = 1000, .names = true, .huge_pages = false}, HashKey{1, 2}));
  static MemoryBucketScan bucket_scan{*table};
  static admin::AdminFixture fixture{bucket_scan};
  fixture.log.clear();
  return fixture;
}

http::ScriptRequest get(std::string path) {
  return {"GET", std::move(path), {}, {}, {}};
}

http::HttpConversation admin_calls() {
  http::HttpConversation out;
  out.name = "AdminApi";
  out.handler = [](http::HttpShared&) { return std::make_shared<admin::AdminHandler>(fixture().shared()); };
  out.answer = allow;
  out.steps = {
      {get("/healthz"), 200, "{\"status\":\"alive\"}\n"},
      {{"HEAD", "/healthz", {}, {}, {}}, 200, ""},
      {get("/ratelimit/top"), 200, "{\"by\":\"requests\",\"clients\":[]}\n"},
      {get("/ratelimit/clients"), 200, "{\"clients\":[],\"cursor\":\"\"}\n"},
      {{"POST", "/ratelimit/reset/per-ip:203.0.113.9", {{"Content-Type", "application/json"}}, {"{}"}, {}},
       200,
       "{\"reset\":1}\n"},
      {{"POST", "/ratelimit/reset/per-ip:203.0.113.9", {{"Content-Type", "application/json"}}, {"{", "}"}, {}},
       200,
       "{\"reset\":1}\n"},
      {get("/metrics"), 200, "*"},
      {get("/nothing"), 404, "*"},
      {{"DELETE", "/metrics", {}, {}, {}}, 405, "*"},
  };
  return out;
}

}  // namespace
}  // namespace weir::admin_versions_test

namespace weir::http {
INSTANTIATE_TEST_SUITE_P(AdminApi, HttpConformance,
                         ::testing::ValuesIn(both_versions(admin_versions_test::admin_calls())));
}  // namespace weir::http
