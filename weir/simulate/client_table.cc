#include "weir/simulate/client_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "weir/base/siphash.h"

namespace weir::simulate {
namespace {

// A fixed key, so that a replay is repeatable. Clients who choose colliding names can only slow down this replay.
constexpr HashKey kReplayHash{0x7765'6972, 0x6c6f'67};
constexpr int kLookedAt = 64;  // places examined before one is taken over

// When the client's buckets are full again; dropping it then loses nothing.
Time full_at(const TrackedClient& client) noexcept {
  const Time quota{quota::end_of(client.state.quota).time_since_epoch()};
  return std::max(client.state.tat, client.state.quota == 0 ? Time{} : quota);
}

}  // namespace

ClientTable::ClientTable(std::size_t clients_max, std::size_t limits)
    : clients_max_(std::min<std::size_t>(clients_max, kNobody - 1)), index_(1024), rest_(limits) {}

std::uint32_t ClientTable::find_or_add(std::string_view key, Now now) {
  const std::uint64_t hash = siphash13(kReplayHash, key);
  const std::size_t mask = index_.size() - 1;
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  for (std::size_t i = hash & mask; index_[i].place != kNobody; i = (i + 1) & mask) {
    if (index_[i].tag != tag) continue;
    Place& place = place_at(index_[i].place);
    if (place.client.key() != key) continue;
    place.turn = turn_;
    return index_[i].place;
  }
  const std::uint32_t made = make_place(now);
  Place& place = place_at(made);
  place.turn = turn_;
  TrackedClient& client = place.client;
  client.hash = hash;
  client.text = std::make_unique_for_overwrite<char[]>(key.size());
  client.text_size = static_cast<std::uint32_t>(key.size());
  std::memcpy(client.text.get(), key.data(), key.size());
  insert(hash, made);
  return made;
}

std::uint32_t ClientTable::make_place(Now now) {
  if (size_ < clients_max_) {
    if (2 * (std::size_t{size_} + 1) > index_.size()) widen();
    if (size_ % kChunk == 0) chunks_.push_back(std::make_unique<Place[]>(kChunk));
    return size_++;
  }
  std::uint32_t best = kNobody;
  const auto rank = [&](std::uint32_t place) {
    const TrackedClient& client = place_at(place).client;
    return std::pair(client.counts.denied > 0, std::max(full_at(client), now.time));
  };
  // Only a few places belong to this turn, so one round through the table finds another.
  for (std::uint32_t looked = 0; looked < kLookedAt || best == kNobody; ++looked) {
    const std::uint32_t place = hand_;
    hand_ = (hand_ + 1) % size_;
    if (place_at(place).turn == turn_) continue;
    if (best != kNobody && rank(place) >= rank(best)) continue;
    best = place;
    if (rank(best) == std::pair(false, now.time)) break;
  }
  TrackedClient& client = place_at(best).client;
  if (full_at(client) > now.time) ++forgotten_;
  ++rest_[client.limit].clients;
  rest_[client.limit].counts.add(client.counts);
  erase(client.hash, best);
  client = {};
  client.succeeds_another = true;
  return best;
}

void ClientTable::insert(std::uint64_t hash, std::uint32_t place) noexcept {
  const std::size_t mask = index_.size() - 1;
  std::size_t i = hash & mask;
  while (index_[i].place != kNobody) i = (i + 1) & mask;
  index_[i] = {static_cast<std::uint32_t>(hash >> 32), place};
}

// Moves the following entries back, so that a search never meets a hole.
void ClientTable::erase(std::uint64_t hash, std::uint32_t place) noexcept {
  const std::size_t mask = index_.size() - 1;
  std::size_t hole = hash & mask;
  while (index_[hole].place != place) hole = (hole + 1) & mask;
  for (std::size_t i = (hole + 1) & mask; index_[i].place != kNobody; i = (i + 1) & mask) {
    const std::size_t home = place_at(index_[i].place).client.hash & mask;
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    index_[hole] = index_[i];
    hole = i;
  }
  index_[hole] = {};
}

void ClientTable::widen() {
  index_.assign(index_.size() * 2, {});
  for (std::uint32_t place = 0; place < size_; ++place) insert(place_at(place).client.hash, place);
}

}  // namespace weir::simulate
