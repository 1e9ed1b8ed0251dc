// `weir watch`: decisions as the server makes them.
#include <deque>
#include <optional>
#include <string>

#include "weir/base/printable.h"
#include "weir/base/text.h"
#include "weir/cli/admin_api.h"
#include "weir/cli/client_arguments.h"
#include "weir/cli/commands.h"
#include "weir/cli/event_reader.h"
#include "weir/cli/live_terminal.h"
#include "weir/cli/remote.h"
#include "weir/cli/table.h"
#include "weir/cli/text_width.h"
#include "weir/simulate/report_html.h"

namespace weir::cli {
namespace {

// The server sends a comment after 15 s of silence.
constexpr Duration kSilenceMax = std::chrono::seconds{45};
// The least time between two writes to the terminal.
constexpr Duration kFrameEvery = std::chrono::milliseconds{50};
// Lines of one frame if the terminal does not say how many rows it has.
constexpr std::size_t kFrameLines = 50;

constexpr const char* kEventFields[] = {"time",  "limit",     "id",          "identifier",  "allowed", "shadow",
                                        "burst", "remaining", "retry_after", "reset_after", "source"};

struct DecisionLine {
  std::string text;
  std::optional<Paint> paint;
};

bool is_shadow_denial(const Answer& event) {
  return event["shadow"].is_true() && (!event["allowed"].is_true() || event["retry_after"].text() != "0");
}

// "14:07:31.120  denied   per-ip:203.0.113.9  0 of 20 left, retry in 10ms".
DecisionLine decision_line(const Answer& event) {
  const bool allowed = event["allowed"].is_true();
  const bool would_deny = is_shadow_denial(event);
  const std::string& time = event["time"].text();
  const std::size_t clock = time.find('T');
  std::string text = clock == time.npos ? printable(time) : printable(time.substr(clock + 1, 12));
  text += would_deny ? "  shadow   " : allowed ? "  allowed  " : "  denied   ";
  text += printable(limit_cell(event)) + "  " + printable(event["id"].text());
  const std::string& remaining = event["remaining"].text();
  if (remaining == "-1") {
    text += "  unlimited";
  } else if (!remaining.empty()) {
    text += "  " + printable(remaining) + " of " + printable(event["burst"].text()) + " left";
  }
  if (!allowed || would_deny) {
    const std::string wait = readable_seconds(event["retry_after"]);
    text += wait == "never" ? ", never" : ", retry in " + wait;
  }
  return {text, would_deny ? std::optional(Paint::yellow) : allowed ? std::nullopt : std::optional(Paint::red)};
}

// The numbers of the status line.
struct WatchCounts {
  std::uint64_t decisions = 0;
  std::uint64_t denied = 0;
  std::uint64_t dropped = 0;  // by the server, because we were too slow

  std::string text() const {
    std::string text = simulate::grouped(decisions) + (decisions == 1 ? " decision" : " decisions");
    if (denied > 0) text += ", " + simulate::grouped(denied) + " denied";
    if (dropped > 0) text += ", " + simulate::grouped(dropped) + " dropped";
    return text;
  }
};

class Watch final : private LiveTerminal::Owner {
 public:
  Watch(RemoteSession& session, Console& console, std::string format, std::optional<std::int64_t> number)
      : session_(session),
        console_(console),
        format_(std::move(format)),
        left_(number),
        reader_([this](std::string_view name, std::string_view content) { take(name, content); }) {
    if (console.out.can_redraw()) {
      terminal_.emplace(session.loop(), console.out, LiveTerminal::Screen::shared,
                        static_cast<LiveTerminal::Owner&>(*this));
    }
  }

  Exit run(const std::string& path) {
    if (format_ == "csv") Table({std::begin(kEventFields), std::end(kEventFields)}).print_csv(console_.out);
    status();
    pending_ = session_.stream(
        path, kSilenceMax, [this](std::string_view bytes) { receive(bytes); },
        [this](const Result<RemoteReply>& reply) { ended(reply); });
    if (!over_) session_.loop().run();
    pending_.reset();
    if (terminal_) {
      draw();
      terminal_->restore();
    }
    console_.out.flush();
    if (!complaint_.empty()) {
      console_.print_error(complaint_);
      return exit_;
    }
    if (console_.out.failure() != 0) return kFailed;
    return exit_after(signal_);
  }

 private:
  void stop() {
    over_ = true;
    session_.loop().stop();
  }

  void end(const std::string& complaint, Exit exit) {
    complaint_ = complaint;
    exit_ = exit;
    stop();
  }

  void receive(std::string_view bytes) {
    if (over_) return;
    if (!reader_.receive(bytes)) return end("the server sent an event of more than 256 KiB", kFailed);
    if (terminal_) return draw_later();
    if (!console_.out.flush()) stop();
  }

  void ended(const Result<RemoteReply>& reply) {
    if (over_) return;
    if (!reply) return end(reply.error().detail, kFailed);
    if (reply->status != 200) return end(sentence_of(*reply), exit_of(reply->status));
    end(session_.remote().url() + " ended the stream; did the server stop?", kFailed);
  }

  void take(std::string_view name, std::string_view content) {
    if (over_) return;
    const std::optional<Answer> event = Answer::read(content);
    if (!event) return end("the server sent an event that is not JSON", kFailed);
    if (name == "dropped") return take_dropped(*event);
    if (name != "decision") return;
    ++counts_.decisions;
    if (!(*event)["allowed"].is_true() && !is_shadow_denial(*event)) ++counts_.denied;
    if (format_ == "json") {
      add({std::string(content), {}});
    } else if (format_ == "csv") {
      add_csv(*event);
    } else {
      add(decision_line(*event));
    }
    if (left_ && --*left_ == 0) stop();
  }

