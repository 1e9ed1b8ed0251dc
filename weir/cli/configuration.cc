#include "weir/cli/configuration.h"

#include <unistd.h>

#include <string_view>
#include <utility>
#include <variant>

namespace weir::cli {
namespace {

policy::Environment process_environment() {
  policy::Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

}  // namespace

policy::Outcome load(const std::string& path, std::string_view hash_key) {
  policy::Options options;
  options.environment = process_environment();
  options.made_hash_key = hash_key;
  return policy::load(path, options);
}

void complain(const policy::Problems& problems, const std::string& path, Console& console) {
  for (const policy::Problem& problem : problems) console.err.write(problem.text() + "\n");
  console.complain((path.empty() ? "the environment" : path) + " is refused: " + counted(problems.size(), "problem"));
}

std::optional<policy::Loaded> load_or_complain(const std::string& path, Console& console) {
  policy::Outcome outcome = load(path);
  if (const auto* const problems = std::get_if<policy::Problems>(&outcome)) {
    complain(*problems, path, console);
    return std::nullopt;
  }
  return std::move(std::get<policy::Loaded>(outcome));
}

std::string counted(std::size_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

}  // namespace weir::cli
