// The formats of ids and their canonical form, which names the bucket. Overrides and calls both use it, so "007" and
// "7", or "2001:0db8:0000::/48" and "2001:db8::/48", are one bucket and find the same override.
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
  fqdn_set,         // fqdnSet: 1 to 100 domains joined by ',', optionally with "*."; order and repeats do not matter
  email,            // email: local@domain; "+tag" is dropped
  text,             // text: 1 to 256 bytes of UTF-8 without control characters
};

// One format, or several joined by ':' as in "regId:domain". Immutable.
class IdShape {
 public:
  explicit IdShape(IdFormat format) : parts_{format} {}

  // Parses the configuration's syntax. At most one part may have a format that can contain ':' (ipAddress,
  // ipv6RangeCIDR, text), because otherwise ids could be split in two ways.
  static Result<IdShape> parse(std::string_view spelling);

  // Checks the id and returns its form in bucket keys and overrides. A fqdnSet becomes the SHA-256, in hex, of its
  // readable form; that hash is accepted too, because lists and logs show only the hash. Idempotent. The Error names
  // the id and the rule; the caller adds the limit.
  Result<std::string> canonical(std::string_view id) const;

  // The same for display: a fqdnSet as its sorted names joined by ','. canonical() gives the same result for both.
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
