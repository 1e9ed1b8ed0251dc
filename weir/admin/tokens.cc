#include "weir/admin/tokens.h"

#include "weir/base/secret.h"
#include "weir/base/text.h"
#include "weir/identify/ip.h"
#include "weir/protocol/http/http_tokens.h"

namespace weir::admin {
namespace {

Permission permission_of(const RequestHead& head, const config::Admin& tokens) {
  const std::string_view given = bearer_of(head);
  // Always compares both, in constant time. An empty token grants nothing.
  const bool writes = same_secret(given, tokens.write_token) && !tokens.write_token.empty();
  const bool reads = same_secret(given, tokens.read_token) && !tokens.read_token.empty();
  return writes ? Permission::write : reads ? Permission::read : Permission::none;
}

std::optional<Reply> refuse_web_page(const RequestHead& head, Permission needs) {
  if (!is_loopback_host(head.host)) {
    return refuse(403, "forbidden", "without tokens a call needs a loopback Host, not " + quote(head.host));
  }
  const std::string_view type = media_type_of(head.content_type);
  const bool safe = same_word(type, "application/json") || same_word(type, "application/yaml");
  if (needs != Permission::write || safe) return {};
  return refuse(415, "unsupported_media_type",
                "without tokens a write needs Content-Type: application/json or application/yaml, not " +
                    quote(head.content_type));
}

}  // namespace

bool is_loopback_host(std::string_view host) noexcept {
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != host.npos && host.find(']', colon) == host.npos &&
                        host.find_first_not_of("0123456789", colon + 1) == host.npos;
  if (has_port) host = host.substr(0, colon);
  if (same_word(host, "localhost")) return true;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const Result<IpAddress> address = IpAddress::parse(host);
  if (!address) return false;
  if (address->is_v4()) return address->bytes()[0] == 127;
  return address->print() == "::1";
}

std::optional<Reply> refusal(const RequestHead& head, Permission needs, const config::Admin& tokens, bool loopback) {
  if (needs == Permission::none) return {};
  const bool open = tokens.read_token.empty() && tokens.write_token.empty() && loopback;
  if (open) return refuse_web_page(head, needs);
  if (needs == Permission::page) return {};
  const Permission granted = permission_of(head, tokens);
  if (granted == Permission::write || (granted == Permission::read && needs == Permission::read)) return {};
  if (granted == Permission::read)
    return refuse(403, "forbidden", "this token allows reads only; the call needs the write token");
  Reply reply = refuse(401, "unauthorized", "a token is needed: Authorization: Bearer TOKEN");
  reply.fields = "WWW-Authenticate: Bearer\r\n";
  return reply;
}

}  // namespace weir::admin
