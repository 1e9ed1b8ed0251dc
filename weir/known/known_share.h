// Where several servers keep together what they know: adjustments, and entries of the access lists with automatic
// blocks among them, as texts by name (known_line.h). A change through one of them is told to the others, which hear of
// it a little later: KnownKeeper::apply_shared().
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
  using Texts = std::map<std::string, std::string>;  // lines by their names
  struct Ended {
    std::string name;
    Wall expires;
  };

  virtual ~KnownShare() = default;

  // From any thread; both return at once. `done` is called once, in a thread of the share's, with how many of them
  // there were. Errors: `unavailable`, nothing was changed; `timeout`, nobody knows.
  using Done = std::function<void(const Result<std::size_t>& count)>;
  virtual void put(Part part, Texts texts, Done done) = 0;
  virtual void remove(Part part, std::vector<std::string> names, Done done) = 0;
};

}  // namespace weir
