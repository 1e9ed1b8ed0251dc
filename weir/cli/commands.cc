#include "weir/cli/commands.h"

#include <algorithm>

namespace weir::cli {

const std::string& Arguments::operator[](std::string_view name) const noexcept {
  static const std::string none;
  const auto found = values_.find(name);
  return found == values_.end() ? none : found->second;
}

std::vector<std::string> Arguments::all(std::string_view name) const {
  const auto found = repeated_.find(name);
  return found == repeated_.end() ? std::vector<std::string>{} : found->second;
}

const std::vector<Command>& commands() {
  static const std::vector<Command> table{
      serve(),
      check(),
      throttle(),
      stats(),
      clients(),
      client(),
      top(),
      watch(),
      reset(),
      adjust(),
      access_add(),
      access_list(),
      access_remove(),
      external_forget(),
      config_check(),
      config_show(),
      config_diff(),
      config_schema(),
      config_reference(),
      config_import(),
      simulate(),
      completion(),
      man(),
      version(),
  };
  return table;
}

std::vector<std::string_view> command_groups() {
  std::vector<std::string_view> groups;
  for (const Command& command : commands()) {
    const std::size_t space = command.name.find(' ');
    if (space == std::string_view::npos) continue;
    const std::string_view group = command.name.substr(0, space);
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

Option flag_option(std::string_view name, std::string_view help) {
  return {name, "", help};
}

Option config_option(std::string_view help, bool required, bool bare) {
  return {"--config", "FILE", help, required, {}, false, "-c", bare};
}

Option output_option() {
  return {"--output", "FORMAT", "output format", false, {"table", "json", "csv"}};
}

Option set_option() {
  return {"--set", "PATH=VALUE", "override a value of the configuration; may be repeated", false, {}, true};
}

}  // namespace weir::cli
