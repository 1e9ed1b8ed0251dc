#include "weir/cli/decision_report.h"

#include <nlohmann/json.hpp>

#include "weir/cli/table.h"

namespace weir::cli {
namespace {

std::string cell(const nlohmann::json& object, const char* field) {
  const auto at = object.find(field);
  if (at == object.end() || at->is_null()) return {};
  return at->is_string() ? at->get<std::string>() : at->dump();
}

void print_decisions(const nlohmann::json& answer, std::string_view format, Output& out) {
  Table table({"LIMIT", "ID", "ALLOWED", "BURST", "REMAINING", "RETRY_AFTER", "RESET_AFTER", "SHADOW"});
  const auto decisions = answer.find("decisions");
  const nlohmann::json rows = decisions != answer.end() && decisions->is_array() && !decisions->empty()
                                  ? *decisions
                                  : nlohmann::json::array({answer});
  for (const nlohmann::json& row : rows) {
    const bool shadow = row.value("shadow", false);
    table.add({cell(row, "limit"), cell(row, "id"), cell(row, "allowed") == "true" ? "yes" : "no", cell(row, "burst"),
               cell(row, "remaining"), cell(row, "retry_after"), cell(row, "reset_after"), shadow ? "yes" : ""});
  }
  if (format == "csv") return table.print_csv(out);
  const bool allowed = answer.value("allowed", false);
  out.write(out.painted(allowed ? Paint::green : Paint::red, allowed ? "allowed" : "denied") + "\n");
  table.print(out);
}

}  // namespace

Exit report_decision(const Arguments& arguments, Console& console, std::string_view path, const std::string& json) {
  const Result<Remote> remote = Remote::make(Api::decision, arguments);
  if (!remote) {
    console.complain(remote.error().detail);
    return kUsage;
  }
  const Result<RemoteReply> reply = remote->ask("POST", path, json);
  if (!reply) {
    console.complain(reply.error().detail);
    return kFailed;
  }
  const auto answer = nlohmann::json::parse(reply->content, nullptr, false);
  const bool decided =
      (reply->status == 200 || reply->status == 429) && answer.is_object() && answer.contains("allowed");
  if (!decided) {
    console.complain(sentence_of(*reply));
    return reply->status == 404 ? kDenied : reply->status == 400 ? kUsage : kFailed;
  }
  if (arguments["--output"] == "json") {
    console.out.write(reply->content);
  } else {
    print_decisions(answer, arguments["--output"], console.out);
  }
  if (!console.out.flush()) return kFailed;
  return reply->status == 200 ? kOk : kDenied;
}

}  // namespace weir::cli
