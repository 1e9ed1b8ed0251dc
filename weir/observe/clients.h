// Who asks most, who is denied most and who would be by limits in shadow mode, with counters for each client: three
// sketches per loop (top_keys.h), merged by readers. Bounded: a client that no sketch keeps has no counters, and one
// that enters a sketch is counted from then on.
//
// Thread safety: one loop records; any thread may look.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/siphash.h"
#include "weir/base/time.h"
#include "weir/core/answer.h"
#include "weir/observe/top_keys.h"

namespace weir {

// What is known of one client of one limit since it came into a sketch.
struct ClientCounters {
  std::string bucket;  // its key in the store
  std::string limit;   // empty: a bucket of a caller's own
  std::string id;
  bool secret = false;  // the id holds an API key
  std::uint64_t allowed = 0;
  std::uint64_t denied = 0;
  std::uint64_t shadow_denied = 0;
  Wall first_seen{};
  Wall last_seen{};
  std::vector<Wall> denials;  // the last ones, of enforced limits, oldest first; at most bounds::denials_kept

  std::uint64_t count = 0;  // of what the sketch counts: never too low
  std::uint64_t error = 0;  // by how much it may be too high
};

enum class TopBy : unsigned char { requests, denied, shadow_denied };

// What became of one client's request at one limit.
enum class ClientOutcome : unsigned char { allowed, denied, shadow_denied };

class LoopClients {
 public:
  explicit LoopClients(std::size_t places = bounds::top_keys_max);

  // Every decision of a spend.
  void record(const Answer& answer);

  // While it lives, record() need not lock each time: for the answers of one batch. Code that handles such an
  // answer must not read other loops' clients: two loops could deadlock.
  class Batch {
   public:
    explicit Batch(LoopClients& clients) : clients_(clients), lock_(clients.mutex_) { clients_.held_ = true; }
    ~Batch() { clients_.held_ = false; }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

   private:
    LoopClients& clients_;
    std::lock_guard<std::recursive_mutex> lock_;
  };

  // A copy of one sketch, in no order; `floor` is the most that a client outside of it can have been counted.
  std::vector<ClientCounters> kept(TopBy by, std::uint64_t& floor) const;

 private:
  // A sketch and what belongs to its places.
  struct Side {
    explicit Side(std::size_t places) : sketch(places), clients(places) {}
    void count(std::uint64_t hash, const Label& label, ClientOutcome outcome, Wall wall);

    TopKeys sketch;
    std::vector<ClientCounters> clients;
  };

  HashKey key_;
  mutable std::recursive_mutex mutex_;
  bool held_ = false;  // by the Batch of the loop's own thread, which alone looks at it
  const Side& side(TopBy by) const noexcept;

  Side requests_;
  Side denied_;
  Side shadow_denied_;
};

// The heaviest first, at most `max` of them. A client that one loop's sketch does not keep may have been counted there
// up to its floor: that is added to its count and to its error.
std::vector<ClientCounters> top_clients(const std::vector<const LoopClients*>& loops, TopBy by, std::size_t max);

// By bucket: the counters of every client that some sketch keeps, summed over the loops.
std::unordered_map<std::string, ClientCounters> tracked_clients(const std::vector<const LoopClients*>& loops);

}  // namespace weir
