// The rows of `clients` and `client`, from the admin API's JSON.
#pragma once

#include <string>
#include <vector>

#include "weir/base/time.h"
#include "weir/cli/answer.h"
#include "weir/cli/table.h"

namespace weir::cli {

// For people: what fits a line.
Table client_table();
std::vector<std::string> client_cells(const Answer& row, Wall now);

// For programs: every field of the API.
Table client_fields_table();
std::vector<std::string> client_fields(const Answer& row);

// One client for people, a line per fact.
void print_client(const Answer& client, Wall now, Output& out);

}  // namespace weir::cli
