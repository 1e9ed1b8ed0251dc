// The clients with the most requests, the most denials, and the most denials by shadow limits, with counters for each:
// three sketches per loop (top_keys.h), merged by readers. Memory is bounded: only clients in a sketch have counters,
// which start when the client enters it.
//
// Thread safety: one loop records; any thread may read.
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

// Counters of one client of one limit since it entered a sketch.
struct ClientCounters {
  std::string bucket;  // its key in the store
  std::string limit;   // empty: a bucket with the caller's own numbers
  std::string id;
  bool secret = false;  // the id holds an API key
  std::uint64_t allowed = 0;
  std::uint64_t denied = 0;
  std::uint64_t shadow_denied = 0;
  Wall first_seen{};
  Wall last_seen{};
  std::vector<Wall> denials;  // the latest ones by enforced limits, oldest first; at most bounds::denials_kept

  std::uint64_t count = 0;  // what the sketch counts; never too low
  std::uint64_t error = 0;  // how much `count` may be too high
};

enum class TopBy : unsigned char { requests, denied, shadow_denied };

// The outcome of one client's request at one limit.
enum class ClientOutcome : unsigned char { allowed, denied, shadow_denied };

class LoopClients {
 public:
  explicit LoopClients(std::size_t places = bounds::top_keys_max);

  // Records every decision of a spend.
  void record(const Answer& answer);

  // Holds the lock for the answers of one batch, so that record() need not lock each time. While one exists, its thread
  // must not read other loops' clients: two loops could deadlock.
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

  // Returns a copy of one sketch, unordered. `floor` is the highest count that a client outside of it can have.
  std::vector<ClientCounters> kept(TopBy by, std::uint64_t& floor) const;

 private:
  // A sketch and the counters of its places.
  struct Side {
    explicit Side(std::size_t places) : sketch(places), clients(places) {}
    void count(std::uint64_t hash, const Label& label, ClientOutcome outcome, Wall wall);

    TopKeys sketch;
    std::vector<ClientCounters> clients;
  };

  HashKey key_;
  mutable std::recursive_mutex mutex_;
  bool held_ = false;  // by the loop's own Batch; only the loop's thread reads or writes it
  const Side& side(TopBy by) const noexcept;

  Side requests_;
  Side denied_;
  Side shadow_denied_;
};

// Returns at most `max` clients, heaviest first. If one loop's sketch does not keep a client, that loop may have
// counted it up to its floor, which is added to the client's count and error.
std::vector<ClientCounters> top_clients(const std::vector<const LoopClients*>& loops, TopBy by, std::size_t max);

// Returns the counters of every client that some sketch keeps, by bucket, summed over the loops.
std::unordered_map<std::string, ClientCounters> tracked_clients(const std::vector<const LoopClients*>& loops);

}  // namespace weir
