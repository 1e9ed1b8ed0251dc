#include "weir/wire/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>

namespace weir::json_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string refusal(std::string_view text) {
  JsonReader reader;
  const auto value = reader.read(text);
  return value ? "accepted" : value.error().detail;
}

void write(JsonValue value, JsonWriter& out) {
  switch (value.kind()) {
    case JsonKind::null:
      out.null();
      return;
    case JsonKind::boolean:
      out.boolean(value.boolean());
      return;
    case JsonKind::number:
      out.number(value.number());
      return;
    case JsonKind::string:
      out.string(value.string());
      return;
    case JsonKind::array:
      out.begin_array();
      for (const JsonValue item : value.items()) write(item, out);
      out.end_array();
      return;
    case JsonKind::object:
      out.begin_object();
      for (const JsonValue::Member member : value.members()) write(member.value, out.key(member.key));
      out.end_object();
      return;
  }
}

std::string written_again(std::string_view text) {
  JsonReader reader;
  const auto value = reader.read(text);
  if (!value) return value.error().detail;
  std::string out;
  JsonWriter writer(out);
  write(*value, writer);
  return out;
}

std::string in_quotes(std::string_view text) {
  std::string out;
  JsonWriter(out).string(text);
  return out;
}

TEST(JsonReader, KeepsNumbersAsWritten) {
  EXPECT_EQ(written_again("[0.005, 1e-3, -0, 123456789012345678901234567890.10, 1E+400]"),
            "[0.005,1e-3,-0,123456789012345678901234567890.10,1E+400]");
}

TEST(JsonReader, ReadsOnlyIntegersThatFit) {
  JsonReader reader;
  const auto integer = [&](std::string_view text) { return reader.read(text)->integer(); };
  EXPECT_EQ(integer("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(integer("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(integer("9223372036854775808"), std::nullopt);
  EXPECT_EQ(integer("1.0"), std::nullopt);
  EXPECT_EQ(integer("1e2"), std::nullopt);
  EXPECT_EQ(integer("-0"), 0);
}

TEST(JsonReader, ReadsEveryKindAtTheRootAndInside) {
  for (const char* text : {"null", "true", "false", "0", "\"x\"", "[]", "{}", "[null,true,false,1,\"s\",[],{}]",
                           R"({"a":null,"b":{"c":[1,[2,{"d":3}]]},"e":"f"})"}) {
    EXPECT_EQ(written_again(text), text);
    EXPECT_EQ(written_again("  " + std::string(text) + "\t\r\n"), text);
  }
}

TEST(JsonReader, UnescapesStringsAndKeys) {
  EXPECT_EQ(written_again(R"({"\u0061\n":"\u00e9\ud83d\ude00\/\"\\"})"),
            "{\"a\\u000a\":\"\u00e9\U0001F600/\\\"\\\\\"}");
  JsonReader reader;
  EXPECT_EQ(reader.read(R"("a\u0000b")")->string(), std::string_view("a\0b", 3));
}

// Short plain objects take the fast path, with the same nodes and errors.
TEST(JsonReader, FastPathMatchesTheFullParser) {
  JsonReader shorter;
  JsonReader longer;
  const std::string eight = R"("a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8)";
  for (const std::string& text : {
           std::string(R"({"limit":"orders","id":"alice","cost":2})"),
           std::string(" {\t\"a\" :\n\"\" , \"b\":-0.5e+3 ,\"c\":true,\"d\":null\r}\n "),
           std::string("{}"),
           "{" + eight + "}",
           "{" + eight + R"(,"i":9})",
           "{" + eight + R"(,"i":{)" + eight + R"(},"j":9,"k":10,"l":11,"m":12,"n":13,"o":14,"p":15})",
           "{" + eight + R"(,"i":{)" + eight + R"(},"j":9,"k":10,"l":11,"m":12,"n":13,"o":14,"p":15,"q":16})",
           std::string(R"({"a":{"b":{"c":{"d":1}}},"b":2})"),
           std::string(R"({"a":{"b":{"c":{"d":{}}}},"b":2})"),
           std::string(R"({"a":{"b":1},"a":2})"),
           std::string(R"({"a":{"b":1,"b":2}})"),
           std::string(R"({"a":[1,2],"b":{}})"),
           std::string(R"({"a":1,"a":2})"),
           std::string(R"({"a":"\u0041"})"),
           std::string("{\"a\":\"\xC3\xA9\x7F\"}"),
           std::string(R"({"a":{"b":1}})"),
           std::string(R"({"a":01})"),
           std::string(R"({"a":nul})"),
           std::string(R"({"a":1,})"),
           std::string(R"({"a":1}})"),
           std::string(R"({"a":"b)"),
           std::string(R"({"a" 1})"),
           std::string("{"),
           R"({"a":")" + std::string(1024 - 8, 'x') + R"("})",
           R"({"a":")" + std::string(1025 - 8, 'x') + R"("})",
       }) {
    const auto one = shorter.read(text);
    const auto other = longer.read_any(text);
    ASSERT_EQ(one.has_value(), other.has_value()) << text;
    if (!one) {
      EXPECT_EQ(one.error().detail, other.error().detail) << text;
      continue;
    }
    std::string first;
    std::string second;
    JsonWriter to_first(first);
    JsonWriter to_second(second);
    write(*one, to_first);
    write(*other, to_second);
    EXPECT_EQ(first, second) << text;
  }
}

