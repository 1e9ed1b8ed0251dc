#include "weir/config/parse.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "weir/config/describe.h"
#include "weir/policy/limits_service.h"

namespace weir::config::parse_test {
namespace {

using namespace std::chrono_literals;

// Files by path; anything else cannot be read.
Options with_files(Environment files, Environment environment = {}) {
  Options options;
  options.environment = std::move(environment);
  options.read = [files](const std::string& path) -> Result<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return Error{Fault::unknown, "cannot read the file \"" + path + "\""};
    return found->second;
  };
  return options;
}

std::string problems_of(const Outcome& outcome) {
  const Problems* problems = std::get_if<Problems>(&outcome);
  return problems == nullptr ? "" : text(*problems);
}

Loaded loaded(Outcome outcome) {
  if (Loaded* made = std::get_if<Loaded>(&outcome)) return std::move(*made);
  ADD_FAILURE() << problems_of(outcome);
  return {};
}

Options with_environment(Environment environment) {
  return with_files({}, std::move(environment));
}

Setting origin(const Loaded& loaded, std::string_view path) {
  for (const Setting& setting : loaded.origins) {
    if (setting.path == path) return setting;
  }
  return {};
}

TEST(Parse, WithoutAFileTheDefaultsLimitByAddress) {
  const Loaded made = loaded(load("", {}));
  ASSERT_EQ(made.policy->limits().size(), 1u);
  EXPECT_EQ(made.policy->limits()[0].name, "per-ip");
  EXPECT_EQ(print(*made.policy->limits()[0].numbers), "100 per 1s, burst 20");
  EXPECT_EQ(made.settings.memory.cleanup, 5min);
}

TEST(Parse, SixVariablesMakeAWholeConfiguration) {
  const Loaded made = loaded(load("", with_environment({{"WEIR_RATE_LIMIT_ENABLED", "true"},
                                                        {"WEIR_RATE_LIMIT_REQUESTS_PER_SEC", "0.5"},
                                                        {"WEIR_RATE_LIMIT_BURST", "7"},
                                                        {"WEIR_RATE_LIMIT_BY_IP", "false"},
                                                        {"WEIR_RATE_LIMIT_BY_APIKEY", "true"},
                                                        {"WEIR_RATE_LIMIT_CLEANUP", "90s"}})));
  ASSERT_EQ(made.policy->limits().size(), 1u);
  const NamedLimit& limit = made.policy->limits()[0];
  EXPECT_EQ(limit.name, "per-apikey");
  EXPECT_EQ(limit.key, std::vector<std::string>{"apikey"});
  EXPECT_EQ(print(*limit.numbers), "1 per 2s, burst 7");
  EXPECT_EQ(made.settings.memory.cleanup, 90s);
  EXPECT_EQ(origin(made, "memory.cleanup").origin, "WEIR_RATE_LIMIT_CLEANUP");
}

TEST(Parse, TheTypeOfALimitNamesEveryPartOfItsKey) {
  const Loaded made =
      loaded(parse("limits:\n"
                   "  a: {key: ip, rate: 1/s}\n"
                   "  b: {key: \"header:X-Tenant\", rate: 1/s}\n"
                   "  c: {key: [ip, \"header:X-Tenant\"], rate: 1/s}\n"
                   "  d: {rate: 1/s}\n",
                   "weir.yaml", {}));
  ASSERT_EQ(made.policy->limits().size(), 4u);
  const auto type = [&](std::string_view name) { return made.policy->find(name)->limiter_type; };
  EXPECT_EQ(type("a"), "ip");
  EXPECT_EQ(type("b"), "header");
  EXPECT_EQ(type("c"), "ip+header");
  EXPECT_EQ(type("d"), "");
}

TEST(Parse, SwitchedOffByVariableLetsEverybodyThrough) {
  const Loaded made = loaded(load("", with_environment({{"WEIR_RATE_LIMIT_ENABLED", "false"}})));
  ASSERT_NE(made.policy->find("per-ip"), nullptr);
  EXPECT_EQ(made.policy->find("per-ip")->mode, Enforcement::off);
}

TEST(Parse, BadVariablesAreNamed) {
  EXPECT_EQ(problems_of(load("", with_environment({{"WEIR_RATE_LIMIT_BURST", "lots"}}))),
            "WEIR_RATE_LIMIT_BURST: burst must be a whole number, not \"lots\"\n");
  EXPECT_EQ(problems_of(load("", with_environment({{"WEIR_RATE_LIMIT_ENABLED", "yes"}}))),
            "WEIR_RATE_LIMIT_ENABLED: must be true or false, not \"yes\"\n");
  EXPECT_EQ(
      problems_of(load("", with_environment({{"WEIR_RATE_LIMIT_REQUESTS_PER_SEC", "fast"}}))),
      "WEIR_RATE_LIMIT_REQUESTS_PER_SEC: must be a number of requests per second above 0, such as 100 or 0.5, not "
      "\"fast\"\n");
  EXPECT_EQ(problems_of(load("", with_environment({{"WEIR_RATE_LIMIT_CLEANUP", "5"}}))),
            "WEIR_RATE_LIMIT_CLEANUP: cleanup: duration \"5\" lacks a unit (ns, us, ms, s, m, h, d or w)\n");
  EXPECT_EQ(
      problems_of(load("", with_environment({{"WEIR_RATE_LIMIT_BY_IP", "false"}}))),
      "WEIR_RATE_LIMIT_ENABLED: is true, but WEIR_RATE_LIMIT_BY_IP and WEIR_RATE_LIMIT_BY_APIKEY are both false\n");
}

TEST(Parse, BadVariablesAreNamedEvenWhereNothingUsesThem) {
  EXPECT_EQ(problems_of(load("", with_environment({{"WEIR_RATE_LIMIT_ENABLED", "false"},
                                                   {"WEIR_RATE_LIMIT_BY_IP", "false"},
                                                   {"WEIR_RATE_LIMIT_BURST", "x"}}))),
            "WEIR_RATE_LIMIT_BURST: burst must be a whole number, not \"x\"\n");
  EXPECT_EQ(problems_of(load("", with_environment({{"WEIR_RATE_LIMIT_BY_IP", "false"},
                                                   {"WEIR_RATE_LIMIT_BURST", "0"},
                                                   {"WEIR_RATE_LIMIT_CLEANUP", "soon"},
                                                   {"WEIR_MEMORY_CLEANUP", "1m"}}))),
            "WEIR_RATE_LIMIT_ENABLED: is true, but WEIR_RATE_LIMIT_BY_IP and WEIR_RATE_LIMIT_BY_APIKEY are both false\n"
            "WEIR_RATE_LIMIT_BURST: burst 0 must be at least 1\n"
            "WEIR_RATE_LIMIT_CLEANUP: cleanup: duration \"soon\" must be digits, with digits on both sides of a "
            "decimal point\n");
}

TEST(Parse, AVariableThatIsSomebodyElsesIsAWarning) {
  const Loaded made =
      loaded(parse("", "t.yaml",
                   with_environment({{"WEIR_BIN", "/usr/bin/weir"}, {"WEIR_TEST_DIR", "/tmp"}, {"WEIR_THREAD", "2"}})));
  EXPECT_EQ(
      made.warnings,
      (std::vector<std::string>{
          "ignoring unknown environment variable WEIR_BIN; settings without a variable are set with --set PATH=VALUE",
          "ignoring unknown environment variable WEIR_TEST_DIR; settings without a variable are set with --set "
          "PATH=VALUE",
          "ignoring unknown environment variable WEIR_THREAD; did you mean WEIR_THREADS?"}));
}

TEST(Parse, AVariableThatTheFileNamesStaysItsOwnWhenAnotherTakesItsPlace) {
  const Loaded made =
      loaded(parse("admin: {read_token: env:WEIR_LOG_TOKEN}", "t.yaml",
                   with_environment({{"WEIR_LOG_TOKEN", "mine"}, {"WEIR_ADMIN_READ_TOKEN", "theirs"}})));
  EXPECT_EQ(made.settings.admin.read_token, "theirs");
  EXPECT_TRUE(made.warnings.empty());
}

TEST(Parse, AVariableBeatsTheFileAndAFlagBeatsBoth) {
  Options options = with_environment({{"WEIR_REDIS_MODE", "cluster"}, {"WEIR_LOG_LEVEL", "warn"}});
  options.flags = {{"log.level", "error"}};
  const Loaded made = loaded(parse("redis: {mode: sentinel, db: 3}\nlog: {level: debug}\n", "t.yaml", options));
  EXPECT_EQ(made.settings.redis.mode, "cluster");
  EXPECT_EQ(made.settings.log.level, "error");
  EXPECT_EQ(origin(made, "redis.mode").origin, "WEIR_REDIS_MODE");
  EXPECT_EQ(origin(made, "log.level").origin, "--set");
  EXPECT_EQ(origin(made, "redis.db").origin, "t.yaml:1:29");
  EXPECT_EQ(origin(made, "redis.pool_size").origin, "default");
}

TEST(Parse, VariablesReachSectionsTheFileDoesNotHaveAndListsByComma) {
  const Loaded made = loaded(parse("", "t.yaml",
                                   with_environment({{"WEIR_REDIS_TLS_ENABLED", "true"},
                                                     {"WEIR_REDIS_ENDPOINTS", "a:1,b:2"},
                                                     {"WEIR_ACCESS_IPV6_PREFIX", "56"},
                                                     {"WEIR_HASH_KEY", "k"}})));
  EXPECT_TRUE(made.settings.redis.tls.enabled);
  EXPECT_EQ(made.settings.redis.endpoints, (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_EQ(made.settings.access.ipv6_prefix, 56);
}

TEST(Parse, VariablesReachTheLimitsOfTheFile) {
  const Loaded made =
      loaded(parse("limits: {per-ip: {rate: 5/s}, other: {rate: 5/s}}", "t.yaml",
                   with_environment({{"WEIR_LIMITS_PER_IP_BURST", "9"}, {"WEIR_LIMITS_OTHER_RATE", "6/s"}})));
  EXPECT_EQ(print(*made.policy->find("per-ip")->numbers), "5 per 1s, burst 9");
  EXPECT_EQ(print(*made.policy->find("other")->numbers), "6 per 1s, burst 6");
  EXPECT_EQ(origin(made, "limits.per-ip.burst").origin, "WEIR_LIMITS_PER_IP_BURST");
}

TEST(Parse, VariablesAndFlagsReachTheTiersOfALimit) {
  Options options = with_environment({{"WEIR_LIMITS_A_TIERS_PRO_COUNT", "7"}, {"WEIR_LIMITS_A_TIERS_BIG_BURST", "9"}});
  options.flags = {{"limits.a.tiers.big.rate", "8/s"}};
  const Loaded made =
      loaded(parse("limits: {a: {rate: 5/s, tiers: {pro: {rate: 2/s}, big: {rate: 3/s}}}}", "t.yaml", options));
  const std::vector<Tier>& tiers = made.policy->find("a")->tiers;
  EXPECT_EQ(print(*tiers[0].numbers), "7 per 1s, burst 7") << "a variable beats the file in any spelling";
  EXPECT_EQ(print(*tiers[1].numbers), "8 per 1s, burst 9");
  EXPECT_EQ(origin(made, "limits.a.tiers.pro.count").origin, "WEIR_LIMITS_A_TIERS_PRO_COUNT");
  EXPECT_EQ(origin(made, "limits.a.tiers.big.rate").origin, "--set");
}

TEST(Parse, AVariableBeatsTheFileInAnySpellingOfANumber) {
  const auto numbers = [](const std::string& limit, Environment environment, Environment flags = {}) {
    Options options = with_environment(std::move(environment));
    options.flags = std::move(flags);
    const Loaded made = loaded(parse("limits: {per-ip: {key: ip, " + limit + "}}", "t.yaml", options));
    return made.policy->limits().empty() ? "" : print(*made.policy->limits()[0].numbers);
  };
  EXPECT_EQ(numbers("rate: 10/s, burst: 5", {{"WEIR_LIMITS_PER_IP_COUNT", "70"}}), "70 per 1s, burst 5");
  EXPECT_EQ(numbers("rate: 10/s, burst: 5", {{"WEIR_LIMITS_PER_IP_CAPACITY", "7"}}), "10 per 1s, burst 7");
  EXPECT_EQ(numbers("count: 10, period: 1m", {{"WEIR_LIMITS_PER_IP_RATE", "3/s"}}), "3 per 1s, burst 3");
  EXPECT_EQ(numbers("rate: 10/s", {{"WEIR_LIMITS_PER_IP_PERIOD", "1h"}}), "10 per 1h, burst 10");
  EXPECT_EQ(numbers("average: 0, period: 1s", {{"WEIR_LIMITS_PER_IP_COUNT", "4"}}), "4 per 1s, burst 4");
  EXPECT_EQ(numbers("rate: 1/s", {{"WEIR_LIMITS_PER_IP_COUNT", "70"}}, {{"limits.per-ip.rate", "8/s"}}),
            "8 per 1s, burst 8");
  EXPECT_EQ(
      problems_of(parse("limits: {per-ip: {rate: 10/s}}", "t.yaml",
                        with_environment({{"WEIR_LIMITS_PER_IP_COUNT", "7"}, {"WEIR_LIMITS_PER_IP_RATE", "8/s"}}))),
      "WEIR_LIMITS_PER_IP_RATE: rate gives a count of 8, but count gives 7\n")
      << "twice in one source";
}

TEST(Parse, AVariableBeatsTheFileWhereverItGivesALimitItsNumber) {
  const auto number = [](Environment environment, Environment flags = {}) {
    Options options = with_environment(std::move(environment));
    options.flags = std::move(flags);
    const Loaded made =
        loaded(parse("limits: {a: {rate: 1/s, number: 6}}\nnames: {a: {number: 6}}", "t.yaml", options));
    return made.policy == nullptr ? 0 : made.policy->limits()[0].number.value();
  };
  EXPECT_EQ(number({{"WEIR_LIMITS_A_NUMBER", "7"}}), 7u);
  EXPECT_EQ(number({{"WEIR_NAMES_A_NUMBER", "7"}}), 7u);
  EXPECT_EQ(number({{"WEIR_NAMES_A_NUMBER", "7"}}, {{"limits.a.number", "8"}}), 8u);
}

TEST(Parse, AVariableThatCouldMeanTwoLimitsIsRefused) {
  EXPECT_EQ(problems_of(parse("limits: {a-b: {rate: 5/s}, a.b: {rate: 5/s}}", "t.yaml",
                              with_environment({{"WEIR_LIMITS_A_B_BURST", "9"}}))),
            "WEIR_LIMITS_A_B_BURST: could mean limits.a-b.burst or limits.a.b.burst\n");
}

TEST(Parse, AVariableIsCheckedLikeTheFile) {
  EXPECT_EQ(problems_of(parse("", "t.yaml", with_environment({{"WEIR_REDIS_DB", "-1"}, {"WEIR_STORE", "disk"}}))),
            "WEIR_STORE: store must be memory or redis, not \"disk\"\n"
            "WEIR_REDIS_DB: db -1 must be 0 to 65535\n");
}

TEST(Parse, AFlagThatNamesNoSettingIsRefused) {
  Options options;
  options.flags = {{"redis.moed", "x"}};
  EXPECT_EQ(problems_of(parse("", "t.yaml", options)),
            "--set redis.moed: there is no setting \"redis.moed\"; did you mean \"redis.mode\"?\n");
  options.flags = {{"redis.db", "x"}, {"listen[3].address", "127.0.0.1:1"}, {"overrides.a:x", "1/s"}};
  EXPECT_EQ(problems_of(parse("", "t.yaml", options)),
            "--set redis.db: db must be a whole number, not \"x\"\n"
            "--set listen[3].address: there is no setting \"listen[3].address\"\n"
            "--set overrides.a:x: there is no setting \"overrides.a:x\"\n");
}

TEST(Parse, AFlagReachesEntriesOfListsByTheirPlace) {
  Options options;
  options.flags = {{"listen[0].address", "127.0.0.1:81"}, {"listen[1].speak", "http"}};
  const Loaded usual = loaded(parse("", "t.yaml", options));
  ASSERT_EQ(usual.settings.listen.size(), 3u);
  EXPECT_EQ(usual.settings.listen[0].address, "127.0.0.1:81");
  EXPECT_EQ(usual.settings.listen[1].speak, std::vector<std::string>{"http"});
  EXPECT_EQ(usual.settings.listen[2].address, "127.0.0.1:9090");
  EXPECT_EQ(origin(usual, "listen[0].address").origin, "--set");
  EXPECT_EQ(origin(usual, "listen[0].speak").origin, "default");
  options.flags = {{"listen[0].address", "127.0.0.1:81"}, {"listen[0].tls.cert", "new.pem"},
                   {"routes[0].match.path", "/b"},        {"routes[0].limits", "none"},
                   {"access.deny[0].reason", "why"},      {"limits.a.schedule[0].count", "7"}};
  const Loaded made =
      loaded(parse("listen: [{address: '127.0.0.1:1', speak: http, tls: {cert: c.pem, key: k.pem}}]\n"
                   "limits: {a: {key: ip, rate: 1/s, schedule: [{days: mon, rate: 5/s}]}}\n"
                   "routes: [{name: r, match: {path: /a}}]\n"
                   "access: {deny: [{ip: 1.2.3.4}]}\n",
                   "t.yaml", options));
  EXPECT_EQ(made.settings.listen[0].address, "127.0.0.1:81");
  EXPECT_EQ(made.settings.listen[0].tls[0].cert, "new.pem");
  EXPECT_EQ(made.policy->access().entries()[0].reason, "why");
  EXPECT_EQ(made.policy->limits()[0].schedule[0].numbers.count(), 7);
  EXPECT_EQ(origin(made, "routes[0].match.path").value, "/b");
  EXPECT_EQ(origin(made, "routes[0].limits").value, "none");
}

TEST(Parse, AVariableThatLooksLikeOursAndIsNotIsRefused) {
  EXPECT_EQ(problems_of(parse("", "t.yaml",
                              with_environment({{"WEIR_REDIS_MOED", "single"},
                                                {"WEIR_RATE_LIMIT_BRUST", "5"},
                                                {"WEIR_LIMITS_NOBODY_BURST", "5"},
                                                {"WEIR_FROBNICATION", "1"}}))),
            "WEIR_LIMITS_NOBODY_BURST: unknown setting; settings without a variable are set with --set PATH=VALUE\n"
            "WEIR_RATE_LIMIT_BRUST: unknown setting; did you mean WEIR_RATE_LIMIT_BURST?\n"
            "WEIR_REDIS_MOED: unknown setting; did you mean WEIR_REDIS_MODE?\n");
  EXPECT_EQ(problems_of(load("", with_environment({{"WEIR_RATE_LIMIT_BY_APIKEYS", "true"}}))),
            "WEIR_RATE_LIMIT_BY_APIKEYS: unknown setting; did you mean WEIR_RATE_LIMIT_BY_APIKEY?\n");
}

TEST(Parse, VariablesThatOthersSetAreLeftAlone) {
  const Loaded made = loaded(parse("admin: {read_token: env:WEIR_MY_TOKEN}", "t.yaml",
                                   with_environment({{"WEIR_SERVER", "http://127.0.0.1:1"},
                                                     {"WEIR_ADMIN", "http://127.0.0.1:2"},
                                                     {"WEIR_TOKEN", "t"},
                                                     {"WEIR_MY_TOKEN", "mine"},
                                                     // Kubernetes, of services called weir and weir-admin.
                                                     {"WEIR_SERVICE_HOST", "10.0.0.1"},
                                                     {"WEIR_SERVICE_PORT_HTTP", "80"},
                                                     {"WEIR_PORT", "tcp://10.0.0.1:8080"},
                                                     {"WEIR_PORT_8080_TCP", "tcp://10.0.0.1:8080"},
                                                     {"WEIR_PORT_8080_TCP_ADDR", "10.0.0.1"},
                                                     {"WEIR_ADMIN_SERVICE_PORT", "9090"},
                                                     {"WEIRD", "1"},
                                                     {"HOME", "/"}})));
  EXPECT_EQ(made.settings.admin.read_token, "mine");
  EXPECT_EQ(made.warnings, std::vector<std::string>{});
}

TEST(Parse, TheSixVariablesBesideAFileAreAWarning) {
  EXPECT_EQ(loaded(parse("", "t.yaml", with_environment({{"WEIR_RATE_LIMIT_BURST", "5"}}))).warnings,
            std::vector<std::string>{"variable WEIR_RATE_LIMIT_BURST counts only without a configuration file"});
}

TEST(Parse, SecretsAreLookedUpAndNeverShown) {
  const Options options = with_files({{"/run/token", "from-file\n"}}, {{"PASSWORD", "from-env"}});
  const Loaded made =
      loaded(parse("redis: {password: env:PASSWORD}\nadmin: {read_token: file:/run/token, write_token: plain-one}\n"
                   "listen: [{address: 'unix:/x', speak: resp, password: env:PASSWORD}]\n",
                   "t.yaml", options));
  EXPECT_EQ(made.settings.redis.password, "from-env");
  EXPECT_EQ(made.settings.admin.read_token, "from-file");
  EXPECT_EQ(made.settings.listen[0].password, "from-env");
  EXPECT_EQ(origin(made, "admin.write_token").value, "(hidden)");
  const std::string shown = show(made);
  for (const char* secret : {"from-env", "from-file", "plain-one"}) {
    EXPECT_EQ(shown.find(secret), std::string::npos) << secret;
  }
}

TEST(Parse, SecretsInMapsAreLookedUpToo) {
  const Options options = with_files({{"/run/token", "from-file\n"}}, {{"TOKEN", "Bearer from-env"}});
  const Loaded made =
      loaded(parse("limits:\n  a: {rate: 1/s, external: {enabled: true, grpc: {address: 'x:1', metadata: {token: "
                   "file:/run/token}}}}\n"
                   "  b: {rate: 1/s}\n"
                   "external: {enabled: true, limit: b, http: {url: 'http://x', headers: {Authorization: env:TOKEN, "
                   "x-y: plain-one}}}\n",
                   "t.yaml", options));
  using Fields = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(made.policy->find("a")->service->fields, (Fields{{"token", "from-file"}}));
  EXPECT_EQ(made.policy->find("b")->service->fields,
            (Fields{{"authorization", "Bearer from-env"}, {"x-y", "plain-one"}}));
  const std::string shown = show(made);
  for (const char* secret : {"from-env", "from-file", "plain-one"}) {
    EXPECT_EQ(shown.find(secret), std::string::npos) << secret;
  }
}

TEST(Parse, AMissingSecretIsAnErrorThatNamesIt) {
  EXPECT_EQ(problems_of(parse("hash_key: env:NOPE\nadmin: {read_token: file:/nope}\n", "t.yaml", with_files({}))),
            "t.yaml:1:11: hash_key: the variable \"NOPE\" is not set\n"
            "t.yaml:2:21: read_token: cannot read the file \"/nope\"\n");
  EXPECT_EQ(problems_of(parse("access: {allow: [{apikey: env:NOPE}]}", "t.yaml", with_files({}))),
            "t.yaml:1:27: apikey: the variable \"NOPE\" is not set\n");
  EXPECT_EQ(problems_of(parse("limits: {a: {rate: 1/s, external: {http: {url: 'http://x', headers: {a: env:NOPE}}}}}",
                              "t.yaml", with_files({}))),
            "t.yaml:1:73: headers: the variable \"NOPE\" is not set\n");
}

TEST(Parse, AnEmptySecretIsNoneAndRefused) {
  EXPECT_EQ(problems_of(parse("hash_key: env:EMPTY\nadmin: {read_token: file:/empty, write_token: file:/line}\n",
                              "t.yaml", with_files({{"/empty", ""}, {"/line", "\n"}}, {{"EMPTY", ""}}))),
            "t.yaml:1:11: hash_key: the variable \"EMPTY\" is empty\n"
            "t.yaml:2:21: read_token: the file \"/empty\" is empty\n"
            "t.yaml:2:47: write_token: the file \"/line\" is empty\n");
}

TEST(Parse, ASecretFileHoldsAtItsBoundAndNotOnePastIt) {
  const std::string most(bounds::secret_bytes_max, 's');
  EXPECT_EQ(loaded(parse("hash_key: file:/k", "t.yaml", with_files({{"/k", most}}))).settings.hash_key, most);
  EXPECT_EQ(problems_of(parse("hash_key: file:/k", "t.yaml", with_files({{"/k", most + "s"}}))),
            "t.yaml:1:11: hash_key: the file \"/k\" is larger than 65536 bytes\n");
}

TEST(Parse, PathsOfFilesStartFromTheConfigurationsDirectory) {
  const Options options = with_files({{"etc/weir.yaml", "limits: sub/limits.yaml\noverrides: /abs/overrides.yaml\n"},
                                      {"etc/sub/limits.yaml", "a: {rate: 1/s}\n"},
                                      {"/abs/overrides.yaml", "a:x: {rate: 2/s}\n"}});
  const Loaded made = loaded(load("etc/weir.yaml", options));
  EXPECT_EQ(made.policy->override_count(), 1u);
  EXPECT_EQ(origin(made, "limits.a.rate").origin, "etc/sub/limits.yaml:1:11");
  EXPECT_NE(show(made).find("overrides.a:x: 2 per 1s, burst 2  # /abs/overrides.yaml:1:1\n"), std::string::npos);
}

TEST(Parse, AVariableMayNameTheFileOfOverrides) {
  const Options options = with_files({{"more.yaml", "a:x: {rate: 2/s}\n"}}, {{"WEIR_OVERRIDES", "more.yaml"}});
  EXPECT_EQ(loaded(parse("limits: {a: {rate: 1/s}}", "t.yaml", options)).policy->override_count(), 1u);
}

TEST(Parse, ProblemsOfAllFilesAreReportedTogetherUnderTheirNames) {
  const Options options = with_files({{"l.yaml", "a: {rate: 1/s, brust: 5}\n"}, {"o.yaml", "b:x: {rate: 2/s}\n"}});
  EXPECT_EQ(problems_of(parse("store: disk\nlimits: l.yaml\noverrides: o.yaml\n", "t.yaml", options)),
            "t.yaml:1:8: store must be memory or redis, not \"disk\"\n"
            "l.yaml:1:16: unknown key \"brust\"; did you mean \"burst\"?\n"
            "o.yaml:1:1: override \"b:x\" is for an unknown limit \"b\"\n");
}

TEST(Parse, AFileThatHasBecomeEmptyIsNotTakenForNothing) {
  for (const char* nothing : {"", "\n", " \r\n\t"}) {
    Options options = with_files({{"t.yaml", "limits: l.yaml\noverrides: o.yaml\n"},
                                  {"l.yaml", nothing},
                                  {"o.yaml", nothing},
                                  {"e.yaml", nothing}});
    const Loaded empty = loaded(load("t.yaml", options));
    EXPECT_EQ(empty.empty_files, (std::vector<std::string>{"l.yaml", "o.yaml"}));
    EXPECT_EQ(loaded(load("e.yaml", options)).empty_files, std::vector<std::string>{"e.yaml"});
    options.empty_before = empty.empty_files;
    (void)loaded(load("t.yaml", options));  // as it was from the beginning
    options.empty_before.emplace();
    EXPECT_EQ(problems_of(load("t.yaml", options)),
              "l.yaml:1:1: the file is empty; limits that have nothing are written as {}\n"
              "o.yaml:1:1: the file is empty; overrides that have nothing are written as {}\n");
    EXPECT_EQ(problems_of(load("e.yaml", options)),
              "e.yaml:1:1: the file is empty; a configuration that has nothing is written as {}\n");
  }
  Options options =
      with_files({{"t.yaml", "limits: l.yaml\noverrides: o.yaml\n"}, {"l.yaml", "{}"}, {"o.yaml", "# none\n"}});
  options.empty_before.emplace();
  EXPECT_TRUE(loaded(load("t.yaml", options)).empty_files.empty());
}

TEST(Parse, APipeThatNobodyWritesToIsNotWaitedForForEver) {
  const std::string pipe = testing::TempDir() + "weir_parse_pipe_" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "limits: {a: {rate: 5/s}}"; });
  EXPECT_EQ(loaded(load(pipe, {})).policy->limits().size(), 1u) << "one that is written to is read";
  writer.join();
  Options hasty;
  hasty.pipe_patience = 1ms;
  EXPECT_EQ(problems_of(load(pipe, hasty)),
            pipe + ": cannot read the file \"" + pipe + "\": it is a pipe, and nothing was written to it in time\n");
  EXPECT_EQ(unlink(pipe.c_str()), 0);
}

TEST(Parse, AMissingFileIsOneProblem) {
  EXPECT_EQ(problems_of(load("nope.yaml", with_files({}))), "nope.yaml: cannot read the file \"nope.yaml\"\n");
  EXPECT_EQ(problems_of(load("/", {})), "/: cannot read the file \"/\": Is a directory\n");
}

TEST(Parse, ALimitWithAKeyButNoNumbersIsAWarning) {
  const Loaded made = loaded(parse("limits: {a: {key: ip}}", "t.yaml", {}));
  EXPECT_EQ(made.warnings, std::vector<std::string>{
                               "t.yaml:1:10: limit \"a\" has no numbers: only ids that have an override are limited"});
}

TEST(Parse, ARouteThatCostsMoreThanItsLimitEverLetsPassIsAWarning) {
  const std::string limits = "limits: {a: {key: ip, rate: 5/s}, q: {key: ip, quota: 9/day}}\n";
  const Loaded at =
      loaded(parse(limits + "routes: [{name: r, match: {path: /x}, limits: [a, q], cost: 5}]", "t.yaml", {}));
  EXPECT_EQ(at.warnings, std::vector<std::string>{});
  const Loaded past =
      loaded(parse(limits + "routes: [{name: r, match: {path: /x}, limits: [a, q], cost: 6}]", "t.yaml", {}));
  EXPECT_EQ(past.warnings,
            std::vector<std::string>{"t.yaml:2:61: route \"r\" costs 6, more than the limit \"a\" ever lets pass (5): "
                                     "such requests are refused"});
  const Loaded both =
      loaded(parse(limits + "routes: [{name: r, match: {path: /x}, limits: [a, q], cost: 10}]", "t.yaml", {}));
  EXPECT_EQ(both.warnings.size(), 2u);
  const Loaded dark =
      loaded(parse("limits: {a: {key: ip, rate: 5/s, mode: shadow}}\n"
                   "routes: [{name: r, match: {path: /x}, limits: [a], cost: 6}]",
                   "t.yaml", {}));
  EXPECT_EQ(dark.warnings, std::vector<std::string>{}) << "it refuses nobody";
}

TEST(Parse, SettingsHaveTheirDefaults) {
  const Settings settings = loaded(parse("", "t.yaml", {})).settings;
  ASSERT_EQ(settings.listen.size(), 3u);
  EXPECT_EQ(settings.listen[2].address, "127.0.0.1:9090");
  EXPECT_EQ(settings.threads, 0);
  EXPECT_EQ(settings.store, StoreKind::memory);
  EXPECT_EQ(settings.memory.max_buckets, 50'000'000);
  EXPECT_TRUE(settings.memory.names);
  EXPECT_EQ(settings.state.every, 10s);
  EXPECT_EQ(settings.redis.endpoints, std::vector<std::string>{"127.0.0.1:6379"});
  EXPECT_EQ(settings.redis.timeout, 250ms);
  EXPECT_EQ(settings.redis.key_prefix, "weir:");
  EXPECT_EQ(settings.redis.fallback_buckets, 65536);
  EXPECT_EQ(settings.redis.share, 1);
  EXPECT_EQ(settings.failure_code, 429);
  EXPECT_EQ(settings.access.ipv6_prefix, 64);
  EXPECT_EQ(settings.proxy.header_max, 65536);
  EXPECT_EQ(settings.drain_timeout, 30s);
  EXPECT_EQ(settings.headers.ratelimit, (std::vector<std::string>{"x-ratelimit", "ietf"}));
  EXPECT_EQ(settings.log.level, "info");
}

TEST(Parse, FailurePolicyIsReadInAnyCase) {
  for (const char* spelling : {"failClosed", "failclosed", "FAILCLOSED"}) {
    const Loaded made = loaded(parse(std::string("failure_policy: ") + spelling, "t.yaml", {}));
    EXPECT_EQ(made.settings.failure_policy, FailurePolicy::fail_closed);
    EXPECT_EQ(origin(made, "failure_policy").value, "failClosed");
  }
}

TEST(Parse, ForeignSpellingsBecomeOurNumbers) {
  const Loaded made =
      loaded(parse("limits:\n"
                   "  a: {average: 100, period: 1s, burst: 50}\n"
                   "  b: {average: 0, period: 1s}\n"
                   "  c: {capacity: 10, addTokenMs: 500, maximumTimeBeforeTokenExpiry: 3600}\n",
                   "t.yaml", {}));
  EXPECT_EQ(print(*made.policy->find("a")->numbers), "100 per 1s, burst 50");
  EXPECT_TRUE(made.policy->find("b")->unlimited);
  EXPECT_EQ(print(*made.policy->find("c")->numbers), "1 per 500ms, burst 10");
  EXPECT_EQ(made.policy->find("c")->idle_min, 3600s);
}

// A server opens its state, which has the key, between the two.
TEST(Parse, ReadsEachFileOnceAndTakesTheHashKeyAfterwards) {
  std::vector<std::string> read;
  Options options;
  options.made_hash_key = "key";
  options.read = [&](const std::string& path) -> Result<std::string> {
    read.push_back(path);
    if (path == "limits.yaml") return std::string("mail: {rate: 1/s, hashed: true}");
    return std::string("limits: limits.yaml\naccess: {deny: [{limit: mail, id: a@example.com}]}");
  };
  auto checked = check("weir.yaml", options);
  EXPECT_EQ(read, (std::vector<std::string>{"weir.yaml", "limits.yaml"}));
  const Loaded finished = std::get<Checked>(std::move(checked)).finish("key");
  EXPECT_EQ(read.size(), 2u);
  const Loaded made = loaded(load("weir.yaml", options));
  ASSERT_EQ(finished.policy->access().entries().size(), 1u);
  EXPECT_EQ(finished.policy->access().entries()[0].id, *finished.policy->bucket_id("mail", "a@example.com"));
  EXPECT_EQ(finished.policy->access().entries()[0].id, made.policy->access().entries()[0].id);
  EXPECT_NE(std::get<Checked>(check("weir.yaml", options)).finish("other").policy->access().entries()[0].id,
            made.policy->access().entries()[0].id);
}

}  // namespace
}  // namespace weir::config::parse_test
