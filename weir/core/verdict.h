// The answer to a request: every limit's decision, in the order charged, and which of them speaks for the request.
#pragma once

#include <cstddef>
#include <memory>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/core/decision.h"

namespace weir {

// Inline: an answer allocates nothing. Room that is not used is neither written nor copied: most requests have one
// decision, and sixteen of them would cost more than the decision itself.
class Decisions {
 public:
  constexpr Decisions() noexcept {}
  constexpr Decisions(const Decisions& other) noexcept { assign(other); }
  constexpr Decisions& operator=(const Decisions& other) noexcept {
    if (this != &other) assign(other);
    return *this;
  }
  constexpr ~Decisions() = default;

  constexpr void push_back(const Decision& decision) noexcept {
    WEIR_ASSERT(size_ < bounds::charges_max);
    std::construct_at(&items_[size_++], decision);
  }
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr const Decision& operator[](std::size_t i) const noexcept {
    WEIR_ASSERT(i < size_);
    return items_[i];
  }
  constexpr Decision& operator[](std::size_t i) noexcept {
    WEIR_ASSERT(i < size_);
    return items_[i];
  }
  constexpr const Decision* begin() const noexcept { return items_; }
  constexpr const Decision* end() const noexcept { return items_ + size_; }

 private:
  constexpr void assign(const Decisions& other) noexcept {
    size_ = 0;
    for (const Decision& decision : other) push_back(decision);
  }

  union {
    Decision items_[bounds::charges_max];  // alive up to size_
  };
  std::size_t size_ = 0;
};

struct Verdict {
  Decisions all;  // in order; with in_order charging, only those that were asked
  std::size_t strictest =
      0;                  // index into `all` of the one that speaks; shadow decisions speak only if there is no other
  bool allowed = true;    // no limit that enforces denied; a verdict without decisions allows
  bool degraded = false;  // the store could not be asked and the policy let it pass
  std::size_t forgotten = 0;  // of a reset: buckets that were not full
};

}  // namespace weir
