// A copy of a query that owns its text, for questions that wait for a service: the bytes they were read from are gone.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/core/query.h"

namespace weir {

class OwnedQuery {
 public:
  // REQUIRES: the query's subject is NamedCharges, RequestFacts or Descriptors.
  explicit OwnedQuery(const Query& query);
  OwnedQuery(const OwnedQuery&) = delete;  // views point into it
  OwnedQuery& operator=(const OwnedQuery&) = delete;

  const Query& query() const noexcept { return query_; }
  // Of a request; empty otherwise.
  std::span<const Attribute> attributes() const noexcept { return attributes_; }

 private:
  std::string_view keep(std::string_view text);
  void copy(const NamedCharges& named);
  void copy(const RequestFacts& facts);
  void copy(const Descriptors& descriptors);

  std::string text_;
  std::vector<NamedCharge> charges_;
  std::vector<Attribute> attributes_;
  std::vector<Applies> applies_;
  std::vector<Descriptor> descriptors_;
  std::vector<std::vector<Attribute>> entries_;  // of each descriptor
  Query query_;
};

}  // namespace weir
