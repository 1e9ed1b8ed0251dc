// The screen of `weir top` as lines. In: two answers of the admin API per poll. Out: rows, and rates since the last
// poll.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/time.h"
#include "weir/cli/answer.h"
#include "weir/cli/output.h"
#include "weir/cli/table.h"

namespace weir::cli {

class TopView {
 public:
  // Rows that are not clients: the head of the screen and the keys.
  static constexpr std::size_t kOtherRows = 6;

  // Takes answers of GET /ratelimit/top and GET /ratelimit/stats; rates are since the last call.
  void take(const Answer& top, const Answer& stats, Time now, Wall wall);
  // Call it when `by` changes: the last counts are then of something else.
  void forget_rates() { last_.clear(); }

  // The screen, one string per row, cut to its size. `painter` knows whether there are colors.
  std::vector<std::string> lines(ScreenSize size, std::string_view url, std::string_view every, bool paused,
                                 const Output& painter) const;

 private:
  struct Row {
    std::string limit;
    std::string id;
    std::string count;
    std::string per_second;  // empty after the first poll
    std::string error;
  };
  struct Totals {
    std::uint64_t requests = 0;
    std::uint64_t denied = 0;
  };

  std::string totals_line() const;

  std::string by_;
  std::vector<Row> rows_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> last_;  // counts by limit and id
  Totals totals_;
  std::string requests_per_second_;
  std::string denied_per_second_;
  std::string uptime_;
  std::string store_;
  bool store_down_ = false;
  Time looked_{};
  std::string clock_;
};

// The columns of `top`, by what it sorts: LIMIT, ID, REQUESTS, …
Table top_table(std::string_view by, bool with_rates);

}  // namespace weir::cli
