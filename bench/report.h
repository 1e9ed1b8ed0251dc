// Everything measured in one run, what it should have been, and both ways of printing it.
#pragma once

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "bench/decisions.h"
#include "bench/footprint.h"
#include "bench/growth.h"

namespace weir::bench {

struct Report {
  std::string machine;
  std::vector<Row> rows;
  std::map<std::uint64_t, double> floor_ns;  // by number of keys
  std::vector<HotRow> hot;
  Costs costs{};
  std::vector<Footprint> footprints;
  std::vector<Growth> growths;
};

struct Goal {
  std::string what;
  std::string unit;
  double measured;
  double bound;
  bool at_most;  // else at least

  bool met() const { return at_most ? measured <= bound : measured >= bound; }
};

// Those that this run measured.
std::vector<Goal> goals_of(const Report& report);

void print_markdown(const Report& report, std::ostream& out);
void print_json(const Report& report, std::ostream& out);

}  // namespace weir::bench
