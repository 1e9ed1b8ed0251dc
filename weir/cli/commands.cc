#include "weir/cli/commands.h"

namespace weir::cli {

const std::string& Arguments::operator[](std::string_view name) const noexcept {
  static const std::string none;
  const auto found = values_.find(name);
  return found == values_.end() ? none : found->second;
}

const std::vector<Command>& commands() {
  static const std::vector<Command> table{
      serve(), config_check(), config_show(), config_diff(), config_schema(), simulate(), completion(), version(),
  };
  return table;
}

Option output_option() {
  return {"--output", "FORMAT", "how the report is written", false, {"table", "json", "csv"}};
}

}  // namespace weir::cli
