// Where one server keeps adjustments and entries of the access lists between restarts: a file (known_file.h), or
// nowhere. Where several servers keep them together is known_share.h.
#pragma once

#include <vector>

#include "weir/base/result.h"
#include "weir/known/known.h"

namespace weir {

struct Kept {
  std::vector<Adjustment> adjustments;
  std::vector<AccessEntry> entries;

  friend bool operator==(const Kept&, const Kept&) = default;
};

class KnownArchive {
 public:
  virtual ~KnownArchive() = default;
  // What was saved last; nothing if nothing ever was.
  virtual Result<Kept> load() = 0;
  // All or nothing: after an error load() still gives what was there before.
  virtual Result<void> save(const Kept& kept) = 0;
};

}  // namespace weir
