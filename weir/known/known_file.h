// Adjustments and access entries in a file: one line each, written beside and renamed, so that the path names a whole
// file or none. Meant to be read by people too, but not written by them: the last line holds a checksum.
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

std::string print_known(const Kept& kept);

// Strict: what print_known() would not have written, or not all of it, is an error whose detail completes "it is
// refused, because".
Result<Kept> parse_known(std::string_view text);

// The caller holds the lock of the state (store/memory/state_lock.h): one process at a time writes here.
// Thread safety: none; its KnownKeeper calls it one at a time.
class KnownFile final : public KnownArchive {
 public:
  explicit KnownFile(std::string path, std::function<void(std::string_view)> log = {});

  // A damaged file is set aside with a sentence to the log, and then nothing is known. Errors: the system would not
  // give the file.
  Result<Kept> load() override;
  // Has reached the disk when it returns.
  Result<void> save(const Kept& kept) override;

 private:
  std::string path_;
  std::function<void(std::string_view)> log_;
};

}  // namespace weir
