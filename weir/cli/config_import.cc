#include <string>
#include <variant>

#include "weir/base/bounds.h"
#include "weir/cli/commands.h"
#include "weir/config/import_edgequota.h"
#include "weir/config/secrets.h"

namespace weir::cli {
namespace {

Exit run_import(const Arguments& arguments, Console& console) {
  const std::string& name = arguments["FILE"];
  const Result<std::string> text = config::read_file({}, name, bounds::config_bytes_max);
  if (!text) {
    console.print_error(text.error().detail);
    return kFailed;
  }
  auto outcome = config::import_edgequota(*text, name);
  if (const auto* problems = std::get_if<config::Problems>(&outcome)) {
    console.err.write(config::text(*problems));
    return kUsage;
  }
  const auto& imported = std::get<config::Imported>(outcome);
  for (const std::string& note : imported.notes) console.err.write(note + "\n");
  console.out.write(imported.yaml);
  return kOk;
}

}  // namespace

Command config_import() {
  return {"config import",
          "translate another system's configuration",
          "Prints a Weir configuration that does what FILE does. Settings without a counterpart are listed\n"
          "on standard error. Check the result with `weir config check`.",
          {{"SYSTEM", "SYSTEM", "whose configuration it is", true, {"edgequota"}},
           {"FILE", "FILE", "the file to translate", true}},
          "# translate, then check the result\n"
          "weir config import edgequota edgequota.yaml > weir.yaml\n"
          "weir config check weir.yaml",
          run_import};
}

}  // namespace weir::cli
