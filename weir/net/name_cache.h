// Caches resolved names for a Resolver. A name is looked up again after 5 s; if that fails, the old addresses stay.
// Every answer starts at the next address, so that connections spread over all of them.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/net/resolve.h"

namespace weir {

class NameCache {
 public:
  // The clock must outlive the cache.
  explicit NameCache(const Clock& clock, Resolver::Function look_up_now = look_up)
      : clock_(clock), look_up_(std::move(look_up_now)) {}

  // Blocks while it looks up.
  Result<std::vector<Address>> find(const Target& target);

 private:
  struct Known {
    std::vector<Address> addresses;
    Time since{};
    std::size_t next = 0;
  };
  static std::vector<Address> rotated(Known& known);

  const Clock& clock_;
  Resolver::Function look_up_;
  std::mutex mutex_;
  std::map<std::string, Known> names_;  // by Target::print()
};

}  // namespace weir
