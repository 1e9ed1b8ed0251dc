// The rules of descriptors: a tree per domain, with one level per entry of a descriptor. In: a domain and a
// descriptor's entries. Out: the rule that applies, and the id of the bucket it counts in. Pure.
//
// At each level the first match of these is taken; the others are not tried:
//   1. the entry's key with exactly its value
//   2. the entry's key with a pattern that its value matches, in the order written
//   3. the entry's key alone
// A rule applies only if the descriptor ends at its level.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/base/time.h"
#include "weir/core/limit.h"
#include "weir/core/query.h"

namespace weir {

struct DescriptorRule {
  static constexpr std::uint32_t kNoLimit = 0xffff'ffff;

  std::uint32_t limit = kNoLimit;     // index into the policy's limits; kNoLimit: unlimited
  std::string name;                   // as written, for `replaces` and responses; may be empty
  std::vector<std::string> replaces;  // rules with these names do not apply in the same query
  Count count = 0;                    // per `unit` times `multiplier`
  Duration unit{};
  std::uint32_t multiplier = 1;
  bool alternative = false;  // in quota mode; as NamedLimit::alternative, also if it is unlimited
  std::string metadata;      // a JSON object; empty: none
};

// One level of the tree.
struct DescriptorNode {
  // Allows lookups by string_view.
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  template <class T>
  using Map = std::unordered_map<std::string, T, Hash, std::equal_to<>>;

  struct Pattern {
    std::string text;  // each '*' matches any characters
    std::unique_ptr<DescriptorNode> node;
  };
  struct Choices {
    Map<std::unique_ptr<DescriptorNode>> exact;
    std::vector<Pattern> patterns;
    std::unique_ptr<DescriptorNode> any;
  };

  Map<Choices> keys;
  std::optional<DescriptorRule> rule;
  bool open = false;  // the entry's value is part of the id: every value has its own bucket

  // Returns the node for an entry at this level, or null.
  const DescriptorNode* find(const Attribute& entry) const noexcept;
};

bool matches(std::string_view pattern, std::string_view value) noexcept;

class DescriptorTable {
 public:
  struct Domain {
    DescriptorNode root;
    std::uint32_t own = DescriptorRule::kNoLimit;  // names the buckets with callers' own numbers
  };

  // Creates the domain if there is none.
  Domain& domain(std::string_view name) { return domains_.try_emplace(std::string(name)).first->second; }
  const Domain* find(std::string_view name) const noexcept;
  bool empty() const noexcept { return domains_.empty(); }

  // Returns the rule that applies, or null. Sets `id` to the values that the rule leaves open, or "global" if there are
  // none.
  static const DescriptorRule* match(const Domain& domain, std::span<const Attribute> entries, std::string& id);
  // Writes the id of a bucket with the caller's own numbers: all keys and values.
  static void write_own_id(std::span<const Attribute> entries, std::string& id);

 private:
  DescriptorNode::Map<Domain> domains_;
};

}  // namespace weir
