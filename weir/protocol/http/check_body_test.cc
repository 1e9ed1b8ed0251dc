#include "weir/protocol/http/check_body.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::check_body_test {
namespace {

struct Bad {
  std::optional<ApiError> (*read)(JsonValue, Queries&, Query&);
  std::string content;
  std::string code;
  std::string message;
};

std::string charges_of(std::size_t count) {
  std::string text = R"({"charges":[)";
  for (std::size_t i = 0; i < count; ++i) text += std::string(i > 0 ? "," : "") + R"({"limit":"a","id":"b"})";
  return text + "]}";
}

TEST(CheckBody, SaysWhichRuleAValueBreaks) {
  const std::string known = "; known are limit, id, cost, tier, charges, charge and request";
  const std::vector<Bad> bads = {
      {read_check, "7", "bad_value", "a check must be an object, not a number"},
      {read_check, R"({"limit":"a","id":"b","cots":1})", "unknown_field", "unknown field \"cots\"" + known},
      {read_check, R"({"limit":1,"id":"b"})", "bad_value", "limit must be a string, not a number"},
      {read_check, R"({"limit":"a","id":null})", "bad_value", "id must be a string or a whole number, not null"},
      {read_check, R"({"id":"b"})", "bad_value", "limit is missing"},
      {read_check, R"({"limit":"a"})", "bad_value", "id is missing"},
      {read_check, R"({"limit":"a","id":"b","cost":"1"})", "bad_value", "cost must be a whole number, not a string"},
      {read_check, R"({"limit":"a","id":"b","cost":1.5})", "bad_value",
       R"(cost "1.5" must be a whole number in the range of 64 bits)"},
      {read_check, R"({"limit":"a","id":"b","cost":9223372036854775808})", "bad_value",
       R"(cost "9223372036854775808" must be a whole number in the range of 64 bits)"},
      {read_check, R"({"limit":"a","id":"b","cost":-1})", "bad_value",
       "cost -1 must not be negative; to give back, call /v1/refund"},
      {read_check, R"({"charges":[]})", "bad_value", "charges must name at least one limit"},
      {read_check, R"({"charges":{}})", "bad_value", "charges must be an array, not an object"},
      {read_check, R"({"charges":[{"limit":"a","id":"b"},3]})", "bad_value",
       "charges[1]: a charge must be an object, not a number"},
      {read_check, R"({"charges":[{"limit":"a","id":"b","x":1}]})", "unknown_field",
       R"(charges[0]: unknown field "x"; known are limit, id, cost and tier)"},
      {read_check, charges_of(bounds::charges_max + 1), "bad_value", "charges has more than 16 entries"},
      {read_check, R"({"charges":[{"limit":"a","id":"b"}],"cost":2})", "bad_value",
       "limit, id, cost and tier stand inside the charges, not beside them"},
      {read_check, R"({"charges":[{"limit":"a","id":"b"}],"charge":"all"})", "bad_value",
       R"(charge must be "together" or "in-order", not "all")"},
      {read_check, R"({"limit":"a","id":"b","charge":"together"})", "bad_value", "charge goes with charges"},
      {read_check, R"({"request":7})", "bad_value", "request must be an object, not a number"},
      {read_check, R"({"request":{"ip":""}})", "bad_value", "request.ip must not be empty"},
      {read_check, R"({"request":{"path":1}})", "bad_value", "request.path must be a string, not a number"},
      {read_check, R"({"request":{"uri":"/"}})", "unknown_field",
       "unknown field \"uri\"; known are ip, method, path, host, headers and form"},
      {read_check, R"({"request":{"headers":[]}})", "bad_value", "request.headers must be an object, not an array"},
      {read_check, R"({"request":{"headers":{"a":1}}})", "bad_value",
       "a header must be a string or an array, not a number"},
      {read_check, R"({"request":{"form":{"a":1}}})", "bad_value",
       "a field of the form must be a string, not a number"},
      {read_check, R"({"request":{},"limit":"a"})", "bad_value",
       "request stands alone or with cost: its route says which limits are charged, and how"},
      {read_throttle, R"({"count":1,"period":"1s"})", "bad_value", "key is missing"},
      {read_throttle, R"({"key":"","count":1,"period":"1s"})", "bad_value", "key must not be empty"},
      {read_throttle, R"({"key":"k","period":"1s"})", "bad_value", "count is missing"},
      {read_throttle, R"({"key":"k","count":1})", "bad_value", "period is missing"},
      {read_throttle, R"({"key":"k","count":1,"period":1})", "bad_value", "period must be a string, not a number"},
      {read_throttle, R"({"key":"k","count":0,"period":"1s"})", "bad_value", "count 0 must be at least 1"},
      {read_throttle, R"({"key":"k","count":1,"period":"1s","burst":0})", "bad_value", "burst 0 must be at least 1"},
      {read_throttle, R"({"key":"k","count":1,"period":"1s","max_burst":1})", "unknown_field",
       R"(unknown field "max_burst"; known are key, burst, count, period, rate and cost)"},
      {read_throttle, R"({"key":"k","rate":"5/fortnight"})", "bad_value",
       R"(rate "5/fortnight" has no known unit (s, m, h, d, second, minute, hour or day))"},
      {read_throttle, R"({"key":"k","rate":"1/s","count":1})", "bad_value",
       "rate replaces count and period; send one or the other"},
      {read_throttle, R"({"key":"k","rate":true})", "bad_value",
       "rate must be a rate such as \"100/s\", or a number per second, not true or false"},
      {read_check, R"({"limit":"a","id":1.5})", "bad_value", R"(id "1.5" must be a string or a whole number)"},
      {read_check, R"({"limit":"a","id":1e3})", "bad_value", R"(id "1e3" must be a string or a whole number)"},
  };
  for (const Bad& bad : bads) {
    SCOPED_TRACE(bad.content);
    JsonReader reader;
    Queries queries;
    Query query;
    const auto error = bad.read(*reader.read(bad.content), queries, query);
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->status, 400);
    EXPECT_EQ(error->code, bad.code);
    EXPECT_EQ(error->message, bad.message);
  }
}

