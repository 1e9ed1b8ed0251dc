// From an id that a caller gives, or a request carries, to what stands for it in bucket keys, lists and adjustments.
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
  std::optional<IpPrefix> ip;       // of a limit that counts addresses: the address, or the prefix, that was given
  bool hashed = false;              // the id is its hash already
};

// The Error names the limit, the id and the rule.
Result<Identity> identify(const NamedLimit& limit, std::string_view id, int ipv6_prefix);

// Of a request, by the limit's key. Nothing: a part of it is missing. REQUIRES: the limit has a key.
Result<std::optional<Identity>> identify(const NamedLimit& limit, const Request& request, int ipv6_prefix);

// Of an id as a bucket's key has it: canonical, or hashed. The Error is that of an id that is no address.
Result<std::optional<Identity>> identify_counted(const NamedLimit& limit, std::string_view id, int ipv6_prefix);

// Whether an id has the form of a hashed one.
bool is_hash(std::string_view id) noexcept;

// The canonical id, hashed if the limit is. Of a hashed limit an id that has the form of a hash is taken for one: lists
// show nothing else. Errors: invalid, internal (a hashed limit and no key).
Result<std::string> bucket_id(const NamedLimit& limit, std::string_view id, int ipv6_prefix, std::string_view hash_key);

}  // namespace weir
