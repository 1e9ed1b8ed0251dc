// A list with inline storage for N items: never allocates, and does not initialize or copy unused items. Most requests
// have one decision; initializing and copying sixteen would cost more than the decision itself.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "weir/base/assert.h"

namespace weir {

template <class T, std::size_t N>
class InlineList {
  static_assert(std::is_nothrow_copy_constructible_v<T> && std::is_trivially_destructible_v<T>);

 public:
  InlineList() noexcept {}
  InlineList(const InlineList& other) noexcept { assign(other); }
  InlineList& operator=(const InlineList& other) noexcept {
    if (this != &other) assign(other);
    return *this;
  }
  ~InlineList() = default;

  // REQUIRES: size() < N.
  void push_back(const T& item) noexcept {
    WEIR_ASSERT(size_ < N);
    std::construct_at(&items_[size_++], item);
  }
  // Constructs the item in place, without a copy. REQUIRES: size() < N.
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) noexcept {
    WEIR_ASSERT(size_ < N);
    return *std::construct_at(&items_[size_++], std::forward<Arguments>(arguments)...);
  }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  const T& operator[](std::size_t i) const noexcept {
    WEIR_ASSERT(i < size_);
    return items_[i];
  }
  T& operator[](std::size_t i) noexcept {
    WEIR_ASSERT(i < size_);
    return items_[i];
  }
  const T* begin() const noexcept { return items_; }
  const T* end() const noexcept { return items_ + size_; }

 private:
  void assign(const InlineList& other) noexcept {
    size_ = 0;
    for (const T& item : other) push_back(item);
  }

  union {
    T items_[N];  // constructed up to size_
  };
  std::size_t size_ = 0;
};

}  // namespace weir
