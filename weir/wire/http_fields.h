// The checks that HTTP/1 and HTTP/2 both make on each field of a head, and the character classes for them. In a header
// so that the parsers can inline them; only for this folder.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>

#include "weir/base/ascii.h"
#include "weir/wire/http.h"

namespace weir {

constexpr bool is_letter_or_digit(unsigned c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The character classes of bytes.
enum CharClass : unsigned char { in_token = 1, in_value = 2, in_target = 4, in_host = 8 };

constexpr std::array<unsigned char, 256> kCharClasses = [] {
  std::array<unsigned char, 256> classes{};
  for (unsigned c = 0; c < 256; ++c) {
    const auto one_of = [&](std::string_view set) { return set.find(static_cast<char>(c)) != set.npos; };
    const bool visible = c > 0x20 && c < 0x7F;
    unsigned char allowed = 0;
    if (is_letter_or_digit(c) || one_of("!#$%&'*+-.^_`|~")) allowed |= in_token;  // RFC 9110 §5.6.2
    if (visible || c == ' ' || c == '\t' || c >= 0x80) allowed |= in_value;       // RFC 9110 §5.5
    // Also accepts what browsers send unescaped in a query (beyond RFC 3986); no fragment, no quotes or angle brackets.
    if (visible && !one_of("#\"<>")) allowed |= in_target;
    if (is_letter_or_digit(c) || one_of("-._~!$&'()*+,;=:[]%")) allowed |= in_host;  // RFC 3986 §3.2.2
    classes[c] = allowed;
  }
  return classes;
}();

// Returns whether every byte is in the class. Nearly always true, so there is no branch per byte.
constexpr bool all_are(std::string_view text, CharClass allowed) noexcept {
  unsigned in_all = allowed;
  for (const char c : text) in_all &= kCharClasses[static_cast<unsigned char>(c)];
  return in_all != 0;
}

// The same as all_are(text, in_value), written so that the compiler vectorizes it: values are most of a head.
constexpr bool is_value(std::string_view text) noexcept {
  unsigned char bad = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    bad = static_cast<unsigned char>(bad | ((byte < 0x20) & (byte != '\t')) | (byte == 0x7F));
  }
  return bad == 0;
}

static_assert([] {
  for (unsigned c = 0; c < 256; ++c) {
    const char byte = static_cast<char>(c);
    if (is_value({&byte, 1}) != all_are({&byte, 1}, in_value)) return false;
  }
  return true;
}());

// Returns the part before `mark` and removes it, with the mark, from `text`.
constexpr std::string_view take_until(std::string_view& text, char mark) noexcept {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

// The framing fields seen so far.
struct FramingFields {
  bool has_length = false;
  bool has_encoding = false;
  bool close = false;
  bool keep_alive = false;
  bool upgrade = false;  // Connection lists it
  std::uint64_t length = 0;

  HttpProblem read(HttpHeader header) noexcept;
  HttpProblem read_length(std::string_view value) noexcept;
  // REQUIRES: every field was read.
  HttpProblem decide(HttpFraming& framing) const noexcept;
};

inline HttpProblem FramingFields::read_length(std::string_view value) noexcept {
  if (has_length) return {400, "Content-Length is given twice"};
  has_length = true;
  const char* const end = value.data() + value.size();
  const bool digits = std::all_of(value.data(), end, [](char c) { return c >= '0' && c <= '9'; });
  if (value.empty() || !digits) return {400, "Content-Length is not a whole number"};
  const auto [rest, fault] = std::from_chars(value.data(), end, length);
  if (fault != std::errc{} || rest != end) length = std::numeric_limits<std::uint64_t>::max();
  return {};
}

inline HttpProblem FramingFields::read(HttpHeader header) noexcept {
  switch (header.name.size()) {
    case 10:
      if (!same_word(header.name, "connection")) return {};
      close = close || lists_word(header.value, "close");
      keep_alive = keep_alive || lists_word(header.value, "keep-alive");
      upgrade = upgrade || lists_word(header.value, "upgrade");
      return {};
    case 14:
      return same_word(header.name, "content-length") ? read_length(header.value) : HttpProblem{};
    case 17:
      if (!same_word(header.name, "transfer-encoding")) return {};
      if (has_encoding) return {400, "Transfer-Encoding is given twice"};
      has_encoding = true;
      if (!same_word(header.value, "chunked")) return {501, "the only supported Transfer-Encoding is chunked"};
      return {};
    default:
      return {};
  }
}

inline HttpProblem FramingFields::decide(HttpFraming& framing) const noexcept {
  if (has_length && has_encoding) return {400, "Content-Length and Transfer-Encoding must not be combined"};
  if (has_encoding && !framing.http11) return {400, "HTTP/1.0 has no Transfer-Encoding"};
  framing.keep_alive = !close && (framing.http11 || keep_alive);
  framing.length = length;
  framing.content = has_encoding ? HttpContent::chunked : has_length ? HttpContent::length : HttpContent::none;
  return {};
}

// Removes what an earlier request left in the head, except method, target and headers.
inline void clear_request(RequestHead& out) noexcept {
  out.path = out.query = out.host = out.content_type = out.content_encoding = out.accept = out.upgrade = {};
  out.content_length.reset();
  out.expects_continue = false;
  out.framing = {};
}

// Splits the target into path and query: origin, absolute and asterisk form (RFC 9112 §3.2, RFC 9113 §8.3.1).
HttpProblem split_target(RequestHead& out) noexcept;

// Reads the fields of a request that the server interprets, including the framing fields.
struct RequestFields {
  RequestHead& out;
  FramingFields framing = {};
  bool has_host = false;
  std::string_view upgrade = {};

  HttpProblem operator()(HttpHeader header) noexcept {
    switch (header.name.size()) {
      case 4:
        if (!same_word(header.name, "host")) return {};
        if (has_host) return {400, "Host is given twice"};
        has_host = true;
        out.host = header.value;
        if (!all_are(out.host, in_host)) return {400, "Host has a forbidden character"};
        return {};
      case 6:
        if (out.accept.empty() && same_word(header.name, "accept")) out.accept = header.value;
        return same_word(header.name, "expect") ? expect(header.value) : HttpProblem{};
      case 7:
        if (upgrade.empty() && same_word(header.name, "upgrade")) upgrade = header.value;
        return {};
      case 12:
        if (same_word(header.name, "content-type")) out.content_type = header.value;
        return {};
      case 16:
        if (same_word(header.name, "content-encoding")) out.content_encoding = header.value;
        return {};
      default:
        return framing.read(header);
    }
  }

  HttpProblem expect(std::string_view value) noexcept {
    if (!same_word(value, "100-continue")) return {417, "the only supported expectation is 100-continue"};
    out.expects_continue = true;
    return {};
  }

  // REQUIRES: every field was read, and out.framing.http11 is set.
  HttpProblem decide() noexcept {
    if (const HttpProblem problem = framing.decide(out.framing)) return problem;
    if (out.framing.http11 && !has_host) return {400, "the request has no Host"};
    if (framing.has_length) out.content_length = framing.length;
    if (out.framing.http11 && framing.upgrade) out.upgrade = upgrade;
    return {};
  }
};

}  // namespace weir
