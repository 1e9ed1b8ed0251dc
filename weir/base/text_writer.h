// Appends many short pieces to a string, asking it for room now and then instead of every time: that is most of what
// writing an answer costs. The string holds the pieces once the writer is gone; until then it is not to be touched.
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
  explicit TextWriter(std::string& out) noexcept : out_(out), size_(out.size()) {}
  ~TextWriter() { out_.resize(size_); }
  TextWriter(const TextWriter&) = delete;
  TextWriter& operator=(const TextWriter&) = delete;

  // What was there before included.
  std::size_t size() const noexcept { return size_; }

  TextWriter& text(std::string_view text) {
    char* const to = room(text.size());
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    size_ += text.size();
    return *this;
  }
  TextWriter& character(char c) {
    *room(1) = c;
    ++size_;
    return *this;
  }
  TextWriter& integer(std::int64_t number);
  // The shortest exact decimal, as print_seconds() has it.
  TextWriter& seconds(Duration d);
  // Once more what stands in [begin, end).
  TextWriter& again(std::size_t begin, std::size_t end) {
    char* const to = room(end - begin);
    std::memcpy(to, out_.data() + begin, end - begin);
    size_ += end - begin;
    return *this;
  }

 private:
  static constexpr std::size_t kSpare = 512;

  char* room(std::size_t bytes) {
    if (out_.size() - size_ < bytes) out_.resize(size_ + bytes + kSpare);
    return out_.data() + size_;
  }

  std::string& out_;
  std::size_t size_;  // of what is written; behind it is room
};

}  // namespace weir
