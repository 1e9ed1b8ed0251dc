// Where one server saves adjustments and access entries across restarts: a file (known_file.h). Servers that share them
// use known_share.h.
#pragma once

#include <vector>

#include "weir/base/result.h"
#include "weir/known/known.h"

namespace weir {

struct SavedKnown {
  std::vector<Adjustment> adjustments;
  std::vector<AccessEntry> entries;

  friend bool operator==(const SavedKnown&, const SavedKnown&) = default;
};

class KnownArchive {
 public:
  virtual ~KnownArchive() = default;
  // Returns what was saved last; empty if nothing was.
  virtual Result<SavedKnown> load() = 0;
  // Atomic: after an error load() still returns what was saved before.
  virtual Result<void> save(const SavedKnown& saved) = 0;
};

}  // namespace weir
