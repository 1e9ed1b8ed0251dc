// JSON lines. Members are found by their usual names, or as --field says. Weir's own access log is
//   {"time":"2026-11-18T05:26:32.123456Z","client":"203.0.113.9","method":"GET","host":"example.com",
//    "path":"/signin",…,"route":"signin","decision":"allowed","limits":[{"limit":"per-ip","id":"203.0.113.9"},…]}
// Its `limits` show the ids of secret keys only as hashes or handles.
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
    std::vector<std::string> members;  // the first one that a line has is used
    std::string cookie;                // the cookie's name, if the field is one cookie
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
