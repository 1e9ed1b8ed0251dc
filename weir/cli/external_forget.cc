// `weir external forget`: makes the server ask the limits service again.
#include <string>

#include "weir/base/printable.h"
#include "weir/cli/admin_api.h"
#include "weir/cli/commands.h"
#include "weir/cli/remote.h"

namespace weir::cli {
namespace {

Exit run_external_forget(const Arguments& arguments, Console& console) {
  const std::string& limit = arguments["LIMIT"];
  const std::string& id = arguments["ID"];
  if (limit.empty() || id.empty()) {
    console.print_error("LIMIT and ID must not be empty");
    return kUsage;
  }
  AdminApi api(arguments, console);
  const auto answer = api.ask("DELETE", "/ratelimit/external/" + escaped_part(limit) + "/" + escaped_part(id));
  if (!answer) return api.exit();
  if (arguments["--output"] == "json") {
    write_json(answer->content, console.out);
  } else {
    console.out.write("forgotten: the next request of " + printable(limit) + ":" + printable(id) +
                      " asks the limits service again\n");
  }
  return console.out.flush() ? kOk : kFailed;
}

}  // namespace

Command external_forget() {
  return {
      "external forget",
      "forget what the limits service answered for one client",
      "All servers forget it, and the client's next request asks the service again. The exit status is 3 if there is\n"
      "no such limit.",
      with_remote_options({{"LIMIT", "LIMIT", "the limit's name", true},
                           {"ID", "ID", "the client's id in that limit", true},
                           {"--output", "FORMAT", "how the result is written", false, {"table", "json"}}},
                          Api::admin),
      "# a customer has bought a larger plan\nweir external forget per-tenant acme",
      run_external_forget,
  };
}

}  // namespace weir::cli
