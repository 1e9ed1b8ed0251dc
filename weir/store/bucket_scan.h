// Iterates over the buckets of a store, for lists, counts and resetting everything. Separate from store.h because it is
// not on the request path and its duration grows with the number of buckets. So it runs in short steps.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/core/key.h"

namespace weir {

// The current state of one bucket. The view is valid during the call it is passed to.
struct StoredBucket {
  Key key;                        // the text is empty if the store does not keep it
  Duration backlog{};             // of a bucket: time until it is full; zero or less: it is full
  std::uint64_t quota_state = 0;  // of a quota (algorithm/calendar.h)
};

// A BucketScan belongs to one event loop.
class BucketScan {
 public:
  virtual ~BucketScan() = default;

  // What to read. For a remote store, keys are cheaper than states.
  enum class Look : unsigned char { keys, states };

  // Returns false to stop. Called before Done, possibly on another thread, for one bucket at a time.
  using Visit = std::function<bool(const StoredBucket&)>;
  // The result of one step. Done is called once: before the step returns if the state is in this process, otherwise
  // later on the same loop.
  struct Step {
    std::string cursor;          // where the next step continues; empty: nothing is left
    std::uint32_t millionths{};  // approximate share of all buckets before the cursor; 0: unknown
    std::uint64_t forgotten{};   // buckets forgotten by forget()
  };
  using Done = std::function<void(const Result<Step>&)>;

  // Visits some buckets, starting at `cursor`: empty, or the cursor from an earlier step. Stops when `visit` returns
  // false. A bucket that exists for the whole scan is always visited. The memory store visits a bucket twice only if it
  // was removed and created again. Redis may repeat a bucket while it rehashes, so callers that must not count twice
  // compare keys.
  // Errors: invalid (unknown cursor), or the store's own.
  virtual void visit(std::string_view cursor, Look look, Now now, const Visit& visit, const Done& done) = 0;

  // Forgets some buckets, starting at `cursor`.
  virtual void forget(std::string_view cursor, Now now, const Done& done) = 0;
};

}  // namespace weir
