// Which client a command means: --ip, --apikey, or --limit and --id.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/cli/command.h"

namespace weir::cli {

struct ClientArguments {
  std::string ip;
  std::string apikey;
  std::string limit;
  std::string id;

  bool any() const noexcept { return !ip.empty() || !apikey.empty() || !limit.empty() || !id.empty(); }
  // "ip" or "apikey": it means every limit with that key. Empty: limit and id say which.
  std::string_view source() const noexcept { return !ip.empty() ? "ip" : !apikey.empty() ? "apikey" : ""; }
  // What the id is within a limit.
  const std::string& id_within() const noexcept { return !ip.empty() ? ip : !apikey.empty() ? apikey : id; }
};

std::vector<Option> client_options();

// Prints an error and returns nothing unless exactly one client is named. `may_lack_limit`: --id alone is enough.
std::optional<ClientArguments> read_client(const Arguments& arguments, Console& console, bool may_lack_limit = false);

// Reads an option that is a whole number of at least 1. Prints an error and returns nothing if it is not.
std::optional<std::int64_t> read_count(const Arguments& arguments, std::string_view option, Console& console);
// The same for a duration of more than 0, as it was written.
bool is_duration(const Arguments& arguments, std::string_view option, Console& console);

}  // namespace weir::cli
