#include "weir/policy/bucket_id.h"

#include <algorithm>
#include <utility>

#include "weir/base/text.h"
#include "weir/identify/digest.h"

namespace weir {
namespace {

Error refuse_id(const NamedLimit& limit, const Error& error) {
  return Error{error.fault, "limit " + quote(limit.name) + ": " + error.detail};
}

// An address, or the prefix that lists show for IPv6 clients.
Result<IpPrefix> parse_client(std::string_view id, int ipv6_prefix) {
  const Result<IpAddress> address = IpAddress::parse(id);
  if (address) return IpPrefix::of(*address, 128);
  const Result<IpPrefix> prefix = IpPrefix::parse(id);
  if (prefix && !prefix->address().is_v4() && prefix->bits() == ipv6_prefix) return prefix;
  return address.error();
}

bool is_hash(std::string_view id) noexcept {
  return id.size() == kDigestHexBytes &&
         std::all_of(id.begin(), id.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

Result<Identity> identify(const NamedLimit& limit, std::string_view id, int ipv6_prefix) {
  if (limit.id_kind == IdKind::shaped) {
    Result<std::string> canonical = limit.id.canonical(id);
    if (!canonical) return refuse_id(limit, canonical.error());
    const Override* found = limit.overrides.find(*canonical);
    return Identity{std::move(*canonical), found, {}};
  }
  const int bits = limit.id_kind == IdKind::address ? ipv6_prefix : 128;
  const Result<IpPrefix> client = parse_client(id, bits);
  if (!client) return refuse_id(limit, client.error());
  const IpAddress& address = client->address();
  const std::uint32_t* index = limit.override_prefixes.find(address);
  const bool whole = address.is_v4() || bits == 128;
  return Identity{whole ? address.print() : IpPrefix::of(address, bits).print(),
                  index == nullptr ? nullptr : &limit.overrides[*index], *client};
}

Result<std::string> bucket_id(const NamedLimit& limit, std::string_view id, int ipv6_prefix,
                              std::string_view hash_key) {
  if (limit.hashed && is_hash(id)) return std::string(id);
  Result<Identity> identity = identify(limit, id, ipv6_prefix);
  if (!identity) return identity.error();
  if (!limit.hashed) return std::move(identity->id);
  if (hash_key.empty())
    return Error{Fault::internal, "limit " + quote(limit.name) + " is hashed, but there is no hash_key"};
  return hashed_id(hash_key, identity->id);
}

}  // namespace weir
