#include "weir/server/owned_query.h"

#include <cstddef>
#include <span>
#include <variant>

#include "weir/base/assert.h"

namespace weir {
namespace {

std::size_t bytes_of(std::span<const Attribute> attributes) noexcept {
  std::size_t bytes = 0;
  for (const Attribute& attribute : attributes) bytes += attribute.name.size() + attribute.value.size();
  return bytes;
}

std::size_t bytes_of(std::span<const NamedCharge> charges) noexcept {
  std::size_t bytes = 0;
  for (const NamedCharge& charge : charges) bytes += charge.limit.size() + charge.id.size() + charge.tier.size();
  return bytes;
}

}  // namespace

OwnedQuery::OwnedQuery(const Query& query) {
  query_.mode = query.mode;
  const auto* const named = std::get_if<NamedCharges>(&query.subject);
  const auto* const facts = std::get_if<RequestFacts>(&query.subject);
  const auto* const descriptors = std::get_if<Descriptors>(&query.subject);
  WEIR_ASSERT(named != nullptr || facts != nullptr || descriptors != nullptr);
  if (named != nullptr) copy(*named);
  if (facts != nullptr) copy(*facts);
  if (descriptors != nullptr) copy(*descriptors);
}

// There is room for it: the text does not move.
std::string_view OwnedQuery::keep(std::string_view text) {
  const std::size_t at = text_.size();
  text_ += text;
  return std::string_view(text_).substr(at);
}

void OwnedQuery::copy(const NamedCharges& named) {
  text_.reserve(bytes_of(named.charges));
  for (const NamedCharge& charge : named.charges) {
    charges_.push_back({keep(charge.limit), keep(charge.id), charge.cost, keep(charge.tier)});
  }
  query_.subject = NamedCharges{charges_, named.order};
}

void OwnedQuery::copy(const RequestFacts& facts) {
  text_.reserve(bytes_of(facts.attributes) + facts.caller.size() + bytes_of(facts.counted));
  for (const Attribute& attribute : facts.attributes) {
    attributes_.push_back({keep(attribute.name), keep(attribute.value)});
  }
  for (const NamedCharge& charge : facts.counted) {
    charges_.push_back({keep(charge.limit), keep(charge.id), charge.cost, keep(charge.tier)});
  }
  applies_.assign(facts.applies.begin(), facts.applies.end());
  RequestFacts owned = facts;
  owned.attributes = attributes_;
  owned.caller = keep(facts.caller);
  owned.counted = charges_;
  owned.applies = applies_;
  query_.subject = owned;
}

void OwnedQuery::copy(const Descriptors& descriptors) {
  std::size_t bytes = descriptors.domain.size();
  for (const Descriptor& one : descriptors.list) bytes += bytes_of(one.entries);
  text_.reserve(bytes);
  entries_.reserve(descriptors.list.size());
  for (const Descriptor& one : descriptors.list) {
    std::vector<Attribute>& entries = entries_.emplace_back();
    for (const Attribute& entry : one.entries) entries.push_back({keep(entry.name), keep(entry.value)});
    Descriptor& owned = descriptors_.emplace_back(one);
    owned.entries = entries;
  }
  query_.subject = Descriptors{keep(descriptors.domain), descriptors_};
}

}  // namespace weir
