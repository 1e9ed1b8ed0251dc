// The report of a replay as tables for a terminal, and as rows for a spreadsheet.
#pragma once

#include "weir/cli/output.h"
#include "weir/simulate/report.h"

namespace weir::cli {

void print_tables(const simulate::Report& report, Output& out);
// A row per limit.
void print_csv(const simulate::Report& report, Output& out);

}  // namespace weir::cli
