// Appends many short pieces to a string and grows it rarely, because growing dominates the cost of writing an answer.
// The destructor completes the string; do not access it before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "weir/base/time.h"

namespace weir {

class TextWriter {
 public:
  explicit TextWriter(std::string& out) noexcept : out_(out), at_(out.data() + out.size()), end_(at_) {}
  ~TextWriter() { out_.resize(size()); }
  TextWriter(const TextWriter&) = delete;
  TextWriter& operator=(const TextWriter&) = delete;

  // Reserves room for `bytes` more at once.
  void expect(std::size_t bytes) { need(bytes); }

  // Includes what the string already had.
  std::size_t size() const noexcept { return static_cast<std::size_t>(at_ - out_.data()); }

  // Always inline: most pieces are constants, and copying one is then a few instructions.
  [[gnu::always_inline]] TextWriter& text(std::string_view text) {
    need(text.size());
    if (!text.empty()) std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
    return *this;
  }
  [[gnu::always_inline]] TextWriter& character(char c) {
    need(1);
    *at_++ = c;
    return *this;
  }
  TextWriter& integer(std::int64_t number);
  // Appends what print_seconds() returns.
  TextWriter& seconds(Duration d);
  // Appends a copy of the bytes in [begin, end).
  TextWriter& again(std::size_t begin, std::size_t end) {
    need(end - begin);
    std::memcpy(at_, out_.data() + begin, end - begin);
    at_ += end - begin;
    return *this;
  }

 private:
  [[gnu::always_inline]] void need(std::size_t bytes) {
    if (static_cast<std::size_t>(end_ - at_) < bytes) [[unlikely]]
      grow(bytes);
  }
  void grow(std::size_t bytes);

  std::string& out_;
  char* at_;   // where the next piece starts
  char* end_;  // of the reserved room
};

}  // namespace weir
