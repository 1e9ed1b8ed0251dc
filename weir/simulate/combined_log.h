// nginx's `combined` and `main`, Apache's `common`, `combined` and `vhost_combined`, and Weir's `common`:
//   203.0.113.9 - user [18/Nov/2026:05:26:32 +0000] "GET /a?b HTTP/1.1" 200 612 "referer" "agent" "x-forwarded-for"
#pragma once

#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/simulate/log_line.h"
#include "weir/simulate/log_time.h"

namespace weir::simulate {

class CombinedLog final : public LogReader {
 public:
  CombinedLog();
  Result<void> read(std::string_view line, LogLine& out) override;

 private:
  ClfTime time_;
  std::string target_;
};

}  // namespace weir::simulate
