#include "weir/config/envoy.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/config/envoy_rule.h"
#include "weir/config/secrets.h"
#include "weir/config/yaml.h"
#include "weir/identify/digest.h"

namespace weir::config {
namespace {

namespace fs = std::filesystem;

// How the limits of one file count.
enum class EnvoyAlgorithm : unsigned char { by_unit, token_bucket, fixed_window };

constexpr std::array<std::string_view, 2> kFileKeys = {"domain", "descriptors"};
constexpr std::array<std::string_view, 10> kDescriptorKeys = {
    "key",        "value",           "rate_limit",      "descriptors",     "shadow_mode",
    "quota_mode", "detailed_metric", "value_to_metric", "share_threshold", "metadata"};

// Turns a text into a valid limit name: bounded in length; letters, digits, '.', '_' and '-'.
std::string fitting_name(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    if (!is_letter(c) && !is_digit(c) && c != '.' && c != '-') c = '_';
  }
  constexpr std::size_t kHashBytes = 8;
  if (name.size() > bounds::name_bytes_max) {
    name = name.substr(0, bounds::name_bytes_max - kHashBytes - 1) + "-" + sha256_hex(text).substr(0, kHashBytes);
  }
  return name;
}

std::string numbered(const std::string& name, int number) {
  const std::string suffix = "-" + std::to_string(number);
  return name.substr(0, bounds::name_bytes_max - suffix.size()) + suffix;
}

class EnvoyReader {
 public:
  EnvoyReader(const Options& options, Document& document, Limits& limits, Complaints& complaints, Loaded& loaded)
      : options_(options),
        document_(document),
        limits_(limits),
        complaints_(complaints),
        loaded_(loaded),
        merge_domains_(loaded.settings.merge_domains) {}

  void read_path(const std::string& path, EnvoyAlgorithm algorithm, NodeId entry);
  DescriptorTable finish() { return std::move(table_); }

 private:
  // A descriptor's place in the file.
  struct Place {
    std::string name;  // "domain.key_value.key"
    EnvoyAlgorithm algorithm;
  };
  // A descriptor's fields other than rate_limit.
  struct Traits {
    bool shares = false;  // one bucket for all values of a pattern
    bool shadow = false;
    bool alternative = false;
    std::string metadata;  // a JSON object; empty: none
  };

  void read_one(const std::string& path, EnvoyAlgorithm algorithm, NodeId entry);
  void read_root(NodeId root, EnvoyAlgorithm algorithm);
  void read_list(NodeId map, DescriptorNode& parent, const Place& place);
  void read_descriptor(NodeId item, DescriptorNode& parent, const Place& place);
  Traits read_traits(NodeId item, std::string_view value);
  DescriptorNode* add_node(NodeId item, const std::string& key, const std::string& value, bool shared,
                           DescriptorNode& parent);
  void add_rule(NodeId rate_limit, const Traits& traits, const Place& place, DescriptorNode& node);
  void set_numbers(const EnvoyRule& rule, const Place& place, NodeId at, NamedLimit& limit, Written& written);
  std::size_t add_limit(const std::string& name, NodeId at);

  const Options& options_;
  Document& document_;
  Limits& limits_;
  Complaints& complaints_;
  Loaded& loaded_;
  DescriptorTable table_;
  std::map<std::string, Mark, std::less<>> domains_;  // where each was first named
  std::map<const DescriptorNode*, Mark> nodes_;
  std::size_t files_ = 0;
  const bool merge_domains_;
};

// Returns the names of the files in a directory; nullopt if the path is not a directory.
std::optional<std::vector<std::string>> list_directory(const Options& options, const std::string& path) {
  if (options.list) return options.list(path);
  std::error_code error;
  if (!fs::is_directory(path, error)) return {};
  std::vector<std::string> names;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    if (!at->is_directory(error)) names.push_back(at->path().filename().string());
    error.clear();
  }
  return names;
}

void EnvoyReader::read_path(const std::string& path, EnvoyAlgorithm algorithm, NodeId entry) {
  std::optional<std::vector<std::string>> names = list_directory(options_, path);
  if (!names) return read_one(path, algorithm, entry);
  // Watch the directory too, because files may be added.
  if (options_.reading) options_.reading(path + "/.");
  std::erase_if(*names, [](const std::string& name) {
    return name.starts_with('.') || !(name.ends_with(".yaml") || name.ends_with(".yml"));
  });
  std::ranges::sort(*names);
  if (names->empty()) loaded_.warnings.push_back("envoy: the directory " + quote(path) + " has no *.yaml and no *.yml");
  for (const std::string& name : *names) read_one((fs::path(path) / name).string(), algorithm, entry);
}