TEST(JsonReader, FindsAMemberByKey) {
  JsonReader reader;
  const auto value = reader.read(R"({"a":{"b":1},"b":2})");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->find("b")->integer(), 2);
  EXPECT_EQ(value->find("a")->find("b")->integer(), 1);
  EXPECT_FALSE(value->find("c"));
}

TEST(JsonReader, ReadsOneTextAfterAnother) {
  JsonReader reader;
  for (int i = 0; i < 100; ++i) {
    const std::string text = "[" + std::string(static_cast<std::size_t>(i), ' ') + std::to_string(i) + "]";
    const auto value = reader.read(text);
    ASSERT_TRUE(value);
    EXPECT_EQ((*value->items().begin()).integer(), i);
    EXPECT_FALSE(reader.read("[1,"));
  }
}

TEST(JsonReader, RefusesADuplicateKeyHoweverItIsEscaped) {
  EXPECT_EQ(refusal(R"({"a":1,"b":2,"a":3})"), "byte 14: the key \"a\" is written twice in one object");
  EXPECT_EQ(refusal(R"([{"x":{"a":1,"\u0061":3}}])"), "byte 14: the key \"a\" is written twice in one object");
  EXPECT_EQ(refusal(R"({"a":{"a":1},"b":{"a":1}})"), "accepted");
}

TEST(JsonReader, ReportsTheByteAndTheRule) {
  EXPECT_EQ(refusal(""), "byte 1: there is no value");
  EXPECT_EQ(refusal(" \n "), "byte 1: there is no value");
  EXPECT_EQ(refusal("[1, 01]"), "byte 5: a number is not written as JSON writes it");
  EXPECT_EQ(refusal("[1, nul]"), "byte 5: a word is neither true, false nor null");
  EXPECT_EQ(refusal("[1] 2"), "byte 5: text follows the value");
  EXPECT_EQ(refusal("{\"a\": \"b\nc\"}"), "byte 9: a control character inside a string must be escaped");
  EXPECT_EQ(refusal("[\"a\xff\"]"), "byte 4: the text is not valid UTF-8");
  EXPECT_EQ(refusal(R"({"a":"b)"), "byte 6: a string that begins here has no end");
  EXPECT_EQ(refusal(R"(["a\x"])"), "byte 2: a string that begins here holds an escape that does not exist");
  EXPECT_EQ(refusal("[1,]"), "byte 4: a value was expected");
  EXPECT_THAT(refusal("[1 2]"), StartsWith("byte 1: an array that begins here lacks"));
  EXPECT_THAT(refusal(R"([{"a" 1}])"), StartsWith("byte 2: an object that begins here lacks"));
  EXPECT_THAT(refusal(R"({"a":1)"), StartsWith("byte "));
}

TEST(JsonReader, EnforcesTheDepthAndSizeLimits) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(refusal(nested(bounds::json_depth_max)), "accepted");
  EXPECT_EQ(refusal(nested(bounds::json_depth_max + 1)), "byte 65: the nesting is deeper than 64 levels");
  EXPECT_THAT(refusal(nested(bounds::json_bytes_max / 2)), HasSubstr("deeper"));

  const auto padded = [](std::size_t size) { return "[]" + std::string(size - 2, ' '); };
  EXPECT_EQ(refusal(padded(bounds::json_bytes_max)), "accepted");
  EXPECT_EQ(refusal(padded(bounds::json_bytes_max + 1)), "the text has 1048577 bytes; at most 1048576 are read");
}

