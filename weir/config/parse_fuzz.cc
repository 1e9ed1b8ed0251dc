// Any bytes are either a configuration or a list of problems, each with a place; never a crash. Files that the text
// names are not read.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/config/describe.h"
#include "weir/config/diff.h"
#include "weir/config/parse.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  config::Options options;
  options.environment = {{"WEIR_REDIS_MODE", "cluster"}, {"WEIR_HOME", "/"}, {"SECRET", "s"}};
  // Both are refused where there is no limit of that name, so half of the texts go without.
  if (size % 2 == 0) {
    options.environment.emplace("WEIR_LIMITS_A_COUNT", "7");
    options.flags = {{"limits.a.burst", "9"}, {"listen[0].address", "127.0.0.1:81"}};
  }
  options.made_hash_key = "key";
  options.read = [&](const std::string&) -> Result<std::string> { return std::string(text.substr(text.size() / 2)); };
  const config::Outcome outcome = config::parse(text, "fuzz.yaml", options);
  if (const auto* problems = std::get_if<config::Problems>(&outcome)) {
    WEIR_ASSERT(!problems->empty());
    for (const config::Problem& problem : *problems) WEIR_ASSERT(!problem.sentence.empty() && !problem.file.empty());
    return 0;
  }
  const auto& loaded = std::get<config::Loaded>(outcome);
  config::show(loaded);
  WEIR_ASSERT(config::diff(loaded, loaded).empty());
  for (const NamedLimit& limit : loaded.policy->limits()) {
    const NamedCharge charge{limit.name, "12345678", 1};
    Resolved out;
    if (loaded.policy->resolve({NamedCharges{{&charge, 1}}}, Known(), {}, out)) WEIR_ASSERT(out.parts().size() == 1);
  }
  return 0;
}
