// Every file in testdata: good_* load, bad_* produce exactly the messages in their first lines.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "weir/config/describe.h"
#include "weir/config/parse.h"

namespace weir::config::fixtures_test {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(WEIR_SOURCE_DIR) / "weir/config/testdata";

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

std::vector<std::string> files(const std::string& start) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(start)) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Names in problems are relative, as if the folder were the working directory.
Outcome load_fixture(const std::string& name) {
  Options options;
  options.read = [](const std::string& path) -> Result<std::string> {
    if (std::filesystem::exists(kFolder / path)) return read(kFolder / path);
    return Error{Fault::unknown, "cannot read the file \"" + path + "\": No such file or directory"};
  };
  return load(name, options);
}

// The comment lines a file begins with, without "# ".
std::string expected(const std::string& text) {
  std::istringstream lines(text);
  std::string line, out;
  while (std::getline(lines, line) && line.starts_with("# ")) out += line.substr(2) + "\n";
  return out;
}

TEST(Fixtures, GoodFilesLoad) {
  const std::vector<std::string> names = files("good_");
  EXPECT_GE(names.size(), 15u);
  for (const std::string& name : names) {
    const Outcome outcome = load_fixture(name);
    const Problems* problems = std::get_if<Problems>(&outcome);
    EXPECT_EQ(problems, nullptr) << text(*problems);
  }
}

TEST(Fixtures, BadFilesProduceExactlyTheMessagesOnTheirFirstLines) {
  const std::vector<std::string> names = files("bad_");
  EXPECT_GE(names.size(), 60u);
  for (const std::string& name : names) {
    const Outcome outcome = load_fixture(name);
    const Problems* problems = std::get_if<Problems>(&outcome);
    const std::string messages = expected(read(kFolder / name));
    EXPECT_NE(messages, "") << name << " does not say what it expects";
    EXPECT_EQ(problems == nullptr ? "" : text(*problems), messages) << name;
  }
}

TEST(Fixtures, ProblemsAreSortedByPosition) {
  for (const std::string& name : files("bad_")) {
    const Outcome outcome = load_fixture(name);
    const Problems& problems = std::get<Problems>(outcome);
    for (std::size_t i = 1; i < problems.size(); ++i) {
      if (problems[i].file != problems[i - 1].file) continue;
      EXPECT_LE(std::pair(problems[i - 1].line, problems[i - 1].column),
                std::pair(problems[i].line, problems[i].column))
          << name;
    }
  }
}

}  // namespace
}  // namespace weir::config::fixtures_test
