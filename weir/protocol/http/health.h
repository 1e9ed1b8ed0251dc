// The state that the health probes report.
#pragma once

#include <atomic>
#include <functional>

namespace weir {

// Written by the owner, read by every loop.
struct Health {
  std::atomic<bool> started{false};
  std::atomic<bool> ready{false};
  // Returns whether the store is up, if it is a separate process: then /readyz?deep=true asks it too. Set before the
  // loops run.
  std::function<bool()> store_up;
};

}  // namespace weir
