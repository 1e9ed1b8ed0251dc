#include "weir/wire/grpc.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "weir/base/ascii.h"
#include "weir/wire/http.h"

namespace weir::grpc {

std::string_view print(Status status) noexcept {
  switch (status) {
    case Status::ok:
      return "OK";
    case Status::canceled:
      return "CANCELLED";
    case Status::unknown:
      return "UNKNOWN";
    case Status::invalid_argument:
      return "INVALID_ARGUMENT";
    case Status::deadline_exceeded:
      return "DEADLINE_EXCEEDED";
    case Status::not_found:
      return "NOT_FOUND";
    case Status::resource_exhausted:
      return "RESOURCE_EXHAUSTED";
    case Status::unimplemented:
      return "UNIMPLEMENTED";
    case Status::internal:
      return "INTERNAL";
    case Status::unavailable:
      return "UNAVAILABLE";
    case Status::unauthenticated:
      break;
  }
  return "UNAUTHENTICATED";
}

Parsed parse(std::string_view bytes, std::size_t message_bytes_max, Message& out) noexcept {
  if (bytes.empty()) return Parsed::more;
  if (bytes[0] != 0 && bytes[0] != 1) return Parsed::broken;
  if (bytes.size() < kPrefixBytes) return Parsed::more;
  std::size_t size = 0;
  for (std::size_t i = 1; i < kPrefixBytes; ++i) size = size << 8 | static_cast<unsigned char>(bytes[i]);
  if (size > message_bytes_max) return Parsed::too_large;
  if (bytes.size() - kPrefixBytes < size) return Parsed::more;
  out = {bytes[0] == 1, bytes.substr(kPrefixBytes, size)};
  return Parsed::whole;
}

std::size_t begin_message(std::string& out) {
  out.append(kPrefixBytes, '\0');
  return out.size();
}

void end_message(std::size_t begun, std::string& out) noexcept {
  std::size_t size = out.size() - begun;
  for (std::size_t i = 1; i < kPrefixBytes; ++i) {
    out[begun - i] = static_cast<char>(size & 0xff);
    size >>= 8;
  }
}

std::optional<Duration> parse_timeout(std::string_view text) noexcept {
  constexpr std::size_t kDigitsMax = 8;
  if (text.size() < 2 || text.size() > kDigitsMax + 1) return {};
  std::int64_t number = 0;
  for (const char c : text.substr(0, text.size() - 1)) {
    if (!is_digit(c)) return {};
    number = 10 * number + (c - '0');
  }
  using namespace std::chrono;
  switch (text.back()) {
    case 'H':
      return hours{std::min<std::int64_t>(number, 1'000'000)};  // a century is enough
    case 'M':
      return minutes{number};
    case 'S':
      return seconds{number};
    case 'm':
      return milliseconds{number};
    case 'u':
      return microseconds{number};
    case 'n':
      return nanoseconds{number};
    default:
      return {};
  }
}

void append_escaped(std::string_view text, std::string& out) {
  for (const char c : text) {
    if (c >= 0x20 && c <= 0x7e && c != '%') {
      out += c;
    } else {
      append_percent_escape(c, out);
    }
  }
}

bool is_grpc(std::string_view content_type) noexcept {
  const std::string_view type = media_type_of(content_type);
  return same_word(type, "application/grpc") || same_word(type, "application/grpc+proto");
}

}  // namespace weir::grpc
