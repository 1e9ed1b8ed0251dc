#include "weir/config/schema.h"

#include "weir/cli/commands.h"

namespace weir::cli {

Command config_schema() {
  return {"config schema",
          "print the JSON schema of the configuration",
          "The schema (draft 2020-12) comes from the table the parser itself uses. Editors with a YAML\n"
          "language server check and complete with it.",
          {},
          "# For an editor; then begin the file with\n"
          "#   # yaml-language-server: $schema=weir.schema.json\n"
          "weir config schema > weir.schema.json",
          [](const Arguments&, Console& console) {
            console.out.write(config::schema());
            return kOk;
          }};
}

}  // namespace weir::cli
