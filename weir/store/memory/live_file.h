// The file that contains a table. It is opened, locked, replaced as a whole, and set aside if it cannot be used. The
// path always names a locked file, so that no other process can take it while it is being replaced.
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
  // Opens the file, or creates an empty one that only its owner may read, and locks it for this process.
  static Result<LiveFile> lock(const std::string& path);
  // Creates an empty, locked file. install() gives it the path; without install() it is deleted.
  static Result<LiveFile> replacement(const std::string& path);

  LiveFile(LiveFile&& other) noexcept;
  LiveFile& operator=(LiveFile&& other) noexcept;
  ~LiveFile();

  // Moves a replacement to its path, in place of the file there.
  Result<void> install();

  bool is_open() const noexcept { return fd_ >= 0; }
  int fd() const noexcept { return fd_; }
  const std::string& path() const noexcept { return path_; }
  Result<std::size_t> bytes() const;
  // Returns the checksum that the seal must have (layout.h): over the whole content except the seal itself. With a
  // region that was just mapped from this file, it copies nothing.
  Result<std::uint64_t> checksum(const Region* mapped = nullptr) const;

 private:
  std::string_view mapped_data(const Region& region, std::size_t from) const noexcept;

  std::string path_;
  std::string temporary_;  // path of a replacement until it is installed
  int fd_ = -1;
};

}  // namespace weir
