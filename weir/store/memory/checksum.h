// A checksum for files. It detects flipped bits, torn writes and lost tails, but not deliberate forgery. It uses eight
// lanes of 8-byte words, so that checking two gigabytes of buckets takes no longer than reading them. Each step is a
// bijection of the lane and of the word, so a change within one word is always detected, and any other change is missed
// with probability 2^-64. CRC-32C would miss one in 2^32, and without hardware support it is several times slower.
// Words are read in native byte order, like everything in these files.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir {

class Checksum {
 public:
  void add(std::string_view bytes) noexcept {
    if (bytes.empty()) return;  // its pointer may be null
    length_ += bytes.size();
    if (pending_bytes_ != 0) {
      const std::size_t taken = bytes.size() < kBlock - pending_bytes_ ? bytes.size() : kBlock - pending_bytes_;
      std::memcpy(pending_.data() + pending_bytes_, bytes.data(), taken);
      pending_bytes_ += taken;
      bytes.remove_prefix(taken);
      if (pending_bytes_ < kBlock) return;
      absorb(pending_.data());
      pending_bytes_ = 0;
    }
    for (; bytes.size() >= kBlock; bytes.remove_prefix(kBlock)) absorb(bytes.data());
    if (!bytes.empty()) std::memcpy(pending_.data(), bytes.data(), bytes.size());
    pending_bytes_ = bytes.size();
  }

  // Returns the checksum of everything added so far. Never 0.
  std::uint64_t value() const noexcept {
    Checksum rest = *this;
    std::memset(rest.pending_.data() + pending_bytes_, 0, kBlock - pending_bytes_);
    rest.absorb(rest.pending_.data());
    std::uint64_t value = length_;
    for (const std::uint64_t lane : rest.lanes_) value = step(value, lane);
    value ^= value >> 32;
    return value != 0 ? value : 1;
  }

 private:
  static constexpr std::size_t kLanes = 8;
  static constexpr std::size_t kBlock = kLanes * sizeof(std::uint64_t);

  static constexpr std::uint64_t step(std::uint64_t lane, std::uint64_t word) noexcept {
    return std::rotl(lane ^ word, 29) * 0x9e3779b97f4a7c15;  // odd, so that the multiplication is invertible
  }

  void absorb(const char* block) noexcept {
    std::array<std::uint64_t, kLanes> words;
    std::memcpy(words.data(), block, kBlock);
    for (std::size_t i = 0; i < kLanes; ++i) lanes_[i] = step(lanes_[i], words[i]);
  }

  std::array<std::uint64_t, kLanes> lanes_{1, 2, 3, 4, 5, 6, 7, 8};  // different, so that swapped lanes are detected
  std::array<char, kBlock> pending_{};
  std::size_t pending_bytes_ = 0;
  std::uint64_t length_ = 0;
};

}  // namespace weir
