#include "weir/protocol/http/authorize.h"

#include <initializer_list>

#include "weir/base/bounds.h"
#include "weir/base/inline_list.h"
#include "weir/protocol/http/http_tokens.h"

namespace weir {
namespace {

// Returns the last field of that name: a proxy that does not replace the client's field adds its own after it.
std::string_view find_last(const RequestHead& head, std::string_view name) noexcept {
  std::string_view last;
  for (const HttpHeader& header : head.headers.all()) {
    if (same_word(header.name, name)) last = header.value;
  }
  return last;
}

std::string_view first_not_empty(std::initializer_list<std::string_view> values) noexcept {
  for (const std::string_view value : values) {
    if (!value.empty()) return value;
  }
  return {};
}

}  // namespace

void read_authorize(const RequestHead& head, std::string_view peer, Queries& queries, Query& query) {
  static_assert(bounds::http_headers_max + 4 <= bounds::attributes_max);
  const auto first_of = [&](std::string_view forwarded, std::string_view original, std::string_view own) {
    return queries.copy(first_not_empty({find_last(head, forwarded), find_last(head, original), own}));
  };
  InlineList<Attribute, bounds::attributes_max> attributes;
  attributes.push_back({"peer", queries.copy(peer)});
  attributes.push_back({"method", first_of("x-forwarded-method", "x-original-method", head.method)});
  attributes.push_back({"path", first_of("x-forwarded-uri", "x-original-uri", head.target)});
  attributes.push_back({"host", first_of("x-forwarded-host", {}, head.host)});
  for (const HttpHeader& header : head.headers.all()) {
    if (same_word(header.name, kTokenField)) continue;
    attributes.push_back({queries.copy_lower("header:", header.name), queries.copy(header.value)});
  }
  query = {};
  query.subject.emplace<RequestFacts>().attributes = queries.copy(std::span<const Attribute>(attributes));
}

std::optional<int> denial_status(std::string_view query) noexcept {
  const std::string_view status = query_value(query, "deny");
  if (status.empty() || status == "429") return 429;
  if (status == "403") return 403;
  return std::nullopt;
}

}  // namespace weir
