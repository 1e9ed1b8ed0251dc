// `weir reset`: refills the buckets of one client, or all of them.
#include <string>

#include "weir/base/text.h"
#include "weir/cli/admin_api.h"
#include "weir/cli/client_arguments.h"
#include "weir/cli/commands.h"
#include "weir/cli/confirm.h"
#include "weir/cli/progress.h"
#include "weir/cli/remote.h"
#include "weir/cli/table.h"
#include "weir/simulate/report_html.h"
#include "weir/wire/json.h"

namespace weir::cli {
namespace {

// Long enough for the largest table.
constexpr Duration kResetAllTime = std::chrono::hours{1};
constexpr Duration kProgressEvery = std::chrono::milliseconds{500};

std::string reset_body(const std::string& id, const std::string& limit, bool all, bool block) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("id").string(id);
  if (!limit.empty()) json.key("limit").string(limit);
  if (all) json.key("confirm").string("all");
  if (block) json.key("block").boolean(true);
  json.end_object();
  return text;
}

Exit print_reset(const AdminAnswer& answer, const std::string& format, Output& out) {
  const Answer& unblocked = answer.json["unblocked"];
  if (format == "json") {
    write_json(answer.content, out);
  } else if (format == "csv") {
    Table table({"RESET", "UNBLOCKED"});
    table.add({answer.json["reset"].text(), unblocked.text()});
    table.print_csv(out);
  } else {
    const std::uint64_t count = answer.json["reset"].count();
    std::string text = count == 0 ? "nothing to reset: every bucket of this client is full"
                                  : simulate::grouped(count) + (count == 1 ? " bucket reset" : " buckets reset");
    if (unblocked.is_true()) text += "; automatic block lifted";
    if (unblocked.is(Answer::Kind::boolean) && !unblocked.is_true()) text += "; there was no automatic block";
    out.write(text + "\n");
  }
  return out.flush() ? kOk : kFailed;
}

// Sends the reset and shows how many buckets are left meanwhile.
class ResetAll {
 public:
  ResetAll(RemoteSession& session, Console& console, std::uint64_t active)
      : session_(session), active_(active), progress_(console, "bucket", static_cast<std::size_t>(active), true) {}

  Result<RemoteReply> run(const std::string& body) {
    reset_ = session_.ask_later("POST", "/ratelimit/reset", body, [this](const Result<RemoteReply>& reply) {
      reply_ = reply;
      session_.loop().stop();
    });
    look_later();
    while (!reply_) session_.loop().run();
    session_.loop().cancel(timer_);
    look_.reset();
    return *reply_;
  }

 private:
  void look_later() {
    timer_ = session_.loop().at(session_.loop().now().time + kProgressEvery, [this] {
      look_ = session_.ask_later("GET", "/ratelimit/stats", {}, [this](const Result<RemoteReply>& reply) {
        const std::optional<Answer> stats = reply ? Answer::read(reply->content) : std::nullopt;
        if (stats) {
          const std::uint64_t left = std::min(active_, active_buckets(*stats));
          progress_.update(active_ - left, static_cast<std::size_t>(active_ - left));
        }
        look_later();
      });
    });
  }

  RemoteSession& session_;
  std::uint64_t active_;
  Progress progress_;
  Loop::TimerId timer_ = 0;
  std::unique_ptr<RemoteSession::Pending> reset_;
  std::unique_ptr<RemoteSession::Pending> look_;
  std::optional<Result<RemoteReply>> reply_;
};

Exit reset_all(const Arguments& arguments, Console& console) {
  const bool yes = arguments.has("--yes");
  if (!yes && !can_ask()) {
    console.print_error("reset --all resets every bucket; confirm it with --yes");
    return kUsage;
  }
  AdminApi api(arguments, console);
  const std::optional<AdminAnswer> stats = api.ask("GET", "/ratelimit/stats");
  if (!stats) return api.exit();
  const std::uint64_t active = active_buckets(stats->json);
  RemoteSession& session = *api.session();
  if (!yes) {
    const std::string which = active == 0 ? "all buckets" : "all buckets (" + simulate::grouped(active) + " now)";
    if (!confirmed("Reset " + which + " of " + session.remote().url() + "?", console)) {
      console.print_error("nothing was reset");
      return kFailed;
    }
  }
  api.wait_up_to(kResetAllTime);
  const std::string body = reset_body("all", {}, true, arguments.has("--block"));
  const Result<RemoteReply> reply = ResetAll(session, console, active).run(body);
  if (!reply) {
    console.print_error(reply.error().detail);
    return kFailed;
  }
  const std::optional<Answer> json = Answer::read(reply->content);
  if (reply->status != 200 || !json) {
    console.print_error(sentence_of(*reply));
    return exit_of(reply->status);
  }
  return print_reset({reply->status, reply->content, *json}, arguments["--output"], console.out);
}

Exit run_reset(const Arguments& arguments, Console& console) {
  const ClientArguments given{arguments["--ip"], arguments["--apikey"], arguments["--limit"], arguments["--id"]};
  if (arguments.has("--all")) {
    if (!given.any()) return reset_all(arguments, console);
    console.print_error("give either --all or one client, not both");
    return kUsage;
  }
  if (!given.any()) {
    console.print_error("which client? Give --ip, --apikey, --limit and --id, or --all");
    return kUsage;
  }
  const std::optional<ClientArguments> client = read_client(arguments, console, true);
  if (!client) return kUsage;
  const std::string_view source = client->source();
  const std::string id = source.empty() ? client->id : std::string(source) + ":" + client->id_within();
  AdminApi api(arguments, console);
  // In the content, not in the path, because other programs log paths.
  const std::string body = reset_body(id, client->limit, false, arguments.has("--block"));
  const std::optional<AdminAnswer> answer = api.ask("POST", "/ratelimit/reset", body);
  if (!answer) return api.exit();
  return print_reset(*answer, arguments["--output"], console.out);
}

}  // namespace

Command reset() {
  std::vector<Option> options = client_options();
  options.push_back(flag_option("--all", "every bucket of the server; asks first, or needs --yes"));
  options.push_back(flag_option("--block", "also lift automatic blocks; entries of the deny list stay"));
  options.push_back(flag_option("--yes", "do not ask"));
  options.push_back(output_option());
  return {
      "reset",
      "refill the buckets of one client, or all of them",
      "The client's next request finds a full bucket. --id without --limit means every limit that accepts the id.\n"
      "Adjustments and access lists stay.",
      with_remote_options(std::move(options), Api::admin),
      "# in every limit keyed by ip\nweir reset --ip 192.168.1.1\n"
      "# by API key, and lift its automatic block\nweir reset --apikey key-abc-123 --block\n"
      "# in one limit\nweir reset --limit orders --id 7\n"
      "# everything, in a script\nweir reset --all --yes",
      run_reset,
  };
}

}  // namespace weir::cli