void EnvoyReader::read_one(const std::string& path, EnvoyAlgorithm algorithm, NodeId entry) {
  if (++files_ > bounds::envoy_files_max) {
    if (files_ == bounds::envoy_files_max + 1) {
      complaints_.add(entry, "envoy: more than " + std::to_string(bounds::envoy_files_max) + " files");
    }
    return;
  }
  const Result<std::string> text = read_file(options_, path, bounds::config_bytes_max);
  if (!text) return complaints_.add(entry, "envoy: " + text.error().detail);
  const NodeId root = read_yaml(*text, document_.add_file(path), document_, complaints_);
  if (root != kNoNode) read_root(root, algorithm);
}

void EnvoyReader::read_root(NodeId root, EnvoyAlgorithm algorithm) {
  if (!check_envoy_keys(document_, root, "a file of rate limits", kFileKeys, complaints_)) return;
  const std::string domain(document_.text(root, "domain"));
  const NodeId at = document_.find(root, "domain");
  if (domain.empty()) return complaints_.add(at == kNoNode ? root : at, "the file must have a domain");
  const auto [first, fresh] = domains_.emplace(domain, document_.mark(at));
  if (!fresh && !merge_domains_) {
    return complaints_.add(at, "domain " + quote(domain) + " is already at " + document_.where(first->second) +
                                   "; merge_domains: true merges them");
  }
  DescriptorTable::Domain& made = table_.domain(domain);
  read_list(root, made.root, {domain, algorithm});
  if (made.own == DescriptorRule::kNoLimit) {
    made.own = static_cast<std::uint32_t>(add_limit(domain + ".own", at));
  }
}

void EnvoyReader::read_list(NodeId map, DescriptorNode& parent, const Place& place) {
  const NodeId list = document_.find(map, "descriptors");
  if (list == kNoNode || document_.is(list, NodeKind::null)) return;
  if (!document_.is(list, NodeKind::sequence)) {
    return complaints_.add(list, "descriptors must be a list of maps");
  }
  for (const NodeId item : document_.children(list)) read_descriptor(item, parent, place);
}

void EnvoyReader::read_descriptor(NodeId item, DescriptorNode& parent, const Place& place) {
  if (!check_envoy_keys(document_, item, "a descriptor", kDescriptorKeys, complaints_)) return;
  const std::string key(document_.text(item, "key"));
  if (key.empty()) return complaints_.add(item, "a descriptor must have a key");
  const std::string value(document_.text(item, "value"));
  const Traits traits = read_traits(item, value);
  DescriptorNode* const node = add_node(item, key, value, traits.shares, parent);
  if (node == nullptr) return;
  const Place inner{place.name + "." + key + (value.empty() ? "" : "_" + value), place.algorithm};
  const NodeId rate_limit = document_.find(item, "rate_limit");
  if (rate_limit != kNoNode && !document_.is(rate_limit, NodeKind::null)) add_rule(rate_limit, traits, inner, *node);
  read_list(item, *node, inner);
}

// Checks all of them, even if there is no rate_limit to apply them to.
EnvoyReader::Traits EnvoyReader::read_traits(NodeId item, std::string_view value) {
  const auto flag = [&](std::string_view name) { return read_envoy_flag(document_, item, name, complaints_); };
  (void)flag("detailed_metric");
  (void)flag("value_to_metric");
  Traits traits{flag("share_threshold"), flag("shadow_mode"), flag("quota_mode"), {}};
  if (traits.shares && value.find('*') == value.npos) {
    complaints_.add(document_.find(item, "share_threshold"), "share_threshold needs a value with *");
  }
  const NodeId metadata = document_.find(item, "metadata");
  if (document_.is(metadata, NodeKind::map)) {
    traits.metadata = to_json(document_, metadata);
  } else if (metadata != kNoNode && !document_.is(metadata, NodeKind::null)) {
    complaints_.add(metadata, "metadata must be a map");
  }
  return traits;
}

// Returns null after a complaint.
DescriptorNode* EnvoyReader::add_node(NodeId item, const std::string& key, const std::string& value, bool shared,
                                      DescriptorNode& parent) {
  DescriptorNode::Choices& choices = parent.keys[key];
  std::unique_ptr<DescriptorNode>* place = &choices.any;
  if (value.find('*') != value.npos) {
    auto same = std::ranges::find(choices.patterns, value, &DescriptorNode::Pattern::text);
    if (same == choices.patterns.end()) same = choices.patterns.insert(same, {value, nullptr});
    place = &same->node;
  } else if (!value.empty()) {
    place = &choices.exact[value];
  }
  if (*place != nullptr) {
    complaints_.add(item, "the descriptor with key " + quote(key) +
                              (value.empty() ? std::string() : " and value " + quote(value)) +
                              " is written twice; the first is at " + document_.where(nodes_[place->get()]));
    return nullptr;
  }
  *place = std::make_unique<DescriptorNode>();
  nodes_[place->get()] = document_.mark(item);
  (*place)->open = value.empty() || (value.find('*') != value.npos && !shared);
  return place->get();
}

