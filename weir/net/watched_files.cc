#include "weir/net/watched_files.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "weir/base/bounds.h"

namespace weir {

namespace fs = std::filesystem;

FileVersion FileVersion::at(const std::string& path) noexcept {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, status.st_size,
          std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

Result<std::unique_ptr<WatchedFiles>> WatchedFiles::make() {
  Socket inotify(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify) {
    return Error{Fault::unavailable, "cannot watch files: " + std::generic_category().message(errno)};
  }
  return std::unique_ptr<WatchedFiles>(new WatchedFiles(std::move(inotify)));
}

std::set<std::string> WatchedFiles::directories_to(const std::string& path) {
  std::set<std::string> directories;
  std::error_code error;
  fs::path rest = fs::absolute(path, error);
  if (error) return directories;
  // Each iteration follows the first symbolic link on the path.
  for (int links = 0; links <= bounds::symlinks_max; ++links) {
    fs::path walked;
    fs::path next;
    for (auto part = rest.begin(); part != rest.end(); ++part) {
      const fs::path here = walked / *part;
      if (fs::is_symlink(here, error)) {
        directories.insert(walked.string());
        next = walked / fs::read_symlink(here, error);
        for (++part; part != rest.end(); ++part) next /= *part;
        break;
      }
      walked = here;
    }
    if (next.empty()) {
      directories.insert(rest.parent_path().string());
      return directories;
    }
    rest = next.lexically_normal();
  }
  return directories;
}

void WatchedFiles::watch(std::vector<SeenFile> files) {
  for (const int watch : std::exchange(watches_, {})) (void)inotify_rm_watch(inotify_.fd(), watch);
  files_ = std::move(files);
  std::set<std::string> directories;
  for (const SeenFile& file : files_) directories.merge(directories_to(file.path));
  constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR;
  for (const std::string& directory : directories) {
    const int watch = inotify_add_watch(inotify_.fd(), directory.c_str(), kEvents);
    if (watch >= 0) watches_.push_back(watch);  // fails only if the directory does not exist, so neither does the file
  }
}

bool WatchedFiles::changed() {
  // The events themselves do not matter: the files are compared below.
  alignas(inotify_event) std::array<char, 4096> events;
  while (read(inotify_.fd(), events.data(), events.size()) > 0) {
  }
  for (const SeenFile& file : files_) {
    if (FileVersion::at(file.path) != file.version) return true;
  }
  return false;
}

}  // namespace weir
