#include "weir/external/question.h"

#include <gtest/gtest.h>
#include <proto/weir/limits/v1/limits.pb.h>

#include <string>
#include <vector>

namespace weir::external::question_test {
namespace {

// As a front end makes them: names of headers in lower case, once per occurrence.
const std::vector<Attribute> kRequest = {
    {"peer", "10.0.0.1"},         {"method", "GET"},
    {"path", "/api/v1/data?x=1"}, {"host", "h"},
    {"header:host", "h"},         {"header:x-tenant-id", "acme"},
    {"header:accept", "a"},       {"header:authorization", "Bearer secret"},
    {"header:accept", "b"},       {"header:cookie", "c=d"},
    {"header:x-api-key", "k"},    {"header:x-plan", "pro"},
    {"form:user", "u"},           {"header:x-b3-traceid", "t"},
};

// "Host=h X-Plan=pro"
std::string headers(const LimitsService& service) {
  std::string text;
  for (const auto& [name, value] : make_question(service, "k", kRequest).headers) {
    text += (text.empty() ? "" : " ") + name + "=" + value;
  }
  return text;
}

TEST(ServiceQuestion, HasTheKeyAndWhatTheRequestIs) {
  const ServiceQuestion question = make_question({}, "acme", kRequest);
  EXPECT_EQ(question.key, "acme");
  EXPECT_EQ(question.method, "GET");
  EXPECT_EQ(question.path, "/api/v1/data");
}

TEST(ServiceQuestion, OfACheckHasOnlyTheKey) {
  const ServiceQuestion question = make_question({}, "acme", {});
  EXPECT_EQ(question.key, "acme");
  EXPECT_TRUE(question.method.empty() && question.path.empty() && question.headers.empty());
}

TEST(HeaderFilter, SendsAllButWhatCarriesSecrets) {
  EXPECT_EQ(headers({}), "Host=h X-Tenant-Id=acme Accept=a, b X-Plan=pro X-B3-Traceid=t");
}

TEST(HeaderFilter, KnowsEveryHeaderThatCarriesSecrets) {
  for (const std::string name : {"Authorization", "Cookie", "Set-Cookie", "Proxy-Authorization", "Proxy-Authenticate",
                                 "X-Api-Key", "X-Csrf-Token", "X-Xsrf-Token"}) {
    std::string attribute = "header:" + name;
    for (char& c : attribute) c = static_cast<char>(std::tolower(c));
    const std::vector<Attribute> request = {{attribute, "secret"}};
    EXPECT_TRUE(make_question({}, "k", request).headers.empty()) << name;
    LimitsService allowing;
    allowing.allow_list = {name};
    EXPECT_EQ(make_question(allowing, "k", request).headers.size(), 1u) << name;
  }
}

TEST(HeaderFilter, DenyListAddsToThem) {
  LimitsService service;
  service.deny_list = {"X-PLAN", "host"};
  EXPECT_EQ(headers(service), "X-Tenant-Id=acme Accept=a, b X-B3-Traceid=t");
}

TEST(HeaderFilter, AllowListSendsExactlyThoseSpelledAsThere) {
  LimitsService service;
  service.allow_list = {"X-TENANT-id", "Authorization", "X-Missing"};
  service.deny_list = {"x-tenant-id"};
  EXPECT_EQ(headers(service), "X-TENANT-id=acme Authorization=Bearer secret");
}

TEST(ServiceQuestion, AsJson) {
  std::string out;
  write_json({"a\"b", "GET", "/", {{"X-Plan", "pro"}, {"X-B", "\xff"}}}, out);
  EXPECT_EQ(out,
            "{\"key\":\"a\\\"b\",\"headers\":{\"X-Plan\":\"pro\",\"X-B\":\"\xef\xbf\xbd\"},\"method\":\"GET\","
            "\"path\":\"/\"}");
  out.clear();
  write_json({"k", "", "", {}}, out);
  EXPECT_EQ(out, R"({"key":"k","headers":{},"method":"","path":""})");
}

// Read by the library.
TEST(ServiceQuestion, AsProtobuf) {
  std::string out;
  const std::string path(300, 'p');
  write_protobuf({"acme", "GET", path, {{"X-Plan", "pro"}, {"X-Empty", ""}, {"X-B", "a\xff\xc3\xa9"}}}, out);
  weir::limits::v1::GetLimitsRequest request;
  ASSERT_TRUE(request.ParseFromString(out));
  EXPECT_EQ(request.key(), "acme");
  EXPECT_EQ(request.method(), "GET");
  EXPECT_EQ(request.path(), path);
  ASSERT_EQ(request.headers().size(), 3u);
  EXPECT_EQ(request.headers().at("X-Plan"), "pro");
  EXPECT_EQ(request.headers().at("X-Empty"), "");
  EXPECT_EQ(request.headers().at("X-B"), "a\xef\xbf\xbd\xc3\xa9");
  out.clear();
  write_protobuf({"k", "", "", {}}, out);
  EXPECT_EQ(out, "\x0a\x01k");
}

}  // namespace
}  // namespace weir::external::question_test
