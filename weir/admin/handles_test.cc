// API keys by their handles, which are shown everywhere and accepted wherever a key is.
#include <gtest/gtest.h>

#include "weir/admin/admin_client_test.h"
#include "weir/identify/digest.h"
#include "weir/identify/handle.h"

namespace weir::admin::handles_test {
namespace {

using nlohmann::json;

constexpr std::string_view kKey = "sk_live_4242424242";
constexpr std::string_view kOther = "sk_live_9999999999";

std::string handle(std::string_view key = kKey) {
  return handle_of("key", key);
}

// Escaped for a path.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    constexpr std::string_view hex = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && c != '#') {
      out += c;
    } else {
      out.append({'%', hex[byte >> 4], hex[byte & 15]});
    }
  }
  return out;
}

std::string body(std::initializer_list<std::pair<std::string, json>> fields) {
  json object = json::object();
  for (const auto& [name, value] : fields) object[name] = value;
  return object.dump();
}

TEST(Handles, DistinguishKeysInEveryListAndEvent) {
  AdminClient api;
  auto watching = *api.fixture.events().subscribe({});
  api.ask("per-apikey", kKey);
  api.ask("per-apikey", kOther);
  const std::string clients = api.get("/ratelimit/clients").content;
  const std::string top = api.get("/ratelimit/top").content;
  const std::string event = watching->take(1 << 20).events.at(0);
  for (const std::string& text : {clients, top, event}) {
    EXPECT_NE(text.find(handle()), text.npos) << text;
    EXPECT_EQ(text.find("sk_live"), text.npos) << text;
  }
  EXPECT_NE(clients.find(handle(kOther)), clients.npos);
  EXPECT_EQ(json::parse(event)["identifier"], "apikey:" + handle());
}

TEST(Handles, AreMatchedByAPrefixSearch) {
  AdminClient api;
  api.ask("per-apikey", kKey);
  const auto found = [&](std::string_view prefix) {
    return api.get("/ratelimit/clients?prefix=" + escaped(prefix)).json()["clients"].size();
  };
  EXPECT_EQ(found("sk_l"), 1u);
  EXPECT_EQ(found("sk_li"), 0u) << "the hidden part of the key";
  EXPECT_EQ(found(handle()), 1u);
  EXPECT_EQ(found("apikey:" + handle()), 1u);
}

TEST(Handles, ResetAndShowTheirKey) {
  AdminClient api;
  for (const std::string& target :
       {"/ratelimit/reset/apikey:" + escaped(handle()), "/ratelimit/reset/" + escaped(handle()),
        "/ratelimit/reset/per-apikey:" + escaped(handle()),
        "/ratelimit/reset/" + escaped(handle()) + "?limit=per-apikey"}) {
    for (const std::string_view key : {kKey, kOther}) {
      while (api.allowed("per-apikey", key)) {
      }
    }
    EXPECT_FALSE(api.allowed("per-apikey", kKey));
    EXPECT_EQ(api.get("/ratelimit/clients/per-apikey/" + escaped(handle())).json()["remaining"], 0);
    EXPECT_EQ(api.call("POST", target).content, R"({"reset":1})") << target;
    EXPECT_TRUE(api.allowed("per-apikey", kKey));
    EXPECT_FALSE(api.allowed("per-apikey", kOther));
  }
}

TEST(Handles, AreAcceptedInABodyLikeWholeKeys) {
  AdminClient api;
  for (const std::string& id : {"apikey:" + std::string(kKey), "apikey:" + handle(), handle(), std::string(kKey)}) {
    api.ask("per-apikey", kKey, 10);
    EXPECT_EQ(api.call("POST", "/ratelimit/reset", body({{"id", id}})).content, R"({"reset":1})") << id;
  }
  api.ask("per-apikey", kKey, 10);
  EXPECT_EQ(api.call("POST", "/ratelimit/reset", body({{"id", handle()}, {"limit", "per-apikey"}})).content,
            R"({"reset":1})");
  EXPECT_EQ(api.call("POST", "/ratelimit/reset", body({{"limit", "per-apikey"}})).error(), "bad_value");
  EXPECT_EQ(api.call("POST", "/ratelimit/reset", body({{"id", 7}})).error(), "bad_value");
  EXPECT_EQ(api.call("POST", "/ratelimit/reset", body({{"id", "all"}})).error(), "bad_value");
  EXPECT_EQ(api.call("POST", "/ratelimit/reset", body({{"id", "all"}, {"confirm", "all"}})).status, 200);
  EXPECT_EQ(api.call("POST", "/ratelimit/reset", body({{"id", "x"}, {"limit", "nope"}})).error(), "unknown_limit");
}

