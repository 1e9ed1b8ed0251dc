// `weir top`: the clients with the most requests or denials, once or live.
#include <optional>
#include <string>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/cli/admin_api.h"
#include "weir/cli/client_arguments.h"
#include "weir/cli/commands.h"
#include "weir/cli/live_terminal.h"
#include "weir/cli/remote.h"
#include "weir/cli/top_view.h"

namespace weir::cli {
namespace {

std::string top_path(const std::string& by, std::size_t number) {
  return "/ratelimit/top?by=" + by + "&n=" + std::to_string(number);
}

// Looks every few seconds and draws the whole screen.
class LiveTop final : private LiveTerminal::Owner {
 public:
  LiveTop(RemoteSession& session, Console& console, std::string by, std::optional<std::size_t> number, Duration every)
      : session_(session),
        console_(console),
        by_(std::move(by)),
        number_(number),
        every_(every),
        terminal_(session.loop(), console.out, LiveTerminal::Screen::own, *this) {}

  Exit run() {
    look();
    session_.loop().run();
    pending_.reset();
    terminal_.restore();
    if (!complaint_.empty()) {
      console_.print_error(complaint_);
      return exit_;
    }
    return exit_after(signal_);
  }

 private:
  void look() {
    session_.loop().cancel(timer_);
    const std::size_t rows = terminal_.size().rows;
    const std::size_t fitting = rows > TopView::kOtherRows ? rows - TopView::kOtherRows : 1;
    const std::size_t number = std::min(number_.value_or(fitting), bounds::admin_page_max);
    pending_ = session_.ask_later("GET", top_path(by_, number), {}, [this](const Result<RemoteReply>& reply) {
      if (auto answer = take(reply)) {
        top_ = std::move(*answer);
        pending_ = session_.ask_later("GET", "/ratelimit/stats", {}, [this](const Result<RemoteReply>& stats) {
          if (const auto taken = take(stats)) show(*taken);
        });
      }
    });
  }

  // The answer, or nothing after it has ended the view.
  std::optional<Answer> take(const Result<RemoteReply>& reply) {
    if (!reply) {
      end(reply.error().detail, kFailed);
      return {};
    }
    std::optional<Answer> answer = Answer::read(reply->content);
    if (reply->status == 200 && answer) return answer;
    end(sentence_of(*reply), exit_of(reply->status));
    return {};
  }

  void end(const std::string& complaint, Exit exit) {
    complaint_ = complaint;
    exit_ = exit;
    session_.loop().stop();
  }

  void show(const Answer& stats) {
    const Now now = session_.loop().now();
    view_.take(top_, stats, now.time, now.wall);
    drawn_ = true;
    draw();
    if (!paused_) timer_ = session_.loop().at(now.time + every_, [this] { look(); });
  }

  void draw() {
    if (!drawn_) return;
    const ScreenSize size = terminal_.size();
    const std::string every = print_duration(every_);
    // Erases each line before it is written: behind a line that fills the width, the cursor is on its last character.
    std::string frame = "\x1b[H";
    const auto lines = view_.lines(size, session_.remote().url(), every, paused_, console_.out);
    for (std::size_t i = 0; i < lines.size() && i < size.rows; ++i) {
      frame += (i == 0 ? "\x1b[K" : "\r\n\x1b[K") + lines[i];
    }
    console_.out.write(frame);
    if (!console_.out.flush()) session_.loop().stop();
  }

  void sort_by(const std::string& by) {
    if (by == by_) return;
    by_ = by;
    view_.forget_rates();
    look();
  }

  void key(char key) override {
    if (key == 'q' || key == 'Q') session_.loop().stop();
    if (key == 'r') sort_by("requests");
    if (key == 'd') sort_by("denied");
    if (key == 's') sort_by("shadow_denied");
    if (key != ' ') return;
    paused_ = !paused_;
    session_.loop().cancel(timer_);
    draw();
    if (!paused_) look();
  }
  void resized() override {
    draw();
    if (!paused_) look();
  }
  void interrupted(int signal) override {
    signal_ = signal;
    session_.loop().stop();
  }

