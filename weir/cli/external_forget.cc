// `weir external forget`: makes the server ask the limits service again.
#include <string>

#include "weir/base/printable.h"
#include "weir/base/text.h"
#include "weir/cli/admin_api.h"
#include "weir/cli/commands.h"
#include "weir/cli/remote.h"

namespace weir::cli {
namespace {

Exit run_external_forget(const Arguments& arguments, Console& console) {
  AdminApi api(arguments, console);
  RemoteSession* const session = api.session();
  if (session == nullptr) return api.exit();
  const std::string& limit = arguments["LIMIT"];
  const std::string& id = arguments["ID"];
  const Result<RemoteReply> reply =
      session->ask("DELETE", "/ratelimit/external/" + escaped_part(limit) + "/" + escaped_part(id));
  if (!reply) {
    console.complain(reply.error().detail);
    return kFailed;
  }
  if (reply->status >= 200 && reply->status < 300) {
    if (arguments["--output"] == "json") {
      write_json(reply->content, console.out);
    } else {
      console.out.write("forgotten: the next request of " + printable(limit) + ":" + printable(id) +
                        " asks the limits service again\n");
    }
    return console.out.flush() ? kOk : kFailed;
  }
  const std::optional<Answer> answer = Answer::read(reply->content);
  const std::string code = answer ? (*answer)["error"].text() : std::string();
  // A server that knows the call names what is missing: the limit, or the answer.
  const bool knows_call =
      code == "unknown_limit" || (code == "not_found" && sentence_of(*reply).find("/ratelimit/") == std::string::npos);
  if (reply->status == 501 || reply->status == 405 || (reply->status == 404 && !knows_call)) {
    console.complain(session->remote().url() + " has no limits from an external service (" +
                     std::to_string(reply->status) + ")");
    return reply->status == 404 ? kDenied : kFailed;
  }
  console.complain(sentence_of(*reply));
  return exit_of(reply->status);
}

}  // namespace

Command external_forget() {
  return {
      "external forget",
      "forget what the limits service answered for one client",
      "All servers forget it, and the client's next request asks the service again. Exits with 3 if there is no such\n"
      "limit.",
      with_remote_options({{"LIMIT", "LIMIT", "the limit's name", true},
                           {"ID", "ID", "the client's id in that limit", true},
                           {"--output", "FORMAT", "how the result is written", false, {"table", "json"}}},
                          Api::admin),
      "# a customer has bought a larger plan\nweir external forget per-tenant acme",
      run_external_forget,
  };
}

}  // namespace weir::cli
