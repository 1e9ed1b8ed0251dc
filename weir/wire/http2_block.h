// Http2Block collects the fields of one HTTP/2 header block while it is decoded, within the bounds of a head.
// Http2FieldRoom stores the decoded fields until the caller has handled them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/wire/http1.h"

namespace weir {

// RFC 9113 §6.5.2: what each field adds to the size of a list, besides its name and value.
inline constexpr std::size_t kHttp2FieldOverhead = 32;

// Memory for the fields that one read decodes. Bounded, because a few bytes can refer to large entries of HPACK's
// table.
class Http2FieldRoom {
 public:
  Http2FieldRoom() = default;
  Http2FieldRoom(const Http2FieldRoom&) = delete;
  Http2FieldRoom& operator=(const Http2FieldRoom&) = delete;

  void clear() noexcept;
  // Returns null beyond bounds::http2_fields_bytes_max in total. Valid until clear().
  template <class T>
  T* take(std::size_t count) {
    return static_cast<T*>(take(count * sizeof(T), alignof(T)));
  }

 private:
  void* take(std::size_t bytes, std::size_t alignment);

  std::array<std::byte, 64u << 10> first_;
  std::pmr::monotonic_buffer_resource more_{first_.data(), first_.size()};
  std::size_t bytes_ = 0;
};

class Http2Block {
 public:
  void begin() noexcept;
  // Keeps nothing more beyond bounds::http_head_bytes_max or bounds::http_headers_max fields. Returns false beyond
  // bounds::http2_list_bytes_max, where even validating more fields would cost too much.
  bool add(std::string_view name, std::string_view value);

  // True for a request or a response, false for trailers.
  bool is_head() const noexcept { return is_head_; }
  // Copies the fields into `room` and joins cookies (RFC 9113 §8.2.3). Returns false if a bound was exceeded or the
  // room is full.
  bool finish(Http2FieldRoom& room, std::span<const HttpHeader>& out);

 private:
  struct Field {
    std::uint32_t name_bytes;
    std::uint32_t value_bytes;
  };

  void copy(char* text, char* cookies, HttpHeader* headers, std::span<const HttpHeader>& out) const;

  std::string text_;  // names and values, concatenated
  std::vector<Field> fields_;
  std::size_t list_bytes_ = 0;
  std::size_t regular_ = 0;  // fields that are not pseudo-fields; all cookies are one
  std::size_t cookies_ = 0;
  bool is_head_ = false;
  bool too_large_ = false;
};

// Returns the field of that name, or null. `name` is in lower case.
const HttpHeader* find_http2_field(std::span<const HttpHeader> fields, std::string_view name) noexcept;

}  // namespace weir
