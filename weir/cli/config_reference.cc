#include "weir/config/reference.h"

#include "weir/cli/commands.h"

namespace weir::cli {

Command config_reference() {
  return {"config reference",
          "print every option of the configuration",
          "A page in Markdown with the type, the default and the meaning of each option, and when a change\n"
          "takes effect. It comes from the table the parser itself uses.",
          {},
          "weir config reference | less",
          [](const Arguments&, Console& console) {
            console.out.write(config::reference());
            return kOk;
          }};
}

}  // namespace weir::cli
