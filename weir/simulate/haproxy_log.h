// HAProxy's `option httplog`, with or without a syslog header (one line, broken here):
//   10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0
//   {1wt.eu|x}
//   {} "GET /index.html HTTP/1.1"
// Captured headers have no names in the log: `capture.1` is the first captured request header.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/simulate/log_line.h"
#include "weir/simulate/log_time.h"

namespace weir::simulate {

class HaproxyLog final : public LogReader {
 public:
  explicit HaproxyLog(const ReaderOptions& options);
  Result<void> read(std::string_view line, LogLine& out) override;

 private:
  ClfTime time_;
  std::vector<std::size_t> captures_;  // for each field after the fixed ones, which capture it is, from 0
  std::string target_;
};

}  // namespace weir::simulate
