// The open streams of one HTTP/2 connection, by id. Ids of open streams are close together, so that the id itself is a
// good hash. Allocates only to grow, and values stay in one array: a stream costs no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "weir/base/assert.h"

namespace weir {

template <class T>
class Http2Streams {
 public:
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  // Returns null if there is no such stream. Valid until the next insert() or erase().
  T* find(std::int32_t id) noexcept {
    if (size_ == 0) return nullptr;
    for (std::size_t at = home(id);; at = next(at)) {
      if (places_[at].id == id) return &places_[at].value;
      if (places_[at].id == 0) return nullptr;
    }
  }

  // Returns the stream of that id; creates it if it does not exist. REQUIRES: id > 0.
  T& insert(std::int32_t id) {
    WEIR_ASSERT(id > 0);
    if (2 * (size_ + 1) > places_.size()) grow();
    for (std::size_t at = home(id);; at = next(at)) {
      if (places_[at].id == id) return places_[at].value;
      if (places_[at].id != 0) continue;
      ++size_;
      places_[at].id = id;
      return places_[at].value;
    }
  }

  void erase(std::int32_t id) noexcept {
    if (size_ == 0) return;
    std::size_t hole = home(id);
    while (places_[hole].id != id) {
      if (places_[hole].id == 0) return;
      hole = next(hole);
    }
    // Later streams move up into the hole, unless the hole is before their home.
    for (std::size_t at = next(hole); places_[at].id != 0; at = next(at)) {
      const std::size_t mask = places_.size() - 1;
      if (((at - home(places_[at].id)) & mask) < ((at - hole) & mask)) continue;
      places_[hole] = std::move(places_[at]);
      hole = at;
    }
    places_[hole] = {};
    --size_;
  }

  // `each(id, value)` must not insert or erase.
  template <class Each>
  void for_each(Each each) {
    for (Place& place : places_) {
      if (place.id != 0) each(place.id, place.value);
    }
  }

 private:
  static constexpr std::size_t kPlacesFirst = 16;
  struct Place {
    std::int32_t id = 0;
    T value{};
  };

  // Ids of one side are all odd or all even.
  std::size_t home(std::int32_t id) const noexcept { return static_cast<std::size_t>(id >> 1) & (places_.size() - 1); }
  std::size_t next(std::size_t at) const noexcept { return (at + 1) & (places_.size() - 1); }

  void grow() {
    std::vector<Place> old(places_.empty() ? kPlacesFirst : 2 * places_.size());
    old.swap(places_);
    size_ = 0;
    for (Place& place : old) {
      if (place.id != 0) insert(place.id) = std::move(place.value);
    }
  }

  std::vector<Place> places_;  // a power of two, at most half of them taken
  std::size_t size_ = 0;
};

}  // namespace weir
