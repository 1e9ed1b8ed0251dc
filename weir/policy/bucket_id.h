// Converts an id from a caller or a request to the form used in bucket keys, lists and adjustments.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/identify/ip.h"
#include "weir/identify/request.h"
#include "weir/policy/named_limit.h"

namespace weir {

// An id as it is looked up and as it is counted.
struct Identity {
  std::string id;                   // canonical: names the bucket
  const Override* found = nullptr;  // its override, if there is one
  std::optional<IpPrefix> ip;       // the given address or prefix, if the limit counts addresses
  bool hashed = false;              // the id is already a hash
};

// Reads an id given by a caller. The Error names the limit, the id and the rule.
Result<Identity> identify(const NamedLimit& limit, std::string_view id, int ipv6_prefix);

// Reads the id from a request, by the limit's key. Returns nullopt if a part of the key is missing. REQUIRES: the limit
// has a key.
Result<std::optional<Identity>> identify(const NamedLimit& limit, const Request& request, int ipv6_prefix);

// Reads an id taken from a bucket's key: canonical or hashed. Fails if it must be an address and is not.
Result<std::optional<Identity>> identify_counted(const NamedLimit& limit, std::string_view id, int ipv6_prefix);

// 1 to bounds::tenant_key_bytes_max of A-Z a-z 0-9 _ . : -
bool is_tenant_key(std::string_view text) noexcept;

// True if the id has the form of a hashed one.
bool is_hash(std::string_view id) noexcept;

// Returns the canonical id, hashed if the limit is. For a hashed limit, an id that has the form of a hash is used as it
// is, because lists show only hashes. Errors: invalid, internal (a hashed limit and no key).
Result<std::string> bucket_id(const NamedLimit& limit, std::string_view id, int ipv6_prefix, std::string_view hash_key);

}  // namespace weir
