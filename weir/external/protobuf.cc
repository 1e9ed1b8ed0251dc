#include "weir/external/protobuf.h"

#include <algorithm>

#include "weir/identify/quote.h"

namespace weir::external {
namespace {

constexpr std::uint64_t kVarint = 0;
constexpr std::uint64_t kFixed64 = 1;
constexpr std::uint64_t kBytes = 2;
constexpr std::uint64_t kFixed32 = 5;
constexpr std::uint64_t kNumberMax = (1u << 29) - 1;

void append_varint(std::uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t bytes = utf8_sequence(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = utf8_sequence(text);
    out += bytes == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, bytes);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return out;
}

}  // namespace

bool ProtobufReader::next(Field& field) noexcept {
  if (rest_.empty() || malformed_) return false;
  std::uint64_t tag = 0;
  malformed_ = !take_varint(tag) || tag >> 3 == 0 || tag >> 3 > kNumberMax;
  if (malformed_) return false;
  field = {};
  field.number = static_cast<std::uint32_t>(tag >> 3);
  malformed_ = !take_value(tag & 7, field);
  return !malformed_;
}

bool ProtobufReader::take_value(std::uint64_t wire_type, Field& field) noexcept {
  std::string_view skipped;
  switch (wire_type) {
    case kVarint:
      field.kind = Kind::varint;
      return take_varint(field.varint);
    case kFixed64:
      field.kind = Kind::fixed;
      return take_bytes(8, skipped);
    case kFixed32:
      field.kind = Kind::fixed;
      return take_bytes(4, skipped);
    case kBytes: {
      field.kind = Kind::bytes;
      std::uint64_t size = 0;
      return take_varint(size) && take_bytes(size, field.bytes);
    }
    default:
      return false;
  }
}

bool ProtobufReader::take_varint(std::uint64_t& value) noexcept {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    if (shift == 63 && byte > 1) return false;  // more than 64 bits
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool ProtobufReader::take_bytes(std::uint64_t size, std::string_view& bytes) noexcept {
  if (size > rest_.size()) return false;
  bytes = rest_.substr(0, static_cast<std::size_t>(size));
  rest_.remove_prefix(static_cast<std::size_t>(size));
  return true;
}

void append_text_field(std::uint32_t number, std::string_view text, std::string& out) {
  if (text.empty()) return;
  if (is_utf8(text)) return append_bytes_field(number, text, out);
  append_bytes_field(number, to_utf8(text), out);
}

void append_bytes_field(std::uint32_t number, std::string_view bytes, std::string& out) {
  append_varint(std::uint64_t{number} << 3 | kBytes, out);
  append_varint(bytes.size(), out);
  out += bytes;
}

}  // namespace weir::external
