#include "weir/identify/ip.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "weir/identify/quote.h"

namespace weir {
namespace {

Error not_an_address(std::string_view text, std::string_view rule) {
  return Error{Fault::invalid, quoted_id(text) + " is not an IP address: " + std::string(rule)};
}

// For the error message: the most likely mistake.
std::string_view likely_flaw(std::string_view text) {
  if (text.empty()) return "it is empty";
  if (text.find('%') != text.npos) return "a zone (\"%...\") names an interface of one machine and must be left out";
  if (text.find('/') != text.npos) return "one address is meant here, not a prefix";
  if (text.find('[') != text.npos) return "it must be written without brackets and port";
  if (text.find(':') != text.npos) {
    if (std::count(text.begin(), text.end(), ':') == 1) return "it must be written without a port";
    return "IPv6 is eight groups of one to four hex digits joined by ':', with at most one \"::\" for groups of zero";
  }
  return "IPv4 is four numbers of 0 to 255 without leading zeros, joined by '.'";
}

// Returns [first, last) of the groups to print as "::"; empty if no two zero groups are adjacent (RFC 5952 §4.2).
struct Run {
  int first = 0;
  int last = 0;
};

Run longest_zero_run(const std::array<unsigned, 8>& groups) noexcept {
  Run best;
  Run run;
  for (int i = 0; i < 8; ++i) {
    if (groups[static_cast<std::size_t>(i)] != 0) {
      run = {i + 1, i + 1};
      continue;
    }
    run.last = i + 1;
    if (run.last - run.first > std::max(1, best.last - best.first)) best = run;
  }
  return best;
}

std::string print_v6(const IpAddress::Bytes& bytes) {
  std::array<unsigned, 8> groups{};
  for (std::size_t i = 0; i < 8; ++i) groups[i] = static_cast<unsigned>(bytes[2 * i]) << 8 | bytes[2 * i + 1];
  const Run zeros = longest_zero_run(groups);
  std::array<char, 40> text;
  char* at = text.data();
  for (int i = 0; i < 8; ++i) {
    if (i == zeros.first && zeros.first != zeros.last) {
      *at++ = ':';
      if (zeros.last == 8) *at++ = ':';
      i = zeros.last - 1;
      continue;
    }
    if (i != 0) *at++ = ':';
    at = std::to_chars(at, text.data() + text.size(), groups[static_cast<std::size_t>(i)], 16).ptr;
  }
  return std::string(text.data(), at);
}

// Parses digits without a leading zero, at most `width`; returns -1 otherwise.
int parse_bits(std::string_view text, int width) noexcept {
  if (text.empty() || text.size() > 3 || (text.size() > 1 && text[0] == '0')) return -1;
  int bits = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
    bits = bits * 10 + (c - '0');
  }
  return bits <= width ? bits : -1;
}

}  // namespace

Result<IpAddress> IpAddress::parse(std::string_view text) {
  // inet_pton(3) is exactly as strict as needed, but takes a terminated string.
  std::array<char, INET6_ADDRSTRLEN> copy{};
  if (text.empty() || text.size() >= copy.size() || text.find('\0') != text.npos) {
    return not_an_address(text, likely_flaw(text));
  }
  std::copy(text.begin(), text.end(), copy.begin());
  if (text.find(':') == text.npos) {
    V4Bytes bytes{};
    if (inet_pton(AF_INET, copy.data(), bytes.data()) != 1) return not_an_address(text, likely_flaw(text));
    return v4(bytes);
  }
  Bytes bytes{};
  if (inet_pton(AF_INET6, copy.data(), bytes.data()) != 1) return not_an_address(text, likely_flaw(text));
  return v6(bytes);
}

std::string IpAddress::print() const {
  if (!is_v4()) return print_v6(bytes_);
  std::string text = std::to_string(bytes_[0]);
  for (std::size_t i = 1; i < 4; ++i) text.append(".").append(std::to_string(bytes_[i]));
  return text;
}

Result<IpPrefix> IpPrefix::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view address_text = text.substr(0, slash);
  const Result<IpAddress> address = IpAddress::parse(address_text);
  if (!address) return address.error();
  if (slash == text.npos) return IpPrefix(*address, address->width());

  const bool mapped = address->is_v4() && address_text.find(':') != address_text.npos;
  const int width = mapped ? 128 : address->width();
  const int written = parse_bits(text.substr(slash + 1), width);
  if (written < 0) {
    return Error{Fault::invalid, quoted_id(text) + " is not a prefix: after the '/' comes a number of 0 to " +
                                     std::to_string(width) + " without leading zeros"};
  }
  if (mapped && written < 96) {
    return Error{Fault::invalid, quoted_id(text) + " has bits set after its first " + std::to_string(written) +
                                     ": a prefix of IPv4 addresses is written like " + of(*address, 24).print()};
  }
  const IpPrefix prefix = of(*address, mapped ? written - 96 : written);
  if (prefix.address_ != *address) {
    return Error{Fault::invalid, quoted_id(text) + " has bits set after its first " + std::to_string(written) +
                                     ": write " + prefix.print() + " for the whole range or " + address->print() +
                                     " for this one address"};
  }
  return prefix;
}

std::string IpPrefix::print() const {
  return address_.print() + "/" + std::to_string(bits_);
}

}  // namespace weir