TEST(Handles, AdjustByPathAndBodyAndStoreTheFullHash) {
  AdminClient api;
  api.ask("per-apikey", kKey);
  const HttpReply reply = api.call("PUT", "/ratelimit/adjust/per-apikey/" + escaped(handle()), body({{"burst", 50}}));
  ASSERT_EQ(reply.status, 200) << reply.content;
  EXPECT_EQ(reply.json()["id"], handle());
  EXPECT_EQ(reply.json()["burst"], 50);
  const std::vector<Adjustment> stored = api.fixture.keeper().adjustments(api.now().wall);
  ASSERT_EQ(stored.size(), 1u);
  EXPECT_EQ(stored[0].id, "sk_l…#" + hashed_id("key", kKey)) << "the key itself is not stored";
  EXPECT_EQ(api.check("per-apikey", kKey)->verdict.all[0].strictest().burst, 50);
  EXPECT_EQ(api.check("per-apikey", kOther)->verdict.all[0].strictest().burst, 10);
  EXPECT_EQ(api.get("/ratelimit/clients/per-apikey/" + escaped(handle())).json()["source"], "adjustment");
  EXPECT_EQ(api.get("/ratelimit/adjust").json()["adjustments"][0]["id"], handle());

  // The whole key is the same client: its adjustment is replaced.
  EXPECT_EQ(
      api.call("POST", "/ratelimit/adjust", body({{"limit", "per-apikey"}, {"id", std::string(kKey)}, {"burst", 60}}))
          .status,
      200);
  EXPECT_EQ(api.fixture.keeper().adjustments(api.now().wall).size(), 1u);
  EXPECT_EQ(api.check("per-apikey", kKey)->verdict.all[0].strictest().burst, 60);
  EXPECT_EQ(api.call("DELETE", "/ratelimit/adjust", body({{"limit", "per-apikey"}, {"id", std::string(kKey)}})).content,
            R"({"removed":1})");
  EXPECT_EQ(api.check("per-apikey", kKey)->verdict.all[0].strictest().burst, 10);
  EXPECT_EQ(api.call("PUT", "/ratelimit/adjust", body({{"id", "7"}, {"burst", 3}})).error(), "bad_value");
  EXPECT_EQ(api.call("PUT", "/ratelimit/adjust", body({{"limit", "orders"}, {"id", "7"}, {"burst", 3}})).status, 200);
  for (const std::string& line : api.fixture.log) EXPECT_EQ(line.find("sk_live"), line.npos) << line;
}

TEST(Handles, AllowAndDenyAndStoreTheFullHash) {
  AdminClient api;
  api.ask("per-apikey", kKey);
  ASSERT_EQ(api.call("POST", "/ratelimit/access/deny", body({{"apikey", handle()}, {"reason", "abuse"}})).status, 200);
  const std::vector<AccessEntry> stored = api.fixture.keeper().entries(AccessEntry::List::deny, api.now().wall);
  ASSERT_EQ(stored.size(), 1u);
  EXPECT_EQ(stored[0].apikey, "sk_l…#" + hashed_id("key", kKey));
  EXPECT_EQ(api.get("/ratelimit/access/deny").json()["entries"][0]["apikey"], handle());
  EXPECT_FALSE(api.allowed("per-apikey", kKey));
  EXPECT_TRUE(api.allowed("per-apikey", kOther));
  EXPECT_TRUE(api.allowed("per-apikey", stored[0].apikey)) << "a client cannot send a handle as a key";
  EXPECT_EQ(api.get("/ratelimit/clients/per-apikey/" + escaped(handle())).json()["block"]["reason"], "abuse");

  ASSERT_EQ(api.call("POST", "/ratelimit/access/deny", body({{"apikey", std::string(kKey)}})).status, 200);
  EXPECT_EQ(api.fixture.keeper().entries(AccessEntry::List::deny, api.now().wall).size(), 1u) << "the same client";
  EXPECT_EQ(api.call("DELETE", "/ratelimit/access/deny", body({{"apikey", std::string(kKey)}})).content,
            R"({"removed":1})");
  EXPECT_TRUE(api.allowed("per-apikey", kKey));

  ASSERT_EQ(api.call("POST", "/ratelimit/access/deny", body({{"limit", "per-apikey"}, {"id", handle()}})).status, 200);
  EXPECT_FALSE(api.allowed("per-apikey", kKey));
  EXPECT_EQ(api.call("DELETE", "/ratelimit/access/deny?limit=per-apikey&id=" + escaped(handle())).status, 200);
  EXPECT_TRUE(api.allowed("per-apikey", kKey));
}

