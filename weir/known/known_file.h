// Adjustments and access entries in a file, one per line. Written to a temporary file and renamed, so that the path
// always names a complete file. People can read it but not edit it: the last line has a checksum.
//
//   weir known 1
//   adjust limit=orders id=7 burst=50 expires=1767225600000000000 by=token:4f2a
//   deny ip=203.0.113.0/24 reason=abuse%20of%20search expires=1798761600000000000 by=
//   end 2 0123456789abcdef
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/known/known_archive.h"

namespace weir {

std::string print_known(const SavedKnown& saved);

// Strict: fails for any text that print_known() would not write.
Result<SavedKnown> parse_known(std::string_view text);

// REQUIRES: the caller holds the state lock (store/memory/state_lock.h), so only one process writes. Thread safety:
// none; its KnownKeeper serializes the calls.
class KnownFile final : public KnownArchive {
 public:
  explicit KnownFile(std::string path, std::function<void(std::string_view)> log = {});

  // Moves a damaged file aside, logs it, and returns an empty value. Fails if the file cannot be read or moved.
  Result<SavedKnown> load() override;
  // Returns after the file has reached the disk.
  Result<void> save(const SavedKnown& saved) override;

 private:
  std::string path_;
  std::function<void(std::string_view)> log_;
};

}  // namespace weir
