// Where several servers share adjustments and access entries, including automatic blocks, as lines by name
// (known_line.h). A change through one server reaches the others a little later, through KnownKeeper::apply_shared().
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"

namespace weir {

class KnownShare {
 public:
  enum class Part : unsigned char { adjustments, entries };
  using Texts = std::map<std::string, std::string>;  // lines by name
  struct Expired {
    std::string name;
    Wall expires;
  };

  virtual ~KnownShare() = default;

  // Thread-safe; both return immediately. `done` is called once, on the share's thread, with the number of items
  // changed. Errors: `unavailable`, nothing was changed; `timeout`, it may have been.
  using Done = std::function<void(const Result<std::size_t>& count)>;
  virtual void put(Part part, Texts texts, Done done) = 0;
  virtual void remove(Part part, std::vector<std::string> names, Done done) = 0;
};

}  // namespace weir