TEST(Handles, RemoveAnAutomaticBlockOfTheKey) {
  AdminClient api;
  AccessEntry block;
  block.apikey = kKey;
  block.expires = api.now().wall + std::chrono::minutes{10};
  api.fixture.keeper().block(block);
  EXPECT_FALSE(api.allowed("per-apikey", kKey));
  EXPECT_EQ(api.call("DELETE", "/ratelimit/access/deny?apikey=" + escaped(handle())).content, R"({"removed":1})");
  EXPECT_TRUE(api.allowed("per-apikey", kKey));
}

TEST(Handles, AreNotFoundWithoutAKeyAndConflictWithSeveral) {
  AdminClient api;
  EXPECT_EQ(api.call("POST", "/ratelimit/reset", body({{"id", handle()}})).status, 404);
  EXPECT_EQ(api.call("POST", "/ratelimit/access/deny", body({{"apikey", handle()}})).status, 404);
  EXPECT_EQ(api.call("PUT", "/ratelimit/adjust/per-apikey/" + escaped(handle()), body({{"burst", 50}})).status, 404);
  // Keys whose hashes start with the same four digits.
  std::map<std::string, std::string> by_start;
  std::string first, second;
  for (int i = 0; first.empty(); ++i) {
    const std::string key = "sk_live_" + std::to_string(1'000'000'000 + i);
    const auto [found, fresh] = by_start.try_emplace(hashed_id("key", key).substr(0, 4), key);
    if (!fresh) {
      first = found->second;
      second = key;
    }
  }
  api.ask("per-apikey", first);
  api.ask("per-apikey", second);
  const std::string both = handle(first).substr(0, handle(first).size() - 8);
  const HttpReply reply = api.call("POST", "/ratelimit/reset", body({{"id", both}}));
  EXPECT_EQ(reply.status, 409) << reply.content;
  EXPECT_EQ(reply.error(), "conflict");
  const json matches = reply.json()["matches"];
  ASSERT_EQ(matches.size(), 2u);
  EXPECT_EQ(api.call("POST", "/ratelimit/reset", body({{"id", matches[0]}})).content, R"({"reset":1})");
}

TEST(Handles, AreFoundAmongMoreClientsThanAreTracked) {
  AdminClient api;
  api.ask("per-apikey", kKey, 10);
  for (int i = 0; i < 5000; ++i) api.ask("per-apikey", "key-of-somebody-else-" + std::to_string(i), 2);
  EXPECT_EQ(api.call("POST", "/ratelimit/reset", body({{"id", handle()}})).content, R"({"reset":1})");
}

TEST(Handles, OfShortKeysShowNothingOfTheKey) {
  AdminClient api;
  api.ask("per-apikey", "short");
  const json client = api.get("/ratelimit/clients").json()["clients"][0];
  EXPECT_EQ(client["id"], "…#" + hashed_id("key", "short").substr(0, 12));
  EXPECT_EQ(api.call("POST", "/ratelimit/reset", body({{"id", client["id"]}})).content, R"({"reset":1})");
}

}  // namespace
}  // namespace weir::admin::handles_test
