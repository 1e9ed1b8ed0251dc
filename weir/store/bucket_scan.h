// The buckets of a store, one after another: for lists, counts and a reset of everything. Apart from store.h, because
// it is not on the way of a request and takes as long as there are buckets. So it goes in steps, each of them short.
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
  Key key;                        // the text is empty where the store keeps none
  Duration backlog{};             // of a bucket: until it is full; not positive: it is
  std::uint64_t quota_state = 0;  // of a quota (algorithm/calendar.h)
};

// A BucketScan belongs to one event loop.
class BucketScan {
 public:
  virtual ~BucketScan() = default;

  // What to look for. A store elsewhere has keys for less than their states.
  enum class Look : unsigned char { keys, states };

  // False: that is enough. Called before Done, perhaps in another thread, one bucket after another.
  using Visit = std::function<bool(const StoredBucket&)>;
  // How far a step came. Called once: before the step returns if the state is in this process, later on the same loop
  // if it is not.
  struct Step {
    std::string cursor;          // where the next one goes on; empty: nothing is left
    std::uint32_t millionths{};  // of all buckets that lie before it, about; 0: not known
    std::uint64_t forgotten{};   // buckets, of forget()
  };
  using Done = std::function<void(const Result<Step>&)>;

  // Visits some buckets from `cursor` on, a text that an earlier step gave or an empty one, and none after a false. A
  // bucket that is there all along is seen. In memory none is seen twice unless it came anew; Redis may show one again
  // while it rebuilds its own table, so who must not count twice looks at the key.
  // Errors: invalid (no such cursor), or what the store says.
  virtual void visit(std::string_view cursor, Look look, Now now, const Visit& visit, const Done& done) = 0;

  // Forgets some buckets from `cursor` on.
  virtual void forget(std::string_view cursor, Now now, const Done& done) = 0;
};

}  // namespace weir
