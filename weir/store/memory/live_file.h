// The file a table lives in: opened, locked, replaced whole, and set aside when it cannot be used. The path always
// names a file that one process has locked, so that no second one slips in while it is being replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/store/memory/region.h"

namespace weir {

class LiveFile {
 public:
  LiveFile() = default;
  // Opens the file, or makes an empty one that only its owner may read, and locks it for this process.
  static Result<LiveFile> lock(const std::string& path);
  // A new, empty, locked file that takes the path when install() is called and disappears if it is not.
  static Result<LiveFile> replacement(const std::string& path);

  LiveFile(LiveFile&& other) noexcept;
  LiveFile& operator=(LiveFile&& other) noexcept;
  ~LiveFile();

  // Gives a replacement its path, in place of what was there.
  Result<void> install();

  bool is_open() const noexcept { return fd_ >= 0; }
  int fd() const noexcept { return fd_; }
  const std::string& path() const noexcept { return path_; }
  Result<std::size_t> bytes() const;
  // What a seal must be (layout.h): of the whole content, less the seal itself. Of a region that was just mapped from
  // this file nothing is copied.
  Result<std::uint64_t> checksum(const Region* mapped = nullptr) const;

 private:
  std::string_view mapped_data(const Region& region, std::size_t from) const noexcept;

  std::string path_;
  std::string temporary_;  // where a replacement is until it is installed
  int fd_ = -1;
};

}  // namespace weir
