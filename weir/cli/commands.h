// One function per command, one file per function.
#pragma once

#include "weir/cli/command.h"

namespace weir::cli {

Command serve();
Command check();
Command throttle();
Command stats();
Command clients();
Command client();
Command top();
Command watch();
Command reset();
Command adjust();
Command access_add();
Command access_list();
Command access_remove();
Command external_forget();
Command config_check();
Command config_show();
Command config_diff();
Command config_schema();
Command config_reference();
Command config_import();
Command simulate();
Command completion();
Command man();
Command version();

}  // namespace weir::cli
