// One function per command, one file per function.
#pragma once

#include "weir/cli/command.h"

namespace weir::cli {

Command serve();
Command check();
Command throttle();
Command stats();
Command config_check();
Command config_show();
Command config_diff();
Command config_schema();
Command config_import();
Command simulate();
Command completion();
Command man();
Command version();

}  // namespace weir::cli
