#include "weir/cli/decision_report.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/cli/admin_api.h"
#include "weir/cli/answer.h"
#include "weir/cli/table.h"

namespace weir::cli {
namespace {

// What decided, if it was not the limits.
std::string_view decided_by(const Answer& answer) {
  if (answer["degraded"].is_true()) return " by the failure policy: the store is unavailable";
  return answer["error"].text() == "access denied" ? " by the deny list" : "";
}

void print_decisions(const Answer& answer, std::string_view format, Output& out) {
  Table table({"LIMIT", "ID", "ALLOWED", "BURST", "REMAINING", "RETRY_AFTER", "RESET_AFTER", "SHADOW"});
  table.whole({"ALLOWED", "BURST", "REMAINING", "RETRY_AFTER", "RESET_AFTER"});
  const Answer& decisions = answer["decisions"];
  const std::vector<Answer> rows = decisions.items().empty() ? std::vector<Answer>{answer} : decisions.items();
  for (const Answer& row : rows) {
    const auto seconds = [&](const char* field) {
      return format == "csv" ? row[field].text() : readable_seconds(row[field]);
    };
    table.add({row["limit"].text(), row["id"].text(), row["allowed"].is_true() ? "yes" : "no", row["burst"].text(),
               row["remaining"].text(), seconds("retry_after"), seconds("reset_after"),
               row["shadow"].is_true() ? "yes" : ""});
  }
  if (format == "csv") return table.print_csv(out);
  const bool allowed = answer["allowed"].is_true();
  out.write(out.painted(allowed ? Paint::green : Paint::red, allowed ? "allowed" : "denied"));
  out.write(std::string(decided_by(answer)) + "\n");
  table.print(out);
}

}  // namespace

Exit report_decision(const Arguments& arguments, Console& console, std::string_view path, const std::string& json) {
  const Result<Remote> remote = Remote::make(Api::decision, arguments);
  if (!remote) {
    console.print_error(remote.error().detail);
    return kUsage;
  }
  const Result<RemoteReply> reply = remote->ask("POST", path, json);
  if (!reply) {
    console.print_error(reply.error().detail);
    return kFailed;
  }
  const std::optional<Answer> answer = Answer::read(reply->content);
  // 403 with a decision: the client is on the deny list.
  const bool is_decision = reply->status == 200 || reply->status == 429 || reply->status == 403;
  const bool decided = is_decision && answer && (*answer)["allowed"].is(Answer::Kind::boolean);
  if (!decided) {
    console.print_error(sentence_of(*reply));
    return exit_of(reply->status);
  }
  if (arguments["--output"] == "json") {
    write_json(reply->content, console.out);
  } else {
    print_decisions(*answer, arguments["--output"], console.out);
  }
  if (!console.out.flush()) return kFailed;
  return reply->status == 200 ? kOk : kDenied;
}

}  // namespace weir::cli
