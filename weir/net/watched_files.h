// Tells when one of a set of files changed: written, replaced by a rename, created, removed, or reached through a
// symbolic link that now points elsewhere (how Kubernetes swaps a ConfigMap). The kernel wakes us when anything happens
// in a directory on the way to a file; whether it was one of ours is seen by looking at the files.
//
// Thread safety: none.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "weir/base/result.h"
#include "weir/net/socket.h"

namespace weir {

// What tells one version of a file from the next. All zero: it is not there.
struct FileLook {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t bytes = 0;
  std::int64_t modified_ns = 0;

  static FileLook at(const std::string& path) noexcept;
  friend bool operator==(const FileLook&, const FileLook&) = default;
};

struct SeenFile {
  std::string path;
  FileLook look;  // as it was before it was read
};

class WatchedFiles {
 public:
  // An Error where the kernel gives no inotify descriptor.
  static Result<std::unique_ptr<WatchedFiles>> make();

  // Readable: call changed().
  int fd() const noexcept { return inotify_.fd(); }

  // Watches these instead of those before. Ask changed() once afterwards: a file may have changed since it was read.
  void watch(std::vector<SeenFile> files);
  // Whether any of them looks different from what was seen.
  bool changed();

  // Every directory in which a rename would change what the path leads to, through all symbolic links.
  static std::set<std::string> directories_to(const std::string& path);

 private:
  explicit WatchedFiles(Socket inotify) : inotify_(std::move(inotify)) {}

  Socket inotify_;
  std::vector<SeenFile> files_;
  std::vector<int> watches_;
};

}  // namespace weir
