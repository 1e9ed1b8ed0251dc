#include "weir/protocol/http/http_tokens.h"

#include "weir/base/secret.h"

namespace weir {
namespace {

// The last field counts: a proxy that does not replace the client's field adds its own after it.
std::string_view shown_by(const RequestHead& head) noexcept {
  std::string_view shown;
  for (const HttpHeader& header : head.headers.all()) {
    if (same_word(header.name, kTokenField)) shown = header.value;
  }
  return shown.empty() && head.path != "/v1/authorize" ? bearer_of(head) : shown;
}

// True for paths that tokens protect, whether they exist or not.
bool is_protected(std::string_view path) noexcept {
  return path.starts_with("/v1/") || path == "/json" || path.starts_with("/envoy.service.ratelimit.");
}

}  // namespace

std::string_view bearer_of(const RequestHead& head) noexcept {
  const HttpHeader* const header = head.headers.find("Authorization");
  constexpr std::string_view kScheme = "Bearer ";
  if (header == nullptr || !same_word(header->value.substr(0, kScheme.size()), kScheme)) return {};
  std::string_view token = header->value.substr(kScheme.size());
  while (token.starts_with(' ')) token.remove_prefix(1);
  return token;
}

Caller caller_of(const RequestHead& head, const HttpTokens& tokens, bool writes) {
  const bool needs_write = writes && !tokens.write_token.empty();
  if ((tokens.tokens.empty() && !needs_write) || !is_protected(head.path)) return Caller::welcome;
  const std::string_view shown = shown_by(head);
  // Compares with every token, so that the time reveals nothing. An empty token never matches.
  bool known = false;
  for (const std::string& token : tokens.tokens) known = (same_secret(shown, token) && !token.empty()) || known;
  const bool may_write = same_secret(shown, tokens.write_token) && !tokens.write_token.empty();
  if (may_write || (known && !needs_write)) return Caller::welcome;
  return known ? Caller::read_only : Caller::unknown;
}

}  // namespace weir
