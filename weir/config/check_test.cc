// Traps generated from the table: what the table does not know never passes, at any level.
#include "weir/config/check.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "weir/base/nearest.h"
#include "weir/config/fields.h"
#include "weir/config/parse.h"

namespace weir::config::check_test {
namespace {

std::string problems_of(const std::string& yaml) {
  const Outcome outcome = parse(yaml, "t.yaml", {});
  const Problems* problems = std::get_if<Problems>(&outcome);
  return problems == nullptr ? "" : text(*problems);
}

// Calls with flow YAML that wraps a body into the place where the section's fields stand.
using Wrap = std::function<std::string(const std::string& body)>;
using Visit = std::function<void(std::span<const Field>, const Wrap&)>;

void visit_sections(std::span<const Field> fields, const Wrap& wrap, const Visit& visit) {
  visit(fields, wrap);
  for (const Field& field : fields) {
    if (field.type != Type::section) continue;
    const std::string name(field.name);
    const bool list = field.shape == Shape::list;
    const bool map = field.shape == Shape::map_or_path || field.shape == Shape::map;
    const Wrap below = [=](const std::string& body) {
      if (list) return wrap(name + ": [{" + body + "}]");
      if (map) return wrap(name + ": {x: {" + body + "}}");
      return wrap(name + ": {" + body + "}");
    };
    visit_sections(field.fields, below, visit);
  }
}

const Wrap kTop = [](const std::string& body) { return "{" + body + "}"; };

TEST(Check, RefusesAnUnknownKeyInEverySectionOfTheTable) {
  int sections = 0;
  visit_sections(file_fields(), kTop, [&](std::span<const Field>, const Wrap& wrap) {
    ++sections;
    const std::string yaml = wrap("no_such_key_: 1");
    EXPECT_NE(problems_of(yaml).find("unknown key \"no_such_key_\""), std::string::npos) << yaml;
  });
  EXPECT_GE(sections, 30);
}

TEST(Check, RefusesEveryFieldWrittenTwice) {
  visit_sections(file_fields(), kTop, [&](std::span<const Field> fields, const Wrap& wrap) {
    for (const Field& field : fields) {
      const std::string name(field.name);
      const std::string yaml = wrap(name + ": 1, " + name + ": 1");
      EXPECT_NE(problems_of(yaml).find("key \"" + name + "\" is written twice"), std::string::npos) << yaml;
    }
  });
}

TEST(Check, FindsAKeyWrittenTwiceAmongVeryMany) {
  std::string yaml = "limits:\n";
  for (int i = 0; i < 1000; ++i) yaml += "  l" + std::to_string(i) + ": {rate: 1/s}\n";
  EXPECT_EQ(problems_of(yaml), "");
  yaml += "  l500: {rate: x}\n";
  EXPECT_EQ(problems_of(yaml),
            "t.yaml:1002:3: key \"l500\" is written twice; the first is at t.yaml:502:3\n"
            "t.yaml:1002:16: rate \"x\" must read like 100/s, 0.5/s or 20 per minute\n");
}

TEST(Check, RefusesAMapWhereEveryScalarStands) {
  visit_sections(file_fields(), kTop, [&](std::span<const Field> fields, const Wrap& wrap) {
    for (const Field& field : fields) {
      if (field.type == Type::section || field.shape == Shape::map) continue;
      const std::string name(field.name);
      const std::string yaml = wrap(name + ": {a: 1}");
      EXPECT_NE(problems_of(yaml).find(name + " must be a "), std::string::npos) << yaml;
    }
  });
}

TEST(Check, EveryDefaultOfTheTableIsAValueOfItsField) {
  visit_sections(file_fields(), kTop, [&](std::span<const Field> fields, const Wrap&) {
    for (const Field& field : fields) {
      if (field.fallback.empty() || field.shape != Shape::one) continue;
      EXPECT_EQ(check_value(field, field.fallback, false), std::nullopt) << field.name;
    }
  });
}

TEST(Check, EveryFieldHasASentenceAndAUniqueName) {
  visit_sections(file_fields(), kTop, [&](std::span<const Field> fields, const Wrap&) {
    std::set<std::string_view> names;
    for (const Field& field : fields) {
      EXPECT_TRUE(field.doc.ends_with('.')) << field.name;
      EXPECT_TRUE(names.insert(field.name).second) << field.name;
    }
  });
}

TEST(Check, IntegersHoldAtTheirBoundsAndNotOnePastThem) {
  const Field& code = *find_field(file_fields(), "failure_code");
  EXPECT_EQ(check_value(code, "400", false), std::nullopt);
  EXPECT_EQ(check_value(code, "599", false), std::nullopt);
  EXPECT_EQ(check_value(code, "399", false), "failure_code 399 must be 400 to 599");
  EXPECT_EQ(check_value(code, "600", false), "failure_code 600 must be 400 to 599");
}

TEST(Check, ASecretIsNeverQuotedInAProblem) {
  const std::string problems = problems_of("redis: {password: [hunter2]}\nadmin: {read_token: {hunter2: 1}}\n");
  EXPECT_NE(problems, "");
  EXPECT_EQ(problems.find("hunter2"), std::string::npos) << problems;
}

TEST(Nearest, FindsSwappedMissingAndExtraLettersButNothingFar) {
  const std::vector<std::string_view> words{"burst", "count", "period"};
  EXPECT_EQ(nearest_word(words, "brust"), "burst");
  EXPECT_EQ(nearest_word(words, "coun"), "count");
  EXPECT_EQ(nearest_word(words, "periods"), "period");
  EXPECT_EQ(nearest_word(words, "COUNT"), "count");
  EXPECT_EQ(nearest_word(words, "elephant"), "");
  EXPECT_EQ(nearest_word(words, "corny"), "");
  EXPECT_EQ(nearest_word(words, ""), "");
  EXPECT_EQ(nearest_word(words, std::string(1000, 'x')), "");
}

}  // namespace
}  // namespace weir::config::check_test