  void take_dropped(const Answer& event) {
    const std::uint64_t dropped = event["dropped"].count();
    counts_.dropped += dropped;
    const std::string text = "the server dropped " + simulate::grouped(dropped) + " decisions: this reader is too slow";
    if (format_ == "table") return add({text, Paint::yellow});
    if (!terminal_) console_.print_error(text);
  }

  void add_csv(const Answer& event) {
    Table table({std::begin(kEventFields), std::end(kEventFields)});
    table.next_page();
    std::vector<std::string> row;
    for (const char* const field : kEventFields) row.push_back(event[field].text());
    table.add(std::move(row));
    // Between frames nothing is written, so that the status line stays the last one.
    if (terminal_) erase_status();
    table.print_csv(console_.out);
  }

  void add(DecisionLine line) {
    if (!terminal_) return console_.out.write(line.text + "\n");
    waiting_.push_back(std::move(line));
    const std::size_t rows = console_.out.size().rows;
    const std::size_t most = rows > 1 ? rows - 1 : kFrameLines;
    if (waiting_.size() <= most) return;
    waiting_.pop_front();
    ++skipped_;
  }

  void erase_status() { console_.out.write("\r\x1b[K"); }

  void draw_later() {
    if (timer_ != 0) return;
    timer_ = session_.loop().at(session_.loop().now().time + kFrameEvery, [this] {
      timer_ = 0;
      draw();
    });
  }

  // Writes what came since the last frame above the status line.
  void draw() {
    erase_status();
    const std::size_t columns = terminal_->size().columns;
    if (skipped_ > 0) {
      const std::string text = "... " + simulate::grouped(skipped_) + " more, too many to show ...";
      console_.out.write(console_.out.painted(Paint::dim, clipped(text, columns)) + "\n");
    }
    skipped_ = 0;
    for (const DecisionLine& line : waiting_) {
      if (format_ == "json") {
        write_json(line.text, console_.out);
        continue;
      }
      const std::string text = clipped(line.text, columns);
      console_.out.write((line.paint ? console_.out.painted(*line.paint, text) : text) + "\n");
    }
    waiting_.clear();
    status();
  }

  void status() {
    if (!terminal_ || over_) return;
    const std::size_t columns = terminal_->size().columns;
    const std::string text = "q quit  " + counts_.text() + "  " + session_.remote().url();
    // The last column stays free: a cursor behind it may be on the next line.
    erase_status();
    console_.out.write(console_.out.painted(Paint::dim, clipped(text, columns - 1)));
    if (!console_.out.flush()) stop();
  }

  void key(char key) override {
    if (key == 'q' || key == 'Q') stop();
  }
  void resized() override { draw(); }
  void interrupted(int signal) override {
    signal_ = signal;
    stop();
  }

  RemoteSession& session_;
  Console& console_;
  std::string format_;
  std::optional<std::int64_t> left_;
  EventReader reader_;
  std::optional<LiveTerminal> terminal_;
  std::deque<DecisionLine> waiting_;  // for the next frame, at most a screen
  std::uint64_t skipped_ = 0;         // since the last frame
  WatchCounts counts_;
  Loop::TimerId timer_ = 0;
  std::unique_ptr<RemoteSession::Pending> pending_;
  bool over_ = false;
  int signal_ = 0;
  std::string complaint_;
  Exit exit_ = kOk;
};

Exit run_watch(const Arguments& arguments, Console& console) {
  if (arguments.has("--allowed") && arguments.has("--denied")) {
    console.print_error("give --allowed or --denied, or neither for both");
    return kUsage;
  }
  std::optional<std::int64_t> number;
  if (!arguments["--number"].empty() && !(number = read_count(arguments, "--number", console))) return kUsage;
  std::string path = "/ratelimit/events";
  const auto add = [&](std::string_view name, const std::string& value) {
    path.append(path.ends_with("events") ? "?" : "&").append(name).append("=").append(escaped_part(value));
  };
  if (!arguments["--sample"].empty()) {
    const std::optional<std::int64_t> sample = read_count(arguments, "--sample", console);
    if (!sample) return kUsage;
    add("sample", std::to_string(*sample));
  }
  if (!arguments["--limit"].empty()) add("limit", arguments["--limit"]);
  if (arguments.has("--allowed")) add("allowed", "true");
  if (arguments.has("--denied")) add("allowed", "false");
  AdminApi api(arguments, console);
  if (api.session() == nullptr) return api.exit();
  return Watch(*api.session(), console, arguments["--output"], number).run(path);
}

}  // namespace

Command watch() {
  return {
      "watch",
      "show decisions as the server makes them",
      "Prints a line for each limit that decides: time (UTC), decision, limit, id, what is left, and when to retry.\n"
      "\"shadow\" means that a limit in shadow mode would have denied the request. On a terminal, q quits; if\n"
      "decisions arrive faster than they can be shown, it shows the latest and counts the rest. It exits with 1 when\n"
      "the server goes away.",
      with_remote_options({{"--limit", "LIMIT", "only this limit"},
                           flag_option("--allowed", "only allowed requests"),
                           flag_option("--denied", "only denied requests"),
                           {"--sample", "N", "one in N decisions"},
                           {"--number", "N", "end after N decisions", false, {}, false, "-n"},
                           output_option()},
                          Api::admin),
      "# who is denied right now?\nweir watch --denied\n"
      "# the next hundred decisions of one limit, a JSON object a line\n"
      "weir watch --limit per-ip -n 100 --output json",
      run_watch,
  };
}

}  // namespace weir::cli
