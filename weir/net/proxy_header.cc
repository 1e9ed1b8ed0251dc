#include "weir/net/proxy_header.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "weir/base/bounds.h"

namespace weir {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kSignature = "\r\n\r\n\0\r\nQUIT\n"sv;
constexpr std::string_view kWord = "PROXY ";
// The longest line of version 1, "PROXY TCP6 …", with its line end.
constexpr std::size_t kLineMax = 107;
// Signature, version and command, family, length.
constexpr std::size_t kFixedBytes = 16;

using Parsed = Result<std::optional<ProxyHeader>>;

Error refuse(std::string_view why) {
  return Error{Fault::invalid, "PROXY header: " + std::string(why)};
}

// Takes the next word off a line whose words are separated by one space each.
std::string_view take_word(std::string_view& line) noexcept {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, space);
  line.remove_prefix(std::min(space + 1, line.size()));
  return word;
}

bool is_port(std::string_view text) noexcept {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool padded = text.size() > 1 && text.front() == '0';
  return error == std::errc{} && end == text.data() + text.size() && !padded;
}

// Returns the address in canonical form; empty if the text is not an address of that family.
std::string canonical(int family, std::string_view text) {
  std::array<unsigned char, 16> address{};
  std::array<char, INET6_ADDRSTRLEN> printed{};
  if (inet_pton(family, std::string(text).c_str(), address.data()) != 1) return {};
  return inet_ntop(family, address.data(), printed.data(), printed.size());
}

Parsed parse_line(std::string_view bytes) {
  const std::size_t end = bytes.substr(0, kLineMax).find("\r\n");
  if (end == std::string_view::npos) {
    if (bytes.size() >= kLineMax) return refuse("the line of version 1 is longer than 107 bytes");
    return std::optional<ProxyHeader>{};
  }
  std::string_view line = bytes.substr(kWord.size(), end - kWord.size());
  ProxyHeader header{end + 2, {}};
  const std::string_view protocol = take_word(line);
  if (protocol == "UNKNOWN") return std::optional(header);
  if (protocol != "TCP4" && protocol != "TCP6")
    return refuse("version 1 names another protocol than TCP4, TCP6 or UNKNOWN");
  const int family = protocol == "TCP4" ? AF_INET : AF_INET6;
  header.client = canonical(family, take_word(line));
  const std::string destination = canonical(family, take_word(line));
  const std::string_view source_port = take_word(line);
  if (header.client.empty() || destination.empty() || !is_port(source_port) || !is_port(line))
    return refuse("version 1 needs two addresses and two ports");
  return std::optional(header);
}

Parsed parse_binary(std::string_view bytes) {
  if (bytes.size() < kFixedBytes) return std::optional<ProxyHeader>{};
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned command = at(12);
  const unsigned family = at(13);
  const std::size_t length = static_cast<std::size_t>(at(14)) << 8 | at(15);
  if (command != 0x20 && command != 0x21) return refuse("version 2 has an unknown version or command");
  if (kFixedBytes + length > bounds::proxy_header_bytes_max) return refuse("version 2 is too long");
  const bool local = command == 0x20;
  if (!local && family != 0x00 && family != 0x11 && family != 0x21 && family != 0x31)
    return refuse("version 2 names another transport than TCP over IPv4, IPv6 or UNIX");
  const std::size_t addresses = local || family == 0x00 ? 0 : family == 0x11 ? 12 : family == 0x21 ? 36 : 216;
  if (length < addresses) return refuse("version 2 is too short for its addresses");
  if (bytes.size() < kFixedBytes + length) return std::optional<ProxyHeader>{};
  ProxyHeader header{kFixedBytes + length, {}};
  if (addresses == 12 || addresses == 36) {
    std::array<char, INET6_ADDRSTRLEN> printed{};
    header.client =
        inet_ntop(addresses == 12 ? AF_INET : AF_INET6, bytes.data() + kFixedBytes, printed.data(), printed.size());
  }
  return std::optional(header);
}

// True if one of them is a prefix of the other.
bool agree(std::string_view bytes, std::string_view start) noexcept {
  const std::size_t size = std::min(bytes.size(), start.size());
  return bytes.substr(0, size) == start.substr(0, size);
}

}  // namespace

Parsed ProxyHeader::parse(std::string_view bytes) {
  if (agree(bytes, kSignature)) return parse_binary(bytes);
  if (!agree(bytes, kWord)) return refuse("the connection begins with other bytes");
  if (bytes.size() < kWord.size()) return std::optional<ProxyHeader>{};
  return parse_line(bytes);
}

std::size_t ProxyHeader::wanted(std::string_view bytes) noexcept {
  // No header of either version is shorter than the signature. The end of a line is unknown until it is read.
  if (bytes.size() < kSignature.size()) return kSignature.size() - bytes.size();
  if (!bytes.starts_with(kSignature)) return 1;
  if (bytes.size() < kFixedBytes) return kFixedBytes - bytes.size();
  const std::size_t length =
      static_cast<std::size_t>(static_cast<unsigned char>(bytes[14])) << 8 | static_cast<unsigned char>(bytes[15]);
  return kFixedBytes + length - std::min(bytes.size(), kFixedBytes + length);
}

}  // namespace weir