void EnvoyReader::add_rule(NodeId rate_limit, const Traits& traits, const Place& place, DescriptorNode& node) {
  const std::optional<EnvoyRule> read = read_envoy_rule(document_, rate_limit, complaints_);
  if (!read) return;
  DescriptorRule& rule = node.rule.emplace();
  rule.name = read->name;
  rule.replaces = read->replaces;
  rule.count = read->count;
  rule.unit = read->unit;
  rule.multiplier = read->multiplier;
  rule.alternative = traits.alternative && !traits.shadow;
  rule.metadata = traits.metadata;
  if (read->unlimited) return;
  // A bucket's resolution is one token per nanosecond.
  if (read->count > read->period().count()) {
    loaded_.warnings.push_back(document_.where(document_.mark(rate_limit)) +
                               ": more than 1000000000 per second count as unlimited");
    return;
  }
  const std::size_t index = add_limit(read->name.empty() ? place.name : read->name, rate_limit);
  rule.limit = static_cast<std::uint32_t>(index);
  NamedLimit& limit = limits_.made[index];
  limit.mode = traits.shadow ? Enforcement::shadow : Enforcement::enforce;
  limit.alternative = rule.alternative;
  set_numbers(*read, place, rate_limit, limit, limits_.written[index]);
}

void EnvoyReader::set_numbers(const EnvoyRule& rule, const Place& place, NodeId at, NamedLimit& limit,
                              Written& written) {
  if (rule.count == 0) {
    limit.blocked = true;
    return;
  }
  bool window = place.algorithm == EnvoyAlgorithm::fixed_window;
  if (place.algorithm == EnvoyAlgorithm::by_unit) window = rule.unit >= std::chrono::days{1};
  if (!window) {
    const Result<Limit> numbers = Limit::make(rule.count, rule.period(), rule.count);
    if (numbers && numbers->window() <= document_.window_max()) {
      limit.numbers = *numbers;
      written.count = {rule.count, at, true};
      written.period = {rule.period(), at, true};
      return;
    }
    loaded_.warnings.push_back(document_.where(document_.mark(at)) + ": a bucket of " + print_duration(rule.period()) +
                               " is longer than the store can hold; it counts as a fixed window");
  }
  limit.quota = QuotaText{rule.count, Calendar::day, rule.period()};
  const bool quick = rule.period() % std::chrono::minutes{1} != Duration::zero();
  if (quick && rule.count > bounds::quick_quota_max) {
    complaints_.add(at, "requests_per_unit " + std::to_string(rule.count) + " must be at most " +
                            std::to_string(bounds::quick_quota_max) +
                            " in a fixed window that does not end on whole minutes");
  }
}

std::size_t EnvoyReader::add_limit(const std::string& name, NodeId at) {
  const std::string fitting = fitting_name(name);
  std::string unique = fitting;
  for (int number = 2; limits_.by_name.contains(unique); ++number) unique = numbered(fitting, number);
  const std::size_t index = limits_.made.size();
  limits_.by_name.emplace(unique, index);
  NamedLimit& limit = limits_.made.emplace_back();
  limit.name = unique;
  limit.limiter_type = "descriptor";
  limits_.nodes.push_back(at);
  limits_.written.emplace_back();
  return index;
}

}  // namespace

DescriptorTable read_envoy(const Options& options, const std::string& directory, Document& document, NodeId root,
                           Limits& limits, Complaints& complaints, Loaded& loaded) {
  EnvoyReader reader(options, document, limits, complaints, loaded);
  for (const NodeId item : document.items(root, "envoy")) {
    const bool map = document.is(item, NodeKind::map);
    const std::string path(map ? document.text(item, "path") : document.value(item));
    const std::string_view algorithm = map ? document.text(item, "algorithm") : std::string_view{};
    auto how = EnvoyAlgorithm::by_unit;
    if (algorithm == "token_bucket") how = EnvoyAlgorithm::token_bucket;
    if (algorithm == "fixed_window") how = EnvoyAlgorithm::fixed_window;
    if (path.empty()) {
      complaints.add(item, "envoy: the path of a file or a directory must not be empty");
      continue;
    }
    reader.read_path((fs::path(directory) / path).string(), how, item);
  }
  return reader.finish();
}

}  // namespace weir::config
