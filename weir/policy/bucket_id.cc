#include "weir/policy/bucket_id.h"

#include <algorithm>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/identify/digest.h"

namespace weir {
namespace {

// How long an id may be in a key, next to the names of a limit and a route, '@' and ':', and a tier's name and '~'.
std::size_t id_bytes_max(const NamedLimit& limit) noexcept {
  const std::size_t plain = bounds::key_bytes_max - 2 * bounds::name_bytes_max - 2;
  return limit.tiers.empty() ? plain : plain - bounds::name_bytes_max - 1;
}

Error refuse_id(const NamedLimit& limit, const Error& error) {
  // An id that is too long for its format is an invalid id.
  const Fault fault = error.fault == Fault::too_large ? Fault::invalid : error.fault;
  return Error{fault, "limit " + quote(limit.name) + ": " + error.detail};
}

// Parses an address, or the prefix that lists show for IPv6 clients.
Result<IpPrefix> parse_client(std::string_view id, int ipv6_prefix) {
  const Result<IpAddress> address = IpAddress::parse(id);
  if (address) return IpPrefix::of(*address, 128);
  const Result<IpPrefix> prefix = IpPrefix::parse(id);
  if (prefix && !prefix->address().is_v4() && prefix->bits() == ipv6_prefix) return prefix;
  return address.error();
}

int bits_of(const NamedLimit& limit, int ipv6_prefix) noexcept {
  return limit.id_kind == IdKind::address ? ipv6_prefix : 128;
}

Identity of_address(const NamedLimit& limit, const IpPrefix& client, int bits) {
  const IpAddress& address = client.address();
  const std::uint32_t* index = limit.override_prefixes.find(address);
  const bool whole = address.is_v4() || bits == 128;
  return Identity{whole ? address.print() : IpPrefix::of(address, bits).print(),
                  index == nullptr ? nullptr : &limit.overrides[*index], client};
}

// Returns whether the part is free text, which may contain anything; other formats check their content.
bool is_text(const NamedLimit& limit, std::size_t part) noexcept {
  const std::vector<IdFormat>& formats = limit.id.parts();
  if (formats.size() == 1) return formats.front() == IdFormat::text;
  return formats.size() == limit.sources.size() && formats[part] == IdFormat::text;
}

// For a composite key, an override may name only the first parts and then applies to every id that starts with them;
// the override with the most parts wins. If the parts have formats, an override must name all of them.
const Override* override_of(const NamedLimit& limit, std::string_view id) noexcept {
  const Override* found = limit.overrides.find(id);
  if (limit.key.size() < 2 || limit.overrides.size() == 0 || limit.id != IdShape(IdFormat::text)) return found;
  for (std::size_t colon = id.rfind(':'); found == nullptr && colon != id.npos; colon = id.rfind(':')) {
    id = id.substr(0, colon);
    found = limit.overrides.find(id);
  }
  return found;
}

}  // namespace

bool is_tenant_key(std::string_view text) noexcept {
  return !text.empty() && text.size() <= bounds::tenant_key_bytes_max && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == ':' || c == '-';
  });
}

bool is_hash(std::string_view id) noexcept {
  return id.size() == kDigestHexBytes &&
         std::all_of(id.begin(), id.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Result<Identity> identify(const NamedLimit& limit, std::string_view id, int ipv6_prefix) {
  // The id of a tenant that a service named, as lists show it. It is valid whatever the limit's id format.
  if (limit.service != nullptr && id.starts_with(kTenantPrefix) && is_tenant_key(id.substr(kTenantPrefix.size()))) {
    return Identity{std::string(id), nullptr, {}};
  }
  // One bucket for all clients, whatever id the caller gives.
  constexpr std::string_view kGlobal = "global";
  if (limit.key.size() == 1 && limit.key.front() == kGlobal) id = kGlobal;
  if (limit.id_kind == IdKind::shaped) {
    Result<std::string> canonical = limit.id.canonical(id);
    if (!canonical) return refuse_id(limit, canonical.error());
    const Override* const found = override_of(limit, *canonical);
    return Identity{std::move(*canonical), found, {}};
  }
  const int bits = bits_of(limit, ipv6_prefix);
  const Result<IpPrefix> client = parse_client(id, bits);
  if (!client) return refuse_id(limit, client.error());
  return of_address(limit, *client, bits);
}

Result<std::optional<Identity>> identify(const NamedLimit& limit, const Request& request, int ipv6_prefix) {
  if (limit.id_kind != IdKind::shaped) {
    if (!request.client()) return std::optional<Identity>{};
    const IpPrefix client = IpPrefix::of(*request.client(), request.client()->width());
    return std::optional(of_address(limit, client, bits_of(limit, ipv6_prefix)));
  }
  std::string id;
  for (std::size_t i = 0; i < limit.sources.size(); ++i) {
    if (request.differs(limit.sources[i])) {
      return Error{Fault::invalid,
                   "limit " + quote(limit.name) + ": " + limit.key[i] +
                       " occurs several times with different values, so it is unclear who is counted",
                   0, "bad_request"};
    }
    if (i > 0) id += ':';
    const bool found = is_text(limit, i) ? request.append_part(limit.sources[i], ipv6_prefix, id)
                                         : request.append_value(limit.sources[i], ipv6_prefix, id);
    if (!found) return std::optional<Identity>{};
  }
  if (limit.id != IdShape(IdFormat::text)) {
    Result<std::string> canonical = limit.id.canonical(id);
    if (!canonical) return refuse_id(limit, canonical.error());
    id = std::move(*canonical);
  }
  const Override* found = override_of(limit, id);
  if (id.size() > id_bytes_max(limit)) {
    id = "%sha256-" + sha256_hex(id);
    if (found == nullptr) found = limit.overrides.find(id);
  }
  return std::optional(Identity{std::move(id), found, {}});
}

Result<std::optional<Identity>> identify_counted(const NamedLimit& limit, std::string_view id, int ipv6_prefix) {
  if (limit.hashed) return std::optional(Identity{std::string(id), nullptr, {}, true});
  if (limit.id_kind == IdKind::shaped) return std::optional(Identity{std::string(id), override_of(limit, id), {}});
  Result<Identity> identity = identify(limit, id, ipv6_prefix);
  if (!identity) return identity.error();
  return std::optional(std::move(*identity));
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
