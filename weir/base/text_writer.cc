#include "weir/base/text_writer.h"

#include <charconv>

namespace weir {
namespace {

constexpr std::size_t kIntegerBytes = 20;  // enough for every int64
constexpr std::uint64_t kSecondTicks = 1'000'000'000;
constexpr std::size_t kSpareBytes = 512;  // reserved beyond what a piece needs

}  // namespace

void TextWriter::grow(std::size_t bytes) {
  const std::size_t written = size();
  out_.resize(written + bytes + kSpareBytes);
  at_ = out_.data() + written;
  end_ = out_.data() + out_.size();
}

TextWriter& TextWriter::integer(std::int64_t number) {
  if (number >= 0 && number < 10) return character(static_cast<char>('0' + number));
  need(kIntegerBytes);
  at_ = std::to_chars(at_, at_ + kIntegerBytes, number).ptr;
  return *this;
}

TextWriter& TextWriter::seconds(Duration d) {
  const auto signed_ticks = static_cast<std::uint64_t>(d.count());
  const std::uint64_t ticks = d < Duration::zero() ? 0 - signed_ticks : signed_ticks;
  if (d < Duration::zero()) character('-');
  integer(static_cast<std::int64_t>(ticks / kSecondTicks));
  std::uint64_t fraction = ticks % kSecondTicks;
  if (fraction == 0) return *this;
  // The leading 1 keeps the zeros of the fraction; the decimal point then replaces it.
  fraction += kSecondTicks;
  while (fraction % 10 == 0) fraction /= 10;
  const std::size_t point = size();
  integer(static_cast<std::int64_t>(fraction));
  out_[point] = '.';
  return *this;
}

}  // namespace weir