TEST(CheckBody, TakesAnIdWithoutQuotes) {
  for (const std::string id : {"5", "-7", "18446744073709551615"}) {
    JsonReader reader;
    Queries queries;
    Query query;
    ASSERT_FALSE(read_check(*reader.read(R"({"limit":"a","id":)" + id + "}"), queries, query).has_value());
    EXPECT_EQ(std::get<NamedCharges>(query.subject).charges[0].id, id);
  }
}

TEST(CheckBody, TakesARateInsteadOfCountAndPeriod) {
  for (const auto& [text, limit] : std::vector<std::pair<std::string, Limit>>{
           {R"({"key":"k","rate":"100/s","burst":20})", Limit::per_second(100).with_burst(20)},
           {R"({"key":5,"rate":"20 per minute"})", Limit::per_minute(20)},
           {R"({"key":"k","rate":7})", Limit::per_second(7)},
       }) {
    JsonReader reader;
    Queries queries;
    Query query;
    ASSERT_FALSE(read_throttle(*reader.read(text), queries, query).has_value()) << text;
    EXPECT_EQ(std::get<OwnBucket>(query.subject).limit, limit) << text;
  }
}

TEST(CheckBody, TakesAsManyChargesAsMayBeCharged) {
  JsonReader reader;
  Queries queries;
  Query query;
  EXPECT_FALSE(read_check(*reader.read(charges_of(bounds::charges_max)), queries, query).has_value());
  EXPECT_EQ(std::get<NamedCharges>(query.subject).charges.size(), bounds::charges_max);
}

TEST(CheckBody, KeepsWhatTheQueryPointsTo) {
  JsonReader reader;
  Queries queries;
  Query query;
  {
    const std::string text = R"({"limit":"orders","id":"\u00e4"})";
    ASSERT_FALSE(read_check(*reader.read(text), queries, query).has_value());
  }
  (void)reader.read(R"({"other":"text in its place"})");
  EXPECT_EQ(std::get<NamedCharges>(query.subject).charges[0].limit, "orders");
  EXPECT_EQ(std::get<NamedCharges>(query.subject).charges[0].id, "\xC3\xA4");
}

TEST(CheckBody, ReadsARequest) {
  JsonReader reader;
  Queries queries;
  Query query;
  const std::string text = R"({"request":{"ip":"203.0.113.9","method":"POST","path":"/a?b","host":"h",)"
                           R"("headers":{"X-Tenant":"acme","x":["1","2"]},"form":{"Email":"a@b.c"}},"cost":3})";
  EXPECT_FALSE(read_check(*reader.read(text), queries, query));
  std::string attributes;
  for (const auto& [name, value] : std::get<RequestFacts>(query.subject).attributes)
    attributes.append(name).append("=").append(value).append(" ");
  EXPECT_EQ(attributes,
            "ip=203.0.113.9 method=POST path=/a?b host=h header:x-tenant=acme header:x=1 header:x=2 "
            "form:Email=a@b.c ");
  EXPECT_EQ(std::get<RequestFacts>(query.subject).cost, 3);
  EXPECT_FALSE(read_check(*reader.read(R"({"request":{}})"), queries, query));
  EXPECT_EQ(std::get<RequestFacts>(query.subject).attributes.size(), 1u) << "a request always has a path";
  EXPECT_FALSE(std::get<RequestFacts>(query.subject).cost) << "the route says it";
}

TEST(CheckBody, ARequestHasABoundedNumberOfHeadersAndFormFields) {
  const auto with = [](std::size_t lines, std::string_view more) {
    std::string text(R"({"request":{"headers":{"a":[)");
    for (std::size_t i = 0; i < lines; ++i) text += i == 0 ? R"("")" : R"(,"")";
    text.append(R"(]})").append(more).append("}}");
    JsonReader reader;
    Queries queries;
    Query query;
    const auto error = read_check(*reader.read(text), queries, query);
    return error ? error->status : 200;
  };
  constexpr std::size_t most = 124;
  EXPECT_EQ(with(most, ""), 200);
  EXPECT_EQ(with(most, R"(,"ip":"1.2.3.4","method":"GET","path":"/","host":"a")"), 200)
      << "these have room of their own";
  EXPECT_EQ(with(most + 1, ""), 413);
  EXPECT_EQ(with(most - 1, R"(,"form":{"b":""})"), 200);
  EXPECT_EQ(with(most, R"(,"form":{"b":""})"), 413);
}

}  // namespace
}  // namespace weir::check_body_test