  RemoteSession& session_;
  Console& console_;
  std::string by_;
  std::optional<std::size_t> number_;
  Duration every_;
  LiveTerminal terminal_;
  TopView view_;
  Answer top_;
  bool drawn_ = false;
  bool paused_ = false;
  Loop::TimerId timer_ = 0;
  std::unique_ptr<RemoteSession::Pending> pending_;
  int signal_ = 0;
  std::string complaint_;
  Exit exit_ = kOk;
};

Exit print_top(AdminApi& api, const std::string& by, std::size_t number, const std::string& format, Console& console) {
  const std::optional<AdminAnswer> answer = api.ask("GET", top_path(by, number));
  if (!answer) return api.exit();
  if (format == "json") {
    write_json(answer->content, console.out);
    return console.out.flush() ? kOk : kFailed;
  }
  Table people = top_table(by, false);
  Table programs({"LIMIT", "ID", "COUNT", "ERROR"});
  Table& table = format == "csv" ? programs : people;
  for (const Answer& client : answer->json["clients"].items()) {
    table.add({format == "csv" ? client["limit"].text() : limit_cell(client), client["id"].text(),
               client["count"].text(), client["error"].text()});
  }
  if (format == "csv") {
    table.print_csv(console.out);
  } else {
    if (table.empty()) console.out.write("no clients yet\n");
    table.print(console.out);
  }
  return console.out.flush() ? kOk : kFailed;
}

// What to sort by: --by, or one of its short forms.
std::optional<std::string> sort_of(const Arguments& arguments, Console& console) {
  std::string by = arguments["--by"];
  for (const auto& [flag, meaning] : {std::pair{"--by-requests", "requests"}, {"--by-denied", "denied"}}) {
    if (!arguments.has(flag)) continue;
    if (!by.empty() && by != meaning) {
      console.print_error(std::string(flag) + " and --by " + by + ": give one");
      return {};
    }
    by = meaning;
  }
  return by.empty() ? "requests" : by;
}

Exit run_top(const Arguments& arguments, Console& console) {
  const std::optional<std::string> by = sort_of(arguments, console);
  if (!by) return kUsage;
  std::optional<std::size_t> number;
  if (!arguments["--number"].empty()) {
    const std::optional<std::int64_t> read = read_count(arguments, "--number", console);
    if (!read) return kUsage;
    number = static_cast<std::size_t>(*read);
  }
  if (!arguments["--every"].empty() && !is_duration(arguments, "--every", console)) return kUsage;
  AdminApi api(arguments, console);
  if (api.session() == nullptr) return api.exit();
  const std::string& format = arguments["--output"];
  if (format != "table" || arguments.has("--once") || !console.out.can_redraw())
    return print_top(api, *by, number.value_or(10), format, console);
  const Duration every = arguments["--every"].empty() ? std::chrono::seconds{2} : *parse_duration(arguments["--every"]);
  return LiveTop(*api.session(), console, *by, number, every).run();
}

}  // namespace

Command top() {
  return {
      "top",
      "show the clients with the most requests or denials, live",
      "Sorts by requests, unless you choose otherwise. On a terminal it updates every two seconds until you press q;\n"
      "otherwise, or with --once or another --output, it prints once. Counts begin when the server starts. A count\n"
      "is never too low, and at most ERROR too high. PER_SECOND is the rate since the last update.",
      with_remote_options(
          {{"--by", "WHAT", "what to sort by", false, {"requests", "denied", "shadow_denied"}, false, {}, false, true},
           flag_option("--by-requests", "the same as --by requests"),
           flag_option("--by-denied", "the same as --by denied"),
           {"--number", "N", "how many clients, at most 1000 (default: as many as fit, or 10)", false, {}, false, "-n"},
           {"--every", "DURATION", "time between updates (default 2s)"},
           flag_option("--once", "print once, also on a terminal"),
           output_option()},
          Api::admin),
      "# live\nweir top --by denied\n"
      "# once, for a program\nweir top --by-requests --output json",
      run_top,
  };
}

}  // namespace weir::cli
