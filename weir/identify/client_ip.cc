#include "weir/identify/client_ip.h"

#include <algorithm>
#include <utility>

#include "weir/base/ascii.h"

namespace weir {
namespace {

bool is_port(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 5 && std::ranges::all_of(text, is_digit);
}

std::optional<IpAddress> parse_address(std::string_view text) noexcept {
  // The longest address has 45 bytes; longer text is not parsed.
  if (text.size() > 45) return std::nullopt;
  const Result<IpAddress> address = IpAddress::parse(text);
  return address ? std::optional(*address) : std::nullopt;
}

}  // namespace

Result<TrustedProxies> TrustedProxies::make(std::vector<IpPrefix> prefixes, bool unix_peers) {
  std::sort(prefixes.begin(), prefixes.end());
  prefixes.erase(std::unique(prefixes.begin(), prefixes.end()), prefixes.end());
  std::vector<std::pair<IpPrefix, char>> entries;
  entries.reserve(prefixes.size());
  for (const IpPrefix& prefix : prefixes) entries.emplace_back(prefix, char{1});
  auto map = PrefixMap<char>::build(std::move(entries));
  if (!map) return map.error();
  TrustedProxies trusted;
  trusted.prefixes_ = std::move(*map);
  trusted.unix_ = unix_peers;
  return trusted;
}

std::optional<IpAddress> parse_hop(std::string_view text) noexcept {
  text = trim(text);
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view suffix = text.substr(end + 1);
    if (!suffix.empty() && !(suffix.front() == ':' && is_port(suffix.substr(1)))) return std::nullopt;
    const std::string_view inside = text.substr(1, end - 1);
    // Brackets are for IPv6 (RFC 3986 §3.2.2).
    return inside.find(':') == std::string_view::npos ? std::nullopt : parse_address(inside);
  }
  const std::size_t colon = text.find(':');
  const bool one_colon = colon != std::string_view::npos && text.find(':', colon + 1) == std::string_view::npos;
  if (!one_colon) return parse_address(text);
  return is_port(text.substr(colon + 1)) ? parse_address(text.substr(0, colon)) : std::nullopt;
}

namespace {

// `client` is the peer, or nullopt if it has no address.
std::optional<IpAddress> walk(std::optional<IpAddress> client, std::span<const std::string_view> forwarded_for,
                              std::string_view real_ip, const TrustedProxies& trusted) noexcept {
  bool any = false;
  for (auto line = forwarded_for.rbegin(); line != forwarded_for.rend(); ++line) {
    std::string_view rest = *line;
    while (!rest.empty()) {
      const std::size_t comma = rest.rfind(',');
      const std::string_view text = trim(comma == std::string_view::npos ? rest : rest.substr(comma + 1));
      rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(0, comma);
      if (text.empty()) continue;  // RFC 9110 §5.6.1: empty list elements are ignored
      any = true;
      const std::optional<IpAddress> hop = parse_hop(text);
      if (!hop) return client;
      client = *hop;
      if (!trusted.trusts(*client)) return client;
    }
  }
  if (any) return client;
  const std::optional<IpAddress> real = parse_hop(real_ip);
  return real ? real : client;
}

}  // namespace

IpAddress client_ip(const IpAddress& peer, std::span<const std::string_view> forwarded_for, std::string_view real_ip,
                    const TrustedProxies& trusted) noexcept {
  return trusted.trusts(peer) ? *walk(peer, forwarded_for, real_ip, trusted) : peer;
}

std::optional<IpAddress> client_behind_unix(std::span<const std::string_view> forwarded_for, std::string_view real_ip,
                                            const TrustedProxies& trusted) noexcept {
  return walk(std::nullopt, forwarded_for, real_ip, trusted);
}

}  // namespace weir
