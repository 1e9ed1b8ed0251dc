// gRPC on top of HTTP: a length prefix before each message, a timeout in a header field, a status in trailers
// (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). Does not parse the messages themselves.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/time.h"

namespace weir::grpc {

enum class Status : unsigned char {
  ok = 0,
  canceled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  resource_exhausted = 8,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  unauthenticated = 16,
};
inline constexpr std::size_t kStatuses = 17;

// "OK", "DEADLINE_EXCEEDED".
std::string_view print(Status status) noexcept;

inline constexpr std::size_t kPrefixBytes = 5;

struct Message {
  bool compressed = false;
  std::string_view bytes;
};

enum class Parsed : unsigned char { more, whole, too_large, broken };

// Parses the message at the start of `bytes`, which takes kPrefixBytes + out.bytes.size() bytes. Returns `too_large` as
// soon as the prefix announces too much, and `broken` if the first byte is neither 0 nor 1.
Parsed parse(std::string_view bytes, std::size_t message_bytes_max, Message& out) noexcept;

// begin_message() appends space for a prefix; end_message() writes the size of everything appended since into it.
std::size_t begin_message(std::string& out);
void end_message(std::size_t begun, std::string& out) noexcept;

// Parses "grpc-timeout": up to eight digits and one of H M S m u n. Returns nullopt for anything else.
std::optional<Duration> parse_timeout(std::string_view text) noexcept;

// Appends a value for "grpc-message": bytes outside printable ASCII, and '%', become %XX.
void append_escaped(std::string_view text, std::string& out);

// True for "application/grpc", alone or followed by "+proto" or parameters.
bool is_grpc(std::string_view content_type) noexcept;

}  // namespace weir::grpc
