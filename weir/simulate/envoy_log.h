// Envoy's default format (one line, broken here):
//   [2026-11-18T05:26:32.310Z] "GET /a HTTP/1.1" 200 - 0 154 2 1 "x-forwarded-for" "agent" "request-id" "host"
//   "upstream"
#pragma once

#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/simulate/log_line.h"

namespace weir::simulate {

// The format has no peer address. The last address of X-Forwarded-For is used: Envoy appends its peer there.
class EnvoyLog final : public LogReader {
 public:
  EnvoyLog();
  Result<void> read(std::string_view line, LogLine& out) override;

 private:
  std::string target_;
};

}  // namespace weir::simulate
