// What `weir simulate` does, by what it is given.
#pragma once

#include "weir/cli/command.h"
#include "weir/cli/output.h"

namespace weir::cli {

Exit replay_trace(const Arguments& arguments, Console& console);
Exit replay_logs(const Arguments& arguments, Console& console);
Exit generate_log(const Arguments& arguments, Console& console);

}  // namespace weir::cli
