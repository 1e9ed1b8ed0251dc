// The forms of `weir simulate`: replay a trace, replay access logs, or generate a log.
#pragma once

#include "weir/cli/command.h"
#include "weir/cli/output.h"

namespace weir::cli {

Exit replay_trace(const Arguments& arguments, Console& console);
Exit replay_logs(const Arguments& arguments, Console& console);
Exit generate_log(const Arguments& arguments, Console& console);

}  // namespace weir::cli
