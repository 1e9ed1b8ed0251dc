// Detects changes to a set of files: written, replaced by a rename, created, removed, or reached through a symbolic
// link that now points elsewhere (how Kubernetes swaps a ConfigMap). inotify reports any event in a directory on the
// path to a file; comparing the files then shows whether one of them changed.
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

// Identifies one version of a file. All zero means that the file does not exist.
struct FileVersion {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t bytes = 0;
  std::int64_t modified_ns = 0;

  static FileVersion at(const std::string& path) noexcept;
  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

struct SeenFile {
  std::string path;
  FileVersion version;  // before it was read
};

class WatchedFiles {
 public:
  // Fails if the kernel provides no inotify descriptor.
  static Result<std::unique_ptr<WatchedFiles>> make();

  // Becomes readable when changed() should be called.
  int fd() const noexcept { return inotify_.fd(); }

  // Replaces the set of watched files. Call changed() once afterwards: a file may have changed since it was read.
  void watch(std::vector<SeenFile> files);
  // Returns whether any file differs from its recorded version.
  bool changed();

  // Returns every directory in which a rename would change what the path resolves to, through all symbolic links.
  static std::set<std::string> directories_to(const std::string& path);

 private:
  explicit WatchedFiles(Socket inotify) : inotify_(std::move(inotify)) {}

  Socket inotify_;
  std::vector<SeenFile> files_;
  std::vector<int> watches_;
};

}  // namespace weir
