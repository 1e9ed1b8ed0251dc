// What the measurements ask of the machine.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "weir/base/time.h"
#include "weir/core/decision.h"
#include "weir/store/memory/table.h"

namespace weir::bench {

// "AMD EPYC, 2 cores, Linux 6.1, GNU 12.2.0, 2024-01-31".
std::string machine_line();

// Of this process, from /proc/self/statm.
std::size_t resident_bytes();

Duration wall_time() noexcept;
Duration thread_cpu_time() noexcept;

// The decision is complete in memory here: no part of making it can be left out because nobody looks.
inline void keep(const Decision& decision) noexcept {
  asm volatile("" : : "r"(&decision) : "memory");
}

// A thread that only waits. While there is none but the caller, the C library's mutexes skip their atomic operations,
// and no program that needs a mutex would see such numbers.
class Bystander {
 public:
  Bystander() : thread_([this] { leave_.acquire(); }) {}
  ~Bystander() {
    leave_.release();
    thread_.join();
  }
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;

 private:
  std::binary_semaphore leave_{0};
  std::thread thread_;
};

// Runs `measure` in a process of its own and returns its numbers; none if it died. What it allocated is gone after.
std::vector<double> run_apart(const std::function<std::vector<double>()>& measure);

// What a server's housekeeping thread does, until told to stop and then until there is nothing left to do.
void maintain_until(Table& table, const std::atomic<bool>& stop);

// ns per access of one dependent random line in that many bytes of 2 MiB pages: each address is what the last load
// brought.
double dependent_line_ns(std::size_t bytes);

// On stderr if that is a terminal.
void progress(const std::string& what);

}  // namespace weir::bench
