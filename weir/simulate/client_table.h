// The clients of a replay: for every bucket key its state and its counts. Bounded: when all places are taken, a new
// client takes over the place of one that was never denied and whose buckets are full again; the old one's counts are
// added to the rest of its limit. If there is none, the client nearest to full loses its place, which counts as
// forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "weir/base/time.h"
#include "weir/simulate/state.h"

namespace weir::simulate {

struct ClientCounts {
  std::uint64_t allowed = 0;
  std::uint64_t denied = 0;

  void add(const ClientCounts& other) noexcept {
    allowed += other.allowed;
    denied += other.denied;
  }
};

struct TrackedClient {
  State state;
  Time demand{};  // the TAT if no request were ever denied
  ClientCounts counts;
  Time first_denied{};
  Time last_denied{};
  std::uint64_t hash = 0;
  std::unique_ptr<char[]> text;
  std::uint32_t text_size = 0;
  std::uint32_t limit = 0;        // index in the policy
  std::uint32_t id_offset = 0;    // where the id starts in the key
  bool succeeds_another = false;  // took over the place of another client, and the spool does not know yet

  std::string_view key() const noexcept { return {text.get(), text_size}; }
  std::string_view id() const noexcept { return key().substr(id_offset); }
};

class ClientTable {
 public:
  // `limits` is how many the policy has. REQUIRES: clients_max > 0.
  ClientTable(std::size_t clients_max, std::size_t limits);

  // Returns the place of the client with that key; a new one if there is none. If the table is full, takes over the
  // place of another client, but not one that was returned since the last begin().
  std::uint32_t find_or_add(std::string_view key, Now now);
  // Starts a turn: places returned from here on keep their clients until the next begin().
  void begin() noexcept { ++turn_; }

  TrackedClient& operator[](std::uint32_t place) noexcept { return chunks_[place / kChunk][place % kChunk].client; }
  std::uint32_t size() const noexcept { return size_; }

  // Clients that lost their place, by limit.
  struct Rest {
    std::uint64_t clients = 0;
    ClientCounts counts;
  };
  const Rest& rest(std::size_t limit) const noexcept { return rest_[limit]; }
  std::uint64_t forgotten() const noexcept { return forgotten_; }

 private:
  static constexpr std::uint32_t kChunk = 1024;
  static constexpr std::uint32_t kNobody = 0xffff'ffff;
  struct Place {
    TrackedClient client;
    std::uint64_t turn = 0;
  };
  struct IndexEntry {
    std::uint32_t tag = 0;  // the upper half of the hash
    std::uint32_t place = kNobody;
  };

  Place& place_at(std::uint32_t place) noexcept { return chunks_[place / kChunk][place % kChunk]; }
  void widen();
  void insert(std::uint64_t hash, std::uint32_t place) noexcept;
  void erase(std::uint64_t hash, std::uint32_t place) noexcept;
  std::uint32_t make_place(Now now);

  std::size_t clients_max_;
  std::vector<std::unique_ptr<Place[]>> chunks_;
  std::uint32_t size_ = 0;
  std::vector<IndexEntry> index_;  // a power of two, at most half full
  std::vector<Rest> rest_;
  std::uint64_t turn_ = 1;
  std::uint32_t hand_ = 0;  // where the search for a place continues
  std::uint64_t forgotten_ = 0;
};

}  // namespace weir::simulate
