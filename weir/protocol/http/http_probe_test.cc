#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "weir/http/testing/http1_peer.h"
#include "weir/protocol/http/check_handler.h"

namespace weir::http_probe_test {
namespace {

class HttpProbe : public ::testing::Test {
 protected:
  HttpProbe() { health_.ready = true; }

  // What is answered if the store answers like that; "asked" instead, if it was asked and has not answered.
  std::string get(std::string_view target, const Result<Answer>* answer) {
    http::Http1Peer peer(handler_);
    bool asked = false;
    const auto answer_to = [&](const Asked& question) -> Result<Answer> {
      EXPECT_TRUE(std::holds_alternative<StoreProbe>(question.query.subject));
      asked = true;
      return answer == nullptr ? Result<Answer>(Answer{}) : *answer;
    };
    std::string out = peer.send("GET " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n\r\n", answer_to);
    if (asked && answer == nullptr) return "asked";
    EXPECT_TRUE(out.ends_with("}\n"));
    out.pop_back();
    return out.substr(9, 3) + " " + out.substr(out.find("\r\n\r\n") + 4);
  }

  Health health_;
  CheckHandler handler_{health_};
};

TEST_F(HttpProbe, ADeepProbeAsksTheStoreNow) {
  bool up = true;
  health_.store_up = [&] { return up; };
  const Result<Answer> decided = Answer{};
  const Result<Answer> failed = Error{Fault::unavailable, "no reply"};
  EXPECT_EQ(get("/readyz?deep=true", nullptr), "asked");
  EXPECT_EQ(get("/readyz?deep=true", &decided), R"(200 {"status":"ready"})");
  EXPECT_EQ(get("/readyz?deep=true", &failed), R"(503 {"status":"store unavailable"})");
  EXPECT_EQ(get("/readyz", nullptr), R"(200 {"status":"ready"})") << "a shallow one asks nobody";
  up = false;
  EXPECT_EQ(get("/readyz?deep=true", nullptr), R"(503 {"status":"store unavailable"})") << "known to be down";
  health_.ready = false;
  EXPECT_EQ(get("/readyz?deep=true", nullptr), R"(503 {"status":"not ready"})");
}

}  // namespace
}  // namespace weir::http_probe_test
