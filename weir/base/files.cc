#include "weir/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "weir/base/bounds.h"

namespace weir {

bool is_same_file(int fd, const std::string& path) {
  struct stat open_one {};
  struct stat named_one {};
  return fstat(fd, &open_one) == 0 && stat(path.c_str(), &named_one) == 0 && open_one.st_dev == named_one.st_dev &&
         open_one.st_ino == named_one.st_ino;
}

Error system_error(const std::string& path, const char* verb) {
  const int error = errno;
  if (error == ELOOP) return Error{Fault::invalid, path + ": is a symbolic link; name the file itself"};
  return Error{Fault::unavailable, path + ": cannot " + verb + " it: " + std::strerror(error)};
}

Result<std::string> keep_aside(const std::string& path) {
  for (int n = 1; n <= bounds::damaged_files_max; ++n) {
    const std::string aside = path + ".damaged-" + std::to_string(n);
    if (n == bounds::damaged_files_max) (void)unlink(aside.c_str());
    if (link(path.c_str(), aside.c_str()) == 0) return aside;
    if (errno == EEXIST) continue;
    // A file system without hard links: rename instead, which leaves the path without a file for a moment.
    if (access(aside.c_str(), F_OK) == 0) continue;
    if (rename(path.c_str(), aside.c_str()) == 0) return aside;
    break;
  }
  return system_error(path, "set aside");
}

Result<void> sync_directory(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return system_error(directory, "open");
  const bool synced = fsync(fd) == 0 || errno == EINVAL;  // some file systems have nothing to sync
  const Error error = synced ? Error{Fault::internal, {}} : system_error(directory, "sync");
  close(fd);
  if (!synced) return error;
  return {};
}

}  // namespace weir
