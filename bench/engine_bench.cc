// How fast the engine decides, beside its peers, in one run on one machine:
//   engine_bench [--quick | --full] [--keys 1k,1M,50M] [--only decisions,hashes,one-key,memory,growth] [--json]
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "bench/machine.h"
#include "bench/report.h"

namespace weir::bench {
namespace {

constexpr std::string_view kUsage =
    "usage: engine_bench [--quick | --full] [--keys 1k,1M,50M] [--only PARTS] [--json]\n"
    "  --quick  1k and 1M keys in under a minute; --full (the default) adds 50M and takes about 20 minutes\n"
    "  --keys   numbers of keys to decide on\n"
    "  --only   some of decisions, hashes, one-key, memory, growth, separated by commas\n"
    "  --json   machine-readable instead of Markdown\n";

struct Options {
  bool quick = false;
  bool json = false;
  std::vector<std::uint64_t> keys;
  std::vector<std::string> only;

  bool wants(const std::string& part) const {
    return only.empty() ? !(quick && part == "hashes") : std::find(only.begin(), only.end(), part) != only.end();
  }
};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    parts.emplace_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

// "1k", "50M" or plain digits, up to 100M; 0 if it is none of these.
std::uint64_t parse_count(const std::string& text) {
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(text.c_str(), &end, 10);
  const std::string_view unit(end);
  const std::uint64_t factor = unit.empty() ? 1 : unit == "k" ? 1'000 : unit == "M" ? 1'000'000 : 0;
  return number <= 100'000'000 && number * factor <= 100'000'000 ? number * factor : 0;
}

// False if the command line makes no sense.
bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument(argv[i]);
    if (argument == "--quick") {
      options.quick = true;
    } else if (argument == "--full") {
      options.quick = false;
    } else if (argument == "--json") {
      options.json = true;
    } else if (argument == "--keys" && i + 1 < argc) {
      for (const std::string& count : split(argv[++i])) {
        options.keys.push_back(parse_count(count));
        if (options.keys.back() == 0) return false;
      }
    } else if (argument == "--only" && i + 1 < argc) {
      options.only = split(argv[++i]);
    } else {
      return false;
    }
  }
  if (!options.keys.empty()) return true;
  options.keys = {1'000, 1'000'000};
  if (!options.quick) options.keys.push_back(50'000'000);
  return true;
}

void decide(const Options& options, const Effort& effort, Report& report) {
  const auto add = [&](std::uint64_t keys, Comparison comparison) {
    report.rows.insert(report.rows.end(), comparison.rows.begin(), comparison.rows.end());
    if (comparison.floor_ns != 0) report.floor_ns[keys] = comparison.floor_ns;
  };
  for (const std::uint64_t keys : options.keys) {
    if (options.wants("decisions")) add(keys, compare<Text>(keys, all_peers<Text>(), effort));
  }
  for (const std::uint64_t keys : options.keys) {
    if (!options.wants("hashes")) continue;
    const bool all = keys <= kInterleavedMax;
    add(keys, compare<Mixed>(keys, all ? all_peers<Mixed>() : std::vector{Peer::weir, Peer::absl_inline}, effort));
  }
}

int run(const Options& options) {
  const Effort effort = options.quick ? Effort{250'000, 3} : Effort{1'000'000, 4};
  Report report;
  report.machine = machine_line();
  report.costs = measure_costs();
  decide(options, effort, report);
  if (options.wants("one-key")) report.hot = compare_on_one_key(effort);
  std::vector<std::uint64_t> sizes = {100'000, 1'000'000};
  if (!options.quick) sizes.insert(sizes.end(), {10'000'000, 50'000'000});
  for (const bool names : {false, true}) {
    for (const std::uint64_t keys : sizes) {
      if (options.wants("memory")) report.footprints.push_back(measure_footprint(keys, names));
    }
  }
  for (const bool maintained : {true, false}) {
    if (options.wants("growth")) report.growths.push_back(measure_growth(sizes.back(), maintained));
  }
  progress("");
  options.json ? print_json(report, std::cout) : print_markdown(report, std::cout);
  return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  weir::bench::Options options;
  if (!weir::bench::parse(argc, argv, options)) {
    std::cerr << weir::bench::kUsage;
    return 2;
  }
  return weir::bench::run(options);
}
