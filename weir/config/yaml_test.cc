#include "weir/config/yaml.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "weir/base/bounds.h"
#include "weir/config/plain_yaml.h"

namespace weir::config::yaml_test {
namespace {

// Kinds, texts and places of all nodes.
void print(const Document& document, NodeId id, std::string& out) {
  const Node& node = document.node(id);
  out += std::to_string(static_cast<int>(node.kind)) + (node.quoted ? "q " : " ") +
         document.where(document.key_mark(id)) + " " + std::string(document.key(id)) + " " +
         document.where(document.mark(id)) + " " + std::string(document.value(id)) + "\n";
  for (const NodeId child : document.children(id)) print(document, child, out);
}

using Reader = NodeId (*)(std::string_view, FileId, Document&, Complaints&);

std::string tree(Reader reader, std::string_view text) {
  Document document;
  Complaints complaints(document);
  const NodeId root = reader(text, document.add_file("t"), document, complaints);
  std::string out = config::text(complaints.sorted());
  if (root != kNoNode) print(document, root, out);
  return out;
}

// Whether the quick reader takes the text, and then gives what yaml-cpp gives.
bool is_plain(std::string_view text) {
  EXPECT_EQ(tree(read_yaml, text), tree(read_by_yaml_cpp, text)) << text;
  Document document;
  Complaints complaints(document);
  TreeBuilder builder(document.add_file("t"), document, complaints);
  return read_plain_yaml(text, builder);
}

TEST(PlainYaml, TakesBareFilesOfDefaultsAndOverrides) {
  EXPECT_TRUE(is_plain("A:1:\n  burst: 3\n  count: 4\n\n# comment\nB:2001:db8::/48:\n    period: 180m  # why\n"));
  EXPECT_TRUE(
      is_plain("A:1: {burst: 300, count: 600, period: 180m}\nB:x,y: {}\nC:1.2.3.4/8:   { unlimited: true }  # c\n"));
  EXPECT_TRUE(is_plain("store: memory\nthreads: 4"));
  EXPECT_TRUE(is_plain(""));
  EXPECT_TRUE(is_plain("# only\n\n  # comments\n"));
  EXPECT_TRUE(is_plain("a::\n  b: 1\n"));
  EXPECT_TRUE(is_plain("a:\n\n  # between\n  b: 1\n\n  c: 2"));
}

TEST(PlainYaml, LeavesEverythingElseToTheWholeReader) {
  for (const char* text : {"a: \"x\"\n",
                           "'a': x\n",
                           "a: [1]\n",
                           "a: &b x\n",
                           "a: *b\n",
                           "a: !t x\n",
                           "a: |\n  x\n",
                           "- a\n",
                           "a:\n- b\n",
                           "a:\n  b:\n    c: d\n",
                           "a: x\n  y\n",
                           "a:\n  b: x\n    y\n",
                           "a:\n  b: x\n c: y\n",
                           "a: null\n",
                           "null: a\n",
                           "a: ~\n",
                           "a:\n",
                           "a:\nb: c\n",
                           "a: x y\n",
                           "a:x\n",
                           "a: {b: c\n",
                           "a: {b: c,\n d: e}\n",
                           "a: {b}\n",
                           "a: {b: c}}\n",
                           "a: {b: c} d\n",
                           "a: {b: c,}\n",
                           "a: {b: {c: d}}\n",
                           "a: x#y\n",
                           "a:\tb\n",
                           "a: b\r\n",
                           "---\na: b\n",
                           "a: b\n---\n",
                           "a: b\n...\n",
                           " a: b\n",
                           "a: b: c\n",
                           "a: {b:c}\n",
                           "a: {b: c:d}\n",
                           "a: http://x\n",
                           "\xef\xbb\xbf"
                           "a: b\n",
                           "? a\n",
                           "# c\rstore: redis\n",
                           "a: b # c\rd: e\n",
                           "a: b\n c: d\n",
                           "a: -\n",
                           "a: - b\n",
                           "a: {b: }\n",
                           "a: {: b}\n",
                           "a: {b: c d}\n",
                           "a #x: b\n",
                           "a: #x\n",
                           "%YAML 1.2\n"}) {
    EXPECT_FALSE(is_plain(text)) << text;
  }
}

TEST(PlainYaml, GivesTheSameNodesForEveryFixture) {
  for (const char* folder : {"weir/config/testdata", "examples/acme"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(WEIR_SOURCE_DIR) / folder)) {
      std::ifstream file(entry.path(), std::ios::binary);
      std::ostringstream text;
      text << file.rdbuf();
      is_plain(text.str());
    }
  }
}

TEST(Yaml, NestsAsDeepAsTheBoundAndNotOneDeeper) {
  const auto nested = [](int depth) {
    return "a: " + std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_EQ(tree(read_yaml, nested(bounds::config_depth_max - 1)).find("deeper"), std::string::npos);
  EXPECT_EQ(tree(read_yaml, nested(bounds::config_depth_max)), "t:1:35: nests deeper than 32 levels\n");
  EXPECT_NE(tree(read_yaml, nested(10'000)).find("t:1:35: nests deeper than 32 levels\n"), std::string::npos);
}

TEST(Yaml, AliasesRepeatAsMuchAsTheBoundAndNotOneMore) {
  // Each alias repeats the list and its items: 100 nodes.
  std::string text = "a: &a [";
  for (int i = 0; i < 99; ++i) text += "1,";
  text += "]\nb: [";
  std::string most = text;
  for (std::size_t i = 0; i < bounds::config_alias_nodes_max / 100; ++i) most += "*a,";
  EXPECT_EQ(tree(read_yaml, most + "]").find("repeat"), std::string::npos);
  EXPECT_NE(tree(read_yaml, most + "*a]").find("aliases repeat more than 100000 values"), std::string::npos);
}

TEST(Yaml, AFileHoldsAtItsBoundAndNotOneByteMore) {
  std::string text(bounds::config_bytes_max, '#');
  EXPECT_EQ(tree(read_yaml, text), "0 t  t:1:1 \n");
  text += '#';
  EXPECT_EQ(tree(read_yaml, text), "t:1:1: is larger than 256 MiB\n");
}

TEST(Yaml, RefusesBytesThatAreNoText) {
  EXPECT_EQ(tree(read_yaml, std::string_view("a: b\nc\0: d", 10)), "t:2:2: byte 0x00 is a control character\n");
  EXPECT_EQ(tree(read_yaml, "a: \xff\n"), "t:1:4: byte 0xff is not part of valid UTF-8\n");
  EXPECT_EQ(tree(read_yaml, "a: \xc3\xa4\n").find("byte"), std::string::npos);
  EXPECT_EQ(tree(read_yaml, "a: \u0080\n"), "t:1:4: U+0080 is a control character\n");
  EXPECT_EQ(tree(read_yaml, "a: b\n# \u009f\n"), "t:2:3: U+009f is a control character\n");
  EXPECT_EQ(tree(read_yaml, "# \u0085 \u00a0\n").find("control"), std::string::npos);
}

TEST(Yaml, EscapesAreTheCharactersTheyStandFor) {
  EXPECT_EQ(tree(read_yaml, "\"a\\N\\_\\x80\""), "1q t  t:1:1 a\u0085\u00a0\u0080\n");
}

TEST(Yaml, AliasesAreCopiesWithTheirOwnKeys) {
  EXPECT_EQ(tree(read_yaml, "a: &x {b: 1}\nc: *x\n"),
            "3 t  t:1:1 \n3 t:1:1 a t:1:4 \n1 t:1:8 b t:1:11 1\n3 t:2:1 c t:1:4 \n1 t:1:8 b t:1:11 1\n");
}

TEST(Yaml, AQuoteThatIsNeverClosedIsFoundWhereItWasOpened) {
  for (const char* text :
       {"a: b\nc: \"d\ne: f\n", "a: b\nc: 'd\ne: ''f''\n", "a: b\nc: \"d", "a: b\nc: 'd\n", "a: b\r\nc: \"d\r\n",
        "a: b\nc: \"\\\"\n", "\xef\xbb\xbf\"a\": b\nc: 'd", "a: b\nc: \"d\\\n e"}) {
    EXPECT_EQ(tree(read_yaml, text), "t:2:4: this quote is never closed\n") << text;
  }
  EXPECT_EQ(tree(read_yaml, "a: [{b: \"c, d: e}]\n"), "t:1:9: this quote is never closed\n");
  EXPECT_EQ(tree(read_yaml, "- &x # \"\n  \"a\n"), "t:2:3: this quote is never closed\n");
  EXPECT_EQ(tree(read_yaml, "a: \"b\n---\nc: d\n"),
            "t:1:4: this quote is not closed before line 2, where a document begins or ends\n");
}

TEST(Yaml, AQuotedTextMustNotRunOverOtherEntries) {
  const auto runs_on = [](const std::string& from, int to) {
    return "t:" + from + ": the text quoted from here runs on to line " + std::to_string(to) +
           ", which is not indented deeper than its key: is a closing quote missing?\n";
  };
  EXPECT_EQ(tree(read_yaml, "a: \"b\nc: d\"\n"), runs_on("1:4", 2));
  EXPECT_EQ(tree(read_yaml, "a: \"b\nc: \"d\"\n"), runs_on("1:4", 2));
  EXPECT_EQ(tree(read_yaml, "a:\n  b: 'c\n\n  d: e'\n"), runs_on("2:6", 4));
  EXPECT_EQ(tree(read_yaml, "a:\n  b: 'c\n   c\n  d: e'\n"), runs_on("2:6", 4));
  EXPECT_EQ(tree(read_yaml, "a:\r\n- \"b\r\n- c\"\r\n"), runs_on("2:3", 3));
  EXPECT_EQ(tree(read_yaml, "- {a: \"b}\n- {a: \"c\"}\n"), runs_on("1:7", 2));
  EXPECT_EQ(tree(read_yaml, "- a: 'b\n  c: d'\n"), runs_on("1:6", 2));
  EXPECT_EQ(tree(read_yaml, "- a: &x 'b\\\n  c: d'\n"), runs_on("1:9", 2));
}

TEST(Yaml, AQuotedTextOfSeveralLinesIsFine) {
  for (const char* text :
       {"a: \"b\n c: d\"\n", "a:\n  b: 'c\n\n   d: e'\n", "a:\n- \"b\n - c\"\n", "- {a: \"b\n c\"}\n",
        "- a: 'b\n   c: d'\n", "- - 'b\n   c: d'\n", "--- \"a\nb\"\n", "{a: \"b\nc\"}\n", "? a\n: \"b\n c\"\n",
        "a: &x\n  b: \"c\n   d\"\n", "a: &x \"b\n c\"\n", "a: !\n  \"b\n c\"\n", "\"a\"\n", "a: |\n  \"b\nc: 'd'\n",
        "a: b \"c\nd: it's\n", "# \"a\nb: c # \"\n", "- ? 'a\n   b'\n"}) {
    EXPECT_EQ(tree(read_yaml, text).find("quote"), std::string::npos) << text << tree(read_yaml, text);
  }
}

TEST(Yaml, SaysWhatIsWrongWithATabAndWithALongKey) {
  EXPECT_EQ(tree(read_yaml, "a:\n  b: 1\n \tc: 2\n"),
            "t:3:2: not valid YAML: a tab must not indent a line; indent it by spaces\n");
  const std::string key(1024, 'k');
  EXPECT_EQ(tree(read_yaml, "a:\n  " + key + ": 1\n").find("longer"), std::string::npos);
  EXPECT_EQ(tree(read_yaml, "a:\n  " + key + "k: 1\n"),
            "t:2:3: a key longer than 1024 bytes must be written on a line of its own behind \"? \", its value on the "
            "next behind \": \"\n");
  EXPECT_EQ(tree(read_yaml, "a:\n  ? " + key + "k\n  : 1\n").find("longer"), std::string::npos);
}

}  // namespace
}  // namespace weir::config::yaml_test
