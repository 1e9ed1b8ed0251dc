// Generates an access log to try a policy on: people who open pages, programs that call an API at a steady pace,
// someone who guesses passwords, and a crawler that does not wait. The same seed generates the same log.
#pragma once

#include <cstdint>
#include <queue>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.h"
#include "weir/simulate/log_line.h"

namespace weir::simulate {

class Traffic {
 public:
  Traffic(LogFormat format, std::uint64_t seed, Wall start);

  // Appends the next line of the log.
  void write_line(std::string& out);

 private:
  struct Hit {
    Wall time;
    std::uint64_t order;  // breaks ties between hits at the same time
    std::uint32_t client;
    std::uint16_t path;
    bool operator>(const Hit& other) const noexcept {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  double uniform() { return std::uniform_real_distribution<>(0, 1)(random_); }
  void add(Wall time, std::uint32_t client, std::size_t path);
  void begin_visit();
  void write(const Hit& hit, std::string& out);

  LogFormat format_;
  std::mt19937_64 random_;
  Wall start_;
  Wall next_visit_;
  std::uint64_t order_ = 0;
  std::priority_queue<Hit, std::vector<Hit>, std::greater<>> hits_;
};

}  // namespace weir::simulate
