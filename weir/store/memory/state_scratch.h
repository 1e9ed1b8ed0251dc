// For tests of files: a temporary directory, on tmpfs if available, that is deleted at the end.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "weir/base/assert.h"
#include "weir/store/memory/state.h"

namespace weir {

class Scratch {
 public:
  Scratch() {
    std::string name =
        (access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/weir-XXXXXX";
    WEIR_ASSERT(mkdtemp(name.data()) != nullptr);
    directory_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_))
      names.insert(entry.path().filename().string());
    return names;
  }

 private:
  std::string directory_;
};

inline std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void spill(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline constexpr Wall kWall{std::chrono::sys_days{std::chrono::year{2026} / 11 / 15}};

// A machine whose clocks and boots the test controls.
struct Machine {
  Boot boot{"boot-1", std::chrono::seconds{1000}, kWall};

  Now now(const OpenState& state) const { return {Time{boot.uptime + state.boot_offset}, boot.wall}; }
  void pass(Duration time) {
    boot.uptime += time;
    boot.wall += time;
  }
  // After the reboot the wall clock has moved by `wall_passed`, which may be negative.
  void reboot(Duration wall_passed) {
    boot.id += "+";
    boot.uptime = std::chrono::seconds{3};
    boot.wall += wall_passed;
  }
};

}  // namespace weir
