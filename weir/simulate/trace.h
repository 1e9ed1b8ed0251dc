// A trace is a history to replay: one JSON object per line, each with its own time. In: a line. Out: the query.
//   {"t": 0.005, "limit": "per-ip", "id": "203.0.113.9", "cost": 1, "op": "spend"}
//   {"t": 0.005, "charges": [{"limit": "per-ip", "id": "203.0.113.9"}, …], "charge": "together"}
// Also writes the answer to a line, as a line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/core/query.h"
#include "weir/simulate/replay.h"
#include "weir/wire/json.h"

namespace weir::simulate {

// The query of one line. Views point into the TraceReader and are valid until it reads the next line.
struct TraceLine {
  std::optional<Duration> t;  // since 1970 in UTC; set whenever it can be read, even if the rest of the line cannot
  std::vector<NamedCharge> charges;
  Mode mode = Mode::spend;
  Order order = Order::together;

  Query query() const noexcept;
  // Both clocks read t. REQUIRES: t.
  Now now() const noexcept { return {Time{*t}, Wall{*t}}; }
};

// Use it on one thread; it reuses its memory from line to line.
class TraceReader {
 public:
  // Strict: an unknown key, a wrong type or a time finer than a nanosecond is an Error that names the field and the
  // rule. Clears `out` first.
  Result<void> read(std::string_view line, TraceLine& out);

 private:
  JsonReader json_;
};

// Appends {"t","limit","id","allowed","remaining","retry_after","reset_after","tat"} and a newline. Seconds are exact;
// -1 means never, or no bound.
void write_answer(Duration t, const Answer& answer, std::string& out);

// Appends {"t","error"} and a newline.
void write_error(std::optional<Duration> t, std::string_view sentence, std::string& out);

}  // namespace weir::simulate
