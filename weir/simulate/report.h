// The results of a replay of access logs, as plain values. report_json.h, report_html.h and the command print them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/time.h"
#include "weir/core/limit.h"
#include "weir/simulate/advice.h"
#include "weir/simulate/client_table.h"
#include "weir/simulate/needs.h"

namespace weir::simulate {

// Allowed and denied over time, in at most bounds::log_plot_columns columns of equal width.
class Timeline {
 public:
  struct Column {
    std::uint64_t allowed = 0;
    std::uint64_t denied = 0;
  };

  void add(Wall time, bool allowed);

  bool empty() const noexcept { return columns_.empty(); }
  Wall start() const noexcept { return start_; }
  Duration width() const noexcept { return width_; }  // of a column
  const std::vector<Column>& columns() const noexcept { return columns_; }

 private:
  void halve();

  Wall start_{};
  Wall end_{};  // of the last column
  Duration width_ = std::chrono::seconds{1};
  std::vector<Column> columns_;
};

// A client of one limit that was denied.
struct HitClient {
  std::string limit;
  std::string id;          // as operators see it
  std::string identifier;  // "ip:203.0.113.9"
  ClientCounts counts;
  Wall first_denied;
  Wall last_denied;
};

struct LimitReport {
  std::string name;
  std::string key;   // "ip", "header:x-tenant-id + path:1"
  std::string mode;  // enforce, shadow, off
  std::optional<Limit> numbers;
  bool judged = true;  // false: the log lacks its key
  std::uint64_t allowed = 0;
  std::uint64_t denied = 0;
  std::uint64_t shadow_denied = 0;
  std::uint64_t clients = 0;
  std::uint64_t clients_denied = 0;
  ClientTable::Rest rest;  // clients that lost their place in the table
  std::optional<Wall> first_denied;
  std::optional<Wall> last_denied;
  std::vector<HitClient> hit;  // the most often denied first
  Timeline timeline;
  Advice advice;
};

struct RouteReport {
  std::string name;
  std::uint64_t allowed = 0;
  std::uint64_t denied = 0;
};

struct PolicyReport {
  std::string name;  // of its file
  std::uint64_t requests = 0;
  std::uint64_t allowed = 0;
  std::uint64_t denied = 0;
  std::uint64_t unjudged = 0;      // the log lacks what decides them
  std::uint64_t refused = 0;       // answered 400
  std::uint64_t allow_listed = 0;  // of the allowed
  std::uint64_t deny_listed = 0;   // of the denied; includes automatic blocks
  std::uint64_t blocks = 0;        // automatic blocks that began
  std::uint64_t forgotten = 0;     // buckets dropped before they were full again
  std::vector<LimitReport> limits;
  std::vector<RouteReport> routes;
  std::vector<Lack> lacks;
  Timeline timeline;
};

struct LogReport {
  struct Malformed {
    std::string file;
    std::uint64_t line = 0;
    std::string reason;
  };
  std::vector<std::pair<std::string, std::string>> files;  // name and format
  std::uint64_t lines = 0;                                 // not counting empty ones
  std::uint64_t malformed = 0;
  std::uint64_t late = 0;
  std::uint64_t hurried = 0;
  std::optional<Wall> first;
  std::optional<Wall> last;
  std::vector<Malformed> shown;

  std::uint64_t skipped() const noexcept { return malformed + late; }
};

// Compares two policies over the same log. Clients are matched by identifier.
struct Comparison {
  PolicyReport other;
  std::uint64_t newly_denied_clients = 0;
  std::uint64_t spared_clients = 0;
  std::vector<HitClient> newly_denied;  // denied under the other policy only
  std::vector<HitClient> spared;        // denied under the first policy only
};

struct Report {
  LogReport log;
  PolicyReport policy;
  std::optional<Comparison> comparison;
  double tolerated_percent = 0;
};

}  // namespace weir::simulate