TEST(JsonWriter, EscapesForbiddenCharactersAndReplacesInvalidUtf8) {
  EXPECT_EQ(in_quotes("a\"b\\c\n\x01\x7f/"), "\"a\\\"b\\\\c\\u000a\\u0001\\u007f/\"");
  EXPECT_EQ(in_quotes(std::string_view("\0", 1)), "\"\\u0000\"");
  EXPECT_EQ(in_quotes("\u00e9\u20ac\U0001F600"), "\"\u00e9\u20ac\U0001F600\"");
  EXPECT_EQ(in_quotes("a\xff\xc0\xaf"
                      "b"),
            "\"a\uFFFD\uFFFD\uFFFDb\"");
  EXPECT_EQ(in_quotes("\xed\xa0\x80"), "\"\uFFFD\uFFFD\uFFFD\"");  // a surrogate
  EXPECT_EQ(in_quotes("\xf4\x90\x80\x80\xe2\x82"), "\"\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\"");
}

TEST(JsonWriter, WritesCommasOnlyBetweenValues) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_object().key("a").begin_array().number(1).number("0.5").null().begin_object().end_object().end_array();
  writer.key("b").boolean(true).key("c").string("").end_object();
  EXPECT_EQ(out, R"({"a":[1,0.5,null,{}],"b":true,"c":""})");
}

TEST(JsonWriter, WritesAnyBytesAsAValidString) {
  EXPECT_TRUE(rc::check("any bytes", [](const std::string& bytes) {
    const std::string text = in_quotes(bytes);
    const auto theirs = nlohmann::json::parse(text);
    JsonReader reader;
    const auto ours = reader.read(text);
    RC_ASSERT(ours.has_value());
    RC_ASSERT(ours->string() == theirs.get<std::string>());
  }));
}

// Accepts exactly what nlohmann accepts, except for what we refuse on purpose.
bool agree(const std::string& text) {
  const std::string ours = refusal(text);
  // The other parser treats a NUL as the end of the text.
  if (text.find('\0') != std::string::npos) return ours != "accepted";
  if (!nlohmann::json::accept(text)) return ours != "accepted";
  if (ours == "accepted") return nlohmann::json::parse(written_again(text)) == nlohmann::json::parse(text);
  return ours.find("written twice") != std::string::npos;
}

TEST(JsonReader, AgreesWithAnotherParserOnEveryTripleOfPieces) {
  const std::vector<std::string> pieces{"",      "{",  "}",    "[",         "]",       ",",      ":",        "\"a\"",
                                        "\"b\"", "\"", "\\",   "\\u0041",   "\\ud83d", "0",      "1",        "-",
                                        ".5",    "e1", "true", "null",      " ",       "\n",     "\xc3\xa9", "\xc3",
                                        "x",     "{}", "[]",   "{\"a\":1}", "[1,2]",   ",\"c\":"};
  for (const std::string& a : pieces) {
    for (const std::string& b : pieces) {
      for (const std::string& c : pieces) {
        ASSERT_TRUE(agree(a + b + c)) << a + b + c;
        ASSERT_TRUE(agree("[" + a + b + c + "]")) << a + b + c;
      }
    }
  }
}

TEST(JsonReader, AgreesWithAnotherParserWhateverByteIsChangedAddedOrLost) {
  const std::string text = R"({"t":0.05,"l":"x\u00e9é","c":[{"id":"y"},null,true],"e":-1.5e+3} )";
  for (std::size_t place = 0; place < text.size(); ++place) {
    std::string lost = text;
    ASSERT_TRUE(agree(lost.erase(place, 1))) << lost;
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = text;
      changed[place] = static_cast<char>(byte);
      ASSERT_TRUE(agree(changed)) << changed;
      std::string added = text;
      ASSERT_TRUE(agree(added.insert(place, 1, static_cast<char>(byte)))) << added;
    }
  }
}

}  // namespace
}  // namespace weir::json_test
