// Finds the heaviest keys of a stream in bounded memory: the Space-Saving sketch (Metwally, Agrawal and El Abbadi,
// 2005). In: the hash of a key, once per occurrence. Out: for each kept key, a count that is never too low, and how
// much it may be too high.
//
// A new key takes over the place with the lowest count and inherits that count as its error. So with m places every key
// that makes up more than 1/m of the stream is kept, however many different keys there are.
//
// Stores only hashes: the owner keeps the data of each key in its own array, by place. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir {

class TopKeys {
 public:
  struct Place {
    std::uint32_t number = 0;  // 0 <= number < places
    bool fresh = false;        // was free or belonged to another key
  };
  struct Estimate {
    std::uint64_t count = 0;  // never below the true count
    std::uint64_t error = 0;  // the true count is at least count - error

    friend bool operator==(const Estimate&, const Estimate&) = default;
  };

  // `places` is at least 1.
  explicit TopKeys(std::size_t places);

  // Counts one occurrence of a key. `hash` identifies the key: keyed, 64 bits. Takes constant time.
  Place add(std::uint64_t hash) noexcept;

  // Places 0 .. size() - 1 are in use.
  std::size_t size() const noexcept { return order_.size(); }
  Estimate estimate(std::uint32_t place) const noexcept;
  // No key outside the sketch occurred more often than this.
  std::uint64_t floor() const noexcept { return order_.size() < places_ ? 0 : count(order_.back()); }

 private:
  static constexpr std::uint32_t kNobody = 0xffff'ffff;

  struct Tenant {
    std::uint64_t hash = 0;
    std::uint64_t error = 0;
    std::uint32_t position = 0;  // in the order
    std::uint32_t run = 0;
  };
  // Neighbors in the order with the same count. Counting one of them swaps it with the first of its run and then moves
  // it to the run before, so at most two places move.
  struct Run {
    std::uint64_t count = 0;
    std::uint32_t first = 0;  // positions
    std::uint32_t last = 0;
  };

  std::uint64_t count(std::uint32_t place) const noexcept { return runs_[tenants_[place].run].count; }
  std::size_t find(std::uint64_t hash) const noexcept;  // its slot in the index, or the free one where it belongs
  void vacate(std::size_t slot) noexcept;
  void raise(std::uint32_t place) noexcept;
  void join(std::uint32_t place, std::uint32_t position, std::uint64_t count) noexcept;

  std::size_t places_;
  std::vector<Tenant> tenants_;       // by place
  std::vector<std::uint32_t> order_;  // places, the highest count first
  std::vector<Run> runs_;
  std::vector<std::uint32_t> free_runs_;
  std::vector<std::uint32_t> index_;  // places by hash, open addressing, at most a quarter full
};

}  // namespace weir
