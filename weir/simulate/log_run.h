// A whole replay of access logs: files in, a Report out. The lines of all files are put in order, and each request is
// asked of one policy, or of two.
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
  // Of two policies, the second is compared with the first. REQUIRES: one or two policies, at least one input.
  LogRun(std::vector<NamedPolicy> policies, std::vector<std::unique_ptr<LogInput>> inputs,
         const LogRunOptions& options);

  // What cannot be judged, one sentence each: known before the replay.
  std::vector<std::string> doubts() const;
  // `progress` is called now and then with the lines and bytes read so far, and a last time before the search for
  // advice. The Error: a file cannot be read to its end.
  Result<Report> run(const std::function<void(std::uint64_t lines, std::size_t bytes)>& progress);

  std::size_t bytes_all() const noexcept;  // of all files; 0: not known

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
