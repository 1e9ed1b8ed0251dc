// A thread for what takes longer than a loop may wait: reading a configuration with a million overrides takes a second,
// and a change of the access lists waits for the disk.
// One task after another, in the order given.
//
// Thread safety: all of it. The thread starts with the first task and ends with the object, after the task it is
// at.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace weir::admin {

class BackgroundTasks {
 public:
  BackgroundTasks() = default;
  ~BackgroundTasks();
  BackgroundTasks(const BackgroundTasks&) = delete;
  BackgroundTasks& operator=(const BackgroundTasks&) = delete;

  // False: bounds::background_tasks_max wait already.
  bool run(std::function<void()> task);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace weir::admin
