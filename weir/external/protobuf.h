// Reads and writes the part of protobuf's wire format that limits.proto needs
// (https://protobuf.dev/programming-guides/encoding/). Only protocol/grpc uses the protobuf library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::external {

// Iterates over the fields of one message. Rejects groups, which proto3 does not have.
class ProtobufReader {
 public:
  enum class Kind : unsigned char { varint, fixed, bytes };
  struct Field {
    std::uint32_t number = 0;
    Kind kind = Kind::varint;
    std::uint64_t varint = 0;  // of varint; a signed number is its two's complement
    std::string_view bytes;    // of bytes
  };

  explicit ProtobufReader(std::string_view message) noexcept : rest_(message) {}

  // Reads the next field. Returns false at the end, or if the message is malformed.
  bool next(Field& field) noexcept;
  bool is_malformed() const noexcept { return malformed_; }

 private:
  bool take_varint(std::uint64_t& value) noexcept;
  bool take_bytes(std::uint64_t size, std::string_view& bytes) noexcept;
  bool take_value(std::uint64_t wire_type, Field& field) noexcept;

  std::string_view rest_;
  bool malformed_ = false;
};

// Appends a text field, or nothing if the text is empty. Replaces invalid UTF-8 with U+FFFD, because proto3 requires
// UTF-8.
void append_text_field(std::uint32_t number, std::string_view text, std::string& out);
// Appends a bytes field even if it is empty, because an embedded message may be.
void append_bytes_field(std::uint32_t number, std::string_view bytes, std::string& out);

}  // namespace weir::external
