#include "weir/policy/descriptors.h"

#include "weir/base/bounds.h"
#include "weir/identify/attribute.h"
#include "weir/identify/digest.h"

namespace weir {
namespace {

// How long an id may be in a bucket's key, next to the limit's name and ':'.
constexpr std::size_t kIdBytesMax = bounds::key_bytes_max - bounds::name_bytes_max - 1;

// An empty value is written as '%' alone. No other value is, because '%' is escaped.
void append_level(std::string& id, std::string_view value) {
  if (!id.empty()) id += ':';
  if (value.empty()) id += '%';
  append_part(id, value);
}

// No other id starts with this prefix.
void hash_if_long(std::string& id) {
  if (id.size() > kIdBytesMax) id = "%sha256-" + sha256_hex(id);
}

}  // namespace

bool matches(std::string_view pattern, std::string_view value) noexcept {
  // On a mismatch, extend only the last '*'. Earlier ones need not change: they matched as little as possible.
  std::size_t p = 0;
  std::size_t v = 0;
  std::size_t star = pattern.npos;
  std::size_t taken = 0;
  while (v < value.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = v;
    } else if (p < pattern.size() && pattern[p] == value[v]) {
      ++p;
      ++v;
    } else if (star != pattern.npos) {
      p = star + 1;
      v = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

const DescriptorNode* DescriptorNode::find(const Attribute& entry) const noexcept {
  const auto choices = keys.find(entry.name);
  if (choices == keys.end()) return nullptr;
  const auto exact = choices->second.exact.find(entry.value);
  if (exact != choices->second.exact.end()) return exact->second.get();
  for (const Pattern& pattern : choices->second.patterns) {
    if (matches(pattern.text, entry.value)) return pattern.node.get();
  }
  return choices->second.any.get();
}

const DescriptorTable::Domain* DescriptorTable::find(std::string_view name) const noexcept {
  const auto found = domains_.find(name);
  return found == domains_.end() ? nullptr : &found->second;
}

const DescriptorRule* DescriptorTable::match(const Domain& domain, std::span<const Attribute> entries,
                                             std::string& id) {
  id.clear();
  const DescriptorNode* node = &domain.root;
  for (const Attribute& entry : entries) {
    node = node->find(entry);
    if (node == nullptr) return nullptr;
    if (node->open) append_level(id, entry.value);
  }
  if (!node->rule) return nullptr;
  if (id.empty()) id = "global";
  hash_if_long(id);
  return &*node->rule;
}

void DescriptorTable::write_own_id(std::span<const Attribute> entries, std::string& id) {
  id.clear();
  for (const Attribute& entry : entries) {
    append_level(id, entry.name);
    append_level(id, entry.value);
  }
  hash_if_long(id);
}

}  // namespace weir
