// Runs tasks that would block a loop too long: reading a configuration with a million overrides takes a second, and a
// change of the access lists waits for the disk. Tasks run one at a time, in order.
//
// Thread-safe. The thread starts with the first task. The destructor waits for the running task.
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

  // Queues a task. Returns false if bounds::background_tasks_max are already waiting.
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
