#include "weir/identify/id_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "weir/base/bounds.h"
#include "weir/identify/digest.h"
#include "weir/identify/domain.h"
#include "weir/identify/ip.h"
#include "weir/identify/quote.h"

namespace weir {
namespace {

struct FormatRow {
  IdFormat format;
  std::string_view spelling;
  std::string_view article;
  bool may_hold_colon;
};

constexpr std::array<FormatRow, 7> kFormats{{
    {IdFormat::ip_address, "ipAddress", "an", true},
    {IdFormat::ipv6_range_cidr, "ipv6RangeCIDR", "an", true},
    {IdFormat::reg_id, "regId", "a", false},
    {IdFormat::domain, "domain", "a", false},
    {IdFormat::fqdn_set, "fqdnSet", "an", false},
    {IdFormat::email, "email", "an", false},
    {IdFormat::text, "text", "a", true},
}};

const FormatRow& row(IdFormat format) noexcept {
  return kFormats[static_cast<std::size_t>(format)];
}

Error broken(IdFormat format, std::string_view id, std::string_view rule, Fault fault = Fault::invalid) {
  std::string message = quoted_id(id) + " is not ";
  message.append(row(format).article).append(" ").append(row(format).spelling).append(": ").append(rule);
  return Error{fault, std::move(message)};
}

Result<std::string> write_ip_address(std::string_view id) {
  const Result<IpAddress> address = IpAddress::parse(id);
  if (!address) return address.error();
  return address->print();
}

constexpr std::string_view kRangeIsV6 = "it must be IPv6, not IPv4";
constexpr std::string_view kRangeIs48 = "the prefix must be exactly /48";

// IpPrefix's own errors do not all apply to a range: a single address is not one.
Error broken_range(std::string_view id, const Error& error) {
  const std::size_t slash = std::min(id.find('/'), id.size());
  const Result<IpAddress> address = IpAddress::parse(id.substr(0, slash));
  if (!address) return broken(IdFormat::ipv6_range_cidr, id, error.detail, error.fault);
  if (address->is_v4()) return broken(IdFormat::ipv6_range_cidr, id, kRangeIsV6);
  if (id.substr(slash) != "/48") return broken(IdFormat::ipv6_range_cidr, id, kRangeIs48);
  return broken(IdFormat::ipv6_range_cidr, id,
                "it has bits set after its first 48; write " + IpPrefix::of(*address, 48).print());
}

Result<std::string> write_ipv6_range(std::string_view id) {
  const Result<IpPrefix> prefix = IpPrefix::parse(id);
  if (!prefix) return broken_range(id, prefix.error());
  if (prefix->address().is_v4()) return broken(IdFormat::ipv6_range_cidr, id, kRangeIsV6);
  if (prefix->bits() != 48) return broken(IdFormat::ipv6_range_cidr, id, kRangeIs48);
  return prefix->print();
}

Result<std::string> write_reg_id(std::string_view id) {
  if (id.empty()) return broken(IdFormat::reg_id, id, "it is empty");
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!std::all_of(id.begin(), id.end(), is_digit)) {
    return broken(IdFormat::reg_id, id, "only decimal digits are allowed");
  }
  std::uint64_t number = 0;
  if (std::from_chars(id.data(), id.data() + id.size(), number).ec != std::errc{}) {
    return broken(IdFormat::reg_id, id, "it is more than 18446744073709551615, the largest 64-bit number");
  }
  return std::to_string(number);
}

// A domain, or "*." and a domain.
Result<std::string> write_fqdn(std::string_view name) {
  constexpr std::string_view kWildcard = "*.";
  if (!name.starts_with(kWildcard)) return canonical_domain(name);
  Result<std::string> domain = canonical_domain(name.substr(kWildcard.size()));
  if (!domain) return domain;
  domain->insert(0, kWildcard);
  if (domain->size() > bounds::domain_bytes_max) {
    return Error{Fault::too_large, quoted_id(name) + " is not a domain: it is longer than " +
                                       std::to_string(bounds::domain_bytes_max) + " bytes"};
  }
  return domain;
}

bool is_digest(std::string_view id) noexcept {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return id.size() == kDigestHexBytes && std::all_of(id.begin(), id.end(), is_hex);
}

// Returns the names, sorted and without repeats, joined by ','.
Result<std::string> write_fqdn_names(std::string_view id) {
  if (id.empty()) return broken(IdFormat::fqdn_set, id, "it is empty");
  const auto count = static_cast<std::size_t>(std::count(id.begin(), id.end(), ',')) + 1;
  if (count > bounds::fqdn_set_names_max) {
    return broken(IdFormat::fqdn_set, id,
                  "it has " + std::to_string(count) + " names, more than " + std::to_string(bounds::fqdn_set_names_max),
                  Fault::too_large);
  }
  std::vector<std::string> names;
  names.reserve(count);
  for (std::size_t begin = 0; begin <= id.size();) {
    const std::size_t end = std::min(id.find(',', begin), id.size());
    Result<std::string> name = write_fqdn(id.substr(begin, end - begin));
    if (!name) return broken(IdFormat::fqdn_set, id, name.error().detail, name.error().fault);
    names.push_back(std::move(*name));
    begin = end + 1;
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string joined = std::move(names.front());
  for (std::size_t i = 1; i < names.size(); ++i) joined.append(",").append(names[i]);
  return joined;
}

// Returns the broken rule of the local part, or an empty view: RFC 5321 §4.1.2 without quoted strings, with UTF-8 (RFC
// 6531).
std::string_view local_part_flaw(std::string_view local) {
  constexpr std::string_view kSpecials = "\"(),:;<>[\\]";
  for (std::size_t i = 0; i < local.size();) {
    const std::size_t length = utf8_sequence(local.substr(i));
    if (length == 0) return "it is not valid UTF-8";
    if (local[i] == ' ' || has_control(local.substr(i, length))) return "spaces and control characters are not allowed";
    if (kSpecials.find(local[i]) != kSpecials.npos) return "none of \" ( ) , : ; < > [ \\ ] is allowed before the '@'";
    i += length;
  }
  return {};
}

Result<std::string> write_email(std::string_view id) {
  const std::size_t at = id.find('@');
  if (at == id.npos || id.find('@', at + 1) != id.npos) {
    return broken(IdFormat::email, id, "it must hold exactly one '@'");
  }
  const std::string_view local = id.substr(0, at);
  if (local.size() > bounds::email_local_bytes_max) {
    return broken(IdFormat::email, id, "there are more than 64 bytes before the '@'", Fault::too_large);
  }
  if (const std::string_view flaw = local_part_flaw(local); !flaw.empty()) return broken(IdFormat::email, id, flaw);
  const std::string_view mailbox = local.substr(0, local.find('+'));
  if (mailbox.empty()) return broken(IdFormat::email, id, "there is nothing before the '@' or the '+'");
  const Result<std::string> host = canonical_domain(id.substr(at + 1));
  if (!host) return broken(IdFormat::email, id, host.error().detail, host.error().fault);
  if (local.size() + 1 + host->size() > bounds::email_bytes_max) {
    return broken(IdFormat::email, id, "it is longer than 254 bytes", Fault::too_large);
  }
  return std::string(mailbox) + "@" + *host;
}

Result<std::string> write_text(std::string_view id) {
  if (id.empty()) return broken(IdFormat::text, id, "it is empty");
  if (id.size() > bounds::id_bytes_max) {
    return broken(IdFormat::text, id, "it is longer than " + std::to_string(bounds::id_bytes_max) + " bytes",
                  Fault::too_large);
  }
  for (std::size_t i = 0; i < id.size();) {
    const std::size_t length = utf8_sequence(id.substr(i));
    if (length == 0) return broken(IdFormat::text, id, "it is not valid UTF-8");
    i += length;
  }
  if (has_control(id)) return broken(IdFormat::text, id, "control characters are not allowed");
  return std::string(id);
}

Result<std::string> write_fqdn_set(std::string_view id, bool hash) {
  if (is_digest(id)) return std::string(id);
  Result<std::string> names = write_fqdn_names(id);
  if (!names || !hash) return names;
  return sha256_hex(*names);
}

Result<std::string> write_part(IdFormat format, std::string_view id, bool hash) {
  switch (format) {
    case IdFormat::ip_address:
      return write_ip_address(id);
    case IdFormat::ipv6_range_cidr:
      return write_ipv6_range(id);
    case IdFormat::reg_id:
      return write_reg_id(id);
    case IdFormat::domain:
      return canonical_domain(id);
    case IdFormat::fqdn_set:
      return write_fqdn_set(id, hash);
    case IdFormat::email:
      return write_email(id);
    case IdFormat::text:
      return write_text(id);
  }
  WEIR_ASSERT(false);
}

// The known formats, for the error about an unknown one.
std::string known_formats() {
  std::string list;
  for (const FormatRow& known : kFormats) list.append(list.empty() ? "" : ", ").append(known.spelling);
  return list;
}

// Returns the index of the part that takes all remaining ':': the one that may contain it, or the last.
std::size_t widest_part(const std::vector<IdFormat>& parts) noexcept {
  const auto holds = [](IdFormat format) { return row(format).may_hold_colon; };
  const auto found = std::find_if(parts.begin(), parts.end(), holds);
  return found == parts.end() ? parts.size() - 1 : static_cast<std::size_t>(found - parts.begin());
}

// Returns one piece per part: those before `widest` are split off the front at each first ':', those after it off the
// back at each last. Empty if there are not enough ':'.
std::vector<std::string_view> split(std::string_view id, std::size_t count, std::size_t widest) {
  std::vector<std::string_view> pieces(count);
  for (std::size_t i = 0; i < widest; ++i) {
    const std::size_t colon = id.find(':');
    if (colon == id.npos) return {};
    pieces[i] = id.substr(0, colon);
    id.remove_prefix(colon + 1);
  }
  for (std::size_t i = count - 1; i > widest; --i) {
    const std::size_t colon = id.rfind(':');
    if (colon == id.npos) return {};
    pieces[i] = id.substr(colon + 1);
    id = id.substr(0, colon);
  }
  pieces[widest] = id;
  return pieces;
}

}  // namespace

Result<IdShape> IdShape::parse(std::string_view spelling) {
  std::vector<IdFormat> parts;
  for (std::size_t begin = 0; begin <= spelling.size();) {
    const std::size_t end = std::min(spelling.find(':', begin), spelling.size());
    const std::string_view name = spelling.substr(begin, end - begin);
    const auto known =
        std::find_if(kFormats.begin(), kFormats.end(), [&](const FormatRow& r) { return r.spelling == name; });
    if (known == kFormats.end()) {
      return Error{Fault::unknown, quoted_id(name) + " is not an id format: it must be one of " + known_formats() +
                                       ", or several of them joined by ':'"};
    }
    if (parts.size() == bounds::id_parts_max) {
      return Error{Fault::too_large, "id format " + quoted_id(spelling) + " has more than " +
                                         std::to_string(bounds::id_parts_max) + " parts"};
    }
    parts.push_back(known->format);
    begin = end + 1;
  }
  const std::size_t widest = widest_part(parts);
  for (std::size_t i = widest + 1; i < parts.size(); ++i) {
    if (!row(parts[i]).may_hold_colon) continue;
    return Error{Fault::invalid, "id format " + quoted_id(spelling) + " is ambiguous: both " +
                                     std::string(row(parts[widest]).spelling) + " and " +
                                     std::string(row(parts[i]).spelling) +
                                     " may hold a ':', so an id could be split in two ways"};
  }
  return IdShape(std::move(parts));
}

Result<std::string> IdShape::write(std::string_view id, Form form) const {
  const bool hash = form == Form::canonical;
  if (parts_.size() == 1) return write_part(parts_.front(), id, hash);
  const std::vector<std::string_view> pieces = split(id, parts_.size(), widest_part(parts_));
  if (pieces.empty()) {
    return Error{Fault::invalid, quoted_id(id) + " is not of the form " + spelling() + ": it must have " +
                                     std::to_string(parts_.size()) + " parts joined by ':'"};
  }
  std::string whole;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Result<std::string> part = write_part(parts_[i], pieces[i], hash);
    if (!part) {
      return Error{part.error().fault,
                   quoted_id(id) + " is not of the form " + spelling() + ": " + part.error().detail};
    }
    if (i != 0) whole += ':';
    whole += *part;
  }
  return whole;
}

Result<std::string> IdShape::canonical(std::string_view id) const {
  return write(id, Form::canonical);
}

Result<std::string> IdShape::display(std::string_view id) const {
  return write(id, Form::display);
}

std::string IdShape::spelling() const {
  std::string joined(row(parts_.front()).spelling);
  for (std::size_t i = 1; i < parts_.size(); ++i) joined.append(":").append(row(parts_[i]).spelling);
  return joined;
}

}  // namespace weir
