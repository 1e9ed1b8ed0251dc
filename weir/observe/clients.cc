#include "weir/observe/clients.h"

#include <sys/random.h>

#include <algorithm>
#include <utility>

namespace weir {
namespace {

// Clients choose ids: without a secret they could fill one corner of the index.
HashKey secret_key() noexcept {
  HashKey key{0x243f6a8885a308d3, 0x13198a2e03707344};
  (void)!getrandom(&key, sizeof key, GRND_NONBLOCK);
  return key;
}

void add_denial(std::vector<Wall>& denials, Wall wall) {
  if (denials.size() >= bounds::denials_kept) denials.erase(denials.begin());
  denials.push_back(wall);
}

// Merges the counters of the same client from another loop or sketch.
void join(ClientCounters& into, const ClientCounters& other) {
  into.allowed += other.allowed;
  into.denied += other.denied;
  into.shadow_denied += other.shadow_denied;
  into.first_seen = std::min(into.first_seen, other.first_seen);
  into.last_seen = std::max(into.last_seen, other.last_seen);
  into.count += other.count;
  into.error += other.error;
  std::vector<Wall> all;
  std::ranges::merge(into.denials, other.denials, std::back_inserter(all));
  if (all.size() > bounds::denials_kept) {
    all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(bounds::denials_kept));
  }
  into.denials = std::move(all);
}

}  // namespace

LoopClients::LoopClients(std::size_t places)
    : key_(secret_key()), requests_(places), denied_(places), shadow_denied_(places) {}

void LoopClients::Side::count(std::uint64_t hash, const Label& label, ClientOutcome outcome, Wall wall) {
  const TopKeys::Place place = sketch.add(hash);
  ClientCounters& client = clients[place.number];
  if (place.fresh) {
    client.bucket = label.bucket();
    client.limit = label.limit;
    client.id = label.id;
    client.secret = label.secret;
    client.allowed = 0;
    client.denied = 0;
    client.shadow_denied = 0;
    client.first_seen = wall;
    client.denials.clear();
  }
  client.last_seen = wall;
  switch (outcome) {
    case ClientOutcome::allowed:
      ++client.allowed;
      break;
    case ClientOutcome::shadow_denied:
      ++client.shadow_denied;
      break;
    case ClientOutcome::denied:
      ++client.denied;
      add_denial(client.denials, wall);
      break;
  }
}

void LoopClients::record(const Answer& answer) {
  std::unique_lock<std::recursive_mutex> lock(mutex_, std::defer_lock);
  if (!held_) lock.lock();
  const Decisions& all = answer.verdict.all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Label& label = answer.labels[i];
    if (label.bucket().empty()) continue;  // blocked: no bucket
    const std::uint64_t hash = siphash13(key_, label.bucket());
    const ClientOutcome outcome = all[i].allowed() ? ClientOutcome::allowed
                                  : label.shadow   ? ClientOutcome::shadow_denied
                                                   : ClientOutcome::denied;
    requests_.count(hash, label, outcome, answer.now.wall);
    if (outcome == ClientOutcome::denied) denied_.count(hash, label, outcome, answer.now.wall);
    if (outcome == ClientOutcome::shadow_denied) shadow_denied_.count(hash, label, outcome, answer.now.wall);
  }
}

const LoopClients::Side& LoopClients::side(TopBy by) const noexcept {
  if (by == TopBy::requests) return requests_;
  return by == TopBy::denied ? denied_ : shadow_denied_;
}

std::vector<ClientCounters> LoopClients::kept(TopBy by, std::uint64_t& floor) const {
  const Side& side = this->side(by);
  std::vector<ClientCounters> all;
  const std::lock_guard lock(mutex_);
  floor = side.sketch.floor();
  all.reserve(side.sketch.size());
  for (std::uint32_t place = 0; place < side.sketch.size(); ++place) {
    const TopKeys::Estimate estimate = side.sketch.estimate(place);
    ClientCounters& client = all.emplace_back(side.clients[place]);
    client.count = estimate.count;
    client.error = estimate.error;
  }
  return all;
}

std::vector<ClientCounters> top_clients(const std::vector<const LoopClients*>& loops, TopBy by, std::size_t max) {
  // Start with the floors of all loops; for a loop that keeps the client, subtract its floor and add the client's
  // count.
  std::uint64_t floors = 0;
  std::unordered_map<std::string, ClientCounters> merged;
  std::unordered_map<std::string, std::uint64_t> kept_under;  // sum of the floors of the loops that keep this client
  for (const LoopClients* loop : loops) {
    std::uint64_t floor = 0;
    for (ClientCounters& client : loop->kept(by, floor)) {
      kept_under[client.bucket] += floor;
      const auto [found, fresh] = merged.try_emplace(client.bucket, std::move(client));
      if (!fresh) join(found->second, client);  // `client` was not moved from: nothing was inserted
    }
    floors += floor;
  }
  std::vector<ClientCounters> all;
  all.reserve(merged.size());
  for (auto& [bucket, client] : merged) {
    const std::uint64_t unseen = floors - kept_under[bucket];
    client.count += unseen;
    client.error += unseen;
    all.push_back(std::move(client));
  }
  const auto heavier = [](const ClientCounters& a, const ClientCounters& b) {
    if (a.count != b.count) return a.count > b.count;
    return a.error != b.error ? a.error < b.error : a.bucket < b.bucket;
  };
  std::ranges::sort(all, heavier);
  if (all.size() > max) all.resize(max);
  return all;
}

std::unordered_map<std::string, ClientCounters> tracked_clients(const std::vector<const LoopClients*>& loops) {
  std::unordered_map<std::string, ClientCounters> all;
  for (const LoopClients* loop : loops) {
    // The sketches of one loop count the same requests, so use only the first one that keeps a client.
    std::unordered_map<std::string, ClientCounters> own;
    for (const TopBy by : {TopBy::requests, TopBy::denied, TopBy::shadow_denied}) {
      std::uint64_t floor = 0;
      for (ClientCounters& client : loop->kept(by, floor)) own.try_emplace(client.bucket, std::move(client));
    }
    for (auto& [bucket, client] : own) {
      const auto [found, fresh] = all.try_emplace(bucket, client);
      if (!fresh) join(found->second, client);
    }
  }
  return all;
}

}  // namespace weir
