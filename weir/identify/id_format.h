// What an id of a limit looks like, and the one form of it that names a bucket. Overrides and calls both pass through
// here, so "007" and "7", or "2001:0db8:0000::/48" and "2001:db8::/48", are one bucket and find the same override.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/result.h"

namespace weir {

enum class IdFormat : unsigned char {
  ip_address,       // ipAddress: v4 or v6
  ipv6_range_cidr,  // ipv6RangeCIDR: an IPv6 prefix of exactly /48
  reg_id,           // regId: an unsigned 64-bit decimal
  domain,           // domain: see domain.h
  fqdn_set,         // fqdnSet: 1 to 100 domains joined by ',', each may begin with "*."; order and repeats mean nothing
  email,            // email: local@domain; "+tag" does not make another address
  text,             // text: 1 to 256 bytes of UTF-8 without control characters
};

// One format, or several joined by ':' as in "regId:domain". Immutable.
class IdShape {
 public:
  explicit IdShape(IdFormat format) : parts_{format} {}

  // The spelling of the configuration. At most one part may be of a format that can itself hold a ':' (ipAddress,
  // ipv6RangeCIDR, text), for otherwise ids could be split in two ways.
  static Result<IdShape> parse(std::string_view spelling);

  // Checks the id and gives the form that stands in the bucket key and that overrides are matched by. A fqdnSet is the
  // SHA-256, in hex, of its readable form; the hash is accepted too, since lists and logs show nothing else.
  // Idempotent. The Error names the id and the rule; the caller names the limit.
  Result<std::string> canonical(std::string_view id) const;

  // The same for people: a fqdnSet as its sorted names joined by ','. canonical() gives the same for both.
  Result<std::string> display(std::string_view id) const;

  std::string spelling() const;
  const std::vector<IdFormat>& parts() const noexcept { return parts_; }

  friend bool operator==(const IdShape&, const IdShape&) = default;

 private:
  explicit IdShape(std::vector<IdFormat> parts) : parts_(std::move(parts)) {}

  enum class Form { canonical, display };
  Result<std::string> write(std::string_view id, Form form) const;

  std::vector<IdFormat> parts_;  // 1 to bounds::id_parts_max
};

}  // namespace weir
