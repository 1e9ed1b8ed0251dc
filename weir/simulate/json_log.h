// JSON lines. Members are found by their usual names, or as --field says. Weir's own access log is
//   {"time":"2026-11-18T05:26:32.123456Z","client":"203.0.113.9","method":"GET","host":"example.com",
//    "path":"/signin",…,"route":"signin","decision":"allowed","limits":[{"limit":"per-ip","id":"203.0.113.9"},…]}
// whose `limits` have the ids of keys that no log may hold: hashed, or handles.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/simulate/log_line.h"
#include "weir/wire/json.h"

namespace weir::simulate {

class JsonLog final : public LogReader {
 public:
  explicit JsonLog(const ReaderOptions& options);
  Result<void> read(std::string_view line, LogLine& out) override;

 private:
  struct Source {
    std::vector<std::string> members;  // the first that a line has counts
    std::string cookie;                // of a field that is one cookie: its name
  };

  Result<void> read_time(JsonValue line, LogLine& out) const;
  Result<void> read_counted(JsonValue line, LogLine& out) const;

  Zone zone_;
  Source time_;
  std::vector<Source> sources_;  // by field
  JsonReader json_;
  std::vector<std::string> cookies_;  // by field: "name=value"
};

}  // namespace weir::simulate
