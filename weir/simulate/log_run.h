// A whole replay of access logs: files in, a Report out. Orders the lines of all files by time and replays each request
// against one or two policies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/policy/policy.h"
#include "weir/simulate/log_input.h"
#include "weir/simulate/log_order.h"
#include "weir/simulate/log_replay.h"
#include "weir/simulate/report.h"

namespace weir::simulate {

struct NamedPolicy {
  std::string name;
  std::shared_ptr<const Policy> policy;
};

struct LogRunOptions {
  Duration window = std::chrono::seconds{60};
  Spread spread = Spread::even;
  ReplayOptions replay;
};

class LogRun {
 public:
  // With two policies, compares the second with the first. REQUIRES: one or two policies, at least one input.
  LogRun(std::vector<NamedPolicy> policies, std::vector<std::unique_ptr<LogInput>> inputs,
         const LogRunOptions& options);

  // Returns one sentence for each thing that cannot be judged. Available before the replay.
  std::vector<std::string> doubts() const;
  // Calls `progress` from time to time with the lines and bytes read so far, and once more before the search for
  // advice. Fails if a file cannot be read to its end.
  Result<Report> run(const std::function<void(std::uint64_t lines, std::size_t bytes)>& progress);

  std::size_t bytes_all() const noexcept;  // of all files; 0: unknown

 private:
  Result<void> read(LogInput& input, std::span<const std::uint8_t> fields);
  void pack(const LogLine& line, std::span<const std::uint8_t> fields);
  void ask(Wall time, std::string_view packed);
  void compare(Report& report, LogReplay::HitClients& before, LogReplay::HitClients& after) const;

  std::vector<std::unique_ptr<LogInput>> inputs_;
  LogRunOptions options_;
  std::vector<std::string> names_;  // of packed fields
  std::vector<std::unique_ptr<LogReplay>> replays_;
  LogOrder order_;
  std::string packed_;
  std::vector<Attribute> attributes_;
  std::vector<NamedCharge> counted_;
  Wall last_{};
  LogReport log_;
  std::function<void(std::uint64_t, std::size_t)> progress_;
  std::size_t bytes_before_ = 0;  // of files already read
};

}  // namespace weir::simulate
