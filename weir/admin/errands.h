// A thread for what takes longer than a loop may wait: reading a configuration with a million overrides takes a second,
// and a change of the access lists waits for the disk.
// One errand after another, in the order given.
//
// Thread safety: all of it. The thread starts with the first errand and ends with the object, after the errand it is
// at.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace weir::admin {

class Errands {
 public:
  Errands() = default;
  ~Errands();
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  // False: bounds::errands_max wait already.
  bool run(std::function<void()> errand);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace weir::admin
