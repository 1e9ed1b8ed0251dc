#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>

#include "weir/base/bounds.h"
#include "weir/cli/commands.h"
#include "weir/cli/configuration.h"
#include "weir/cli/lines.h"
#include "weir/simulate/replay.h"
#include "weir/simulate/trace.h"

namespace weir::cli {
namespace {

// The file to read, or standard input for "-".
class Input {
 public:
  explicit Input(const std::string& path)
      : descriptor_(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Input() {
    if (descriptor_ > STDERR_FILENO) ::close(descriptor_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  int descriptor() const noexcept { return descriptor_; }
  // 0 if it has no size, like a pipe.
  std::size_t size() const noexcept {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
    return static_cast<std::size_t>(status.st_size);
  }

 private:
  int descriptor_;
};

// A line on the terminal that tells how far a long replay is. Silent for the first second, and wherever it would stand
// among the answers.
class Progress {
 public:
  Progress(const Console& console, std::size_t bytes_all)
      : err_(console.err), bytes_all_(bytes_all), shown_(console.err.is_terminal() && !console.out.is_terminal()) {}
  ~Progress() {
    if (!drawn_) return;
    err_.write("\r\x1b[K");
    err_.flush();
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::size_t lines, std::size_t bytes) {
    if (!shown_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds{200};
    drawn_ = true;
    std::string text = "\r\x1b[K" + std::to_string(lines) + " lines";
    if (bytes_all_ > 0) text += ", " + std::to_string(100 * bytes / bytes_all_) + " %";
    err_.write(text);
    err_.flush();
  }

 private:
  Output& err_;
  std::size_t bytes_all_;
  bool shown_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::seconds{1};
};

// Replays line after line into out.
class Run {
 public:
  Run(std::shared_ptr<const Policy> policy, Console& console, const Input& input)
      : console_(console),
        replay_(std::move(policy)),
        progress_(console, input.size()),
        lines_(input.descriptor(), bounds::json_bytes_max, [this] { pause(); }) {}

  // False if the input could not be read to its end.
  bool all() {
    std::string_view line;
    while (console_.out.failure() == 0) {
      switch (lines_.next(line)) {
        case LineReader::Got::line:
          ++number_;
          if (number_ == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);  // some editors mark UTF-8 so
          if (line.find_first_not_of(" \t\r") != std::string_view::npos) answer(line);
          break;
        case LineReader::Got::too_long:
          ++number_;
          asked_.t.reset();
          refuse("the line is longer than " + std::to_string(bounds::json_bytes_max) + " bytes");
          break;
        case LineReader::Got::end:
          return true;
        case LineReader::Got::failed:
          return false;
      }
      console_.out.write(text_);
      text_.clear();
    }
    return true;
  }

  std::size_t refused() const noexcept { return refused_; }
  std::size_t first_refused() const noexcept { return first_refused_; }

 private:
  void answer(std::string_view line) {
    if (auto read = trace_.read(line, asked_); !read) return refuse(read.error().detail);
    const Result<simulate::Answer> answered = replay_.ask(asked_.query(), asked_.now());
    if (!answered) return refuse(answered.error().detail);
    weir::simulate::write_answer(*asked_.t, *answered, text_);
  }

  void refuse(std::string_view sentence) {
    weir::simulate::write_error(asked_.t, sentence, text_);
    if (refused_++ == 0) first_refused_ = number_;
  }

  // The next read may block on a peer that waits for our answers.
  void pause() {
    console_.out.flush();
    progress_.update(number_, lines_.bytes());
  }

  Console& console_;
  simulate::Replay replay_;
  simulate::TraceReader trace_;
  simulate::TraceLine asked_;
  Progress progress_;
  LineReader lines_;
  std::string text_;
  std::size_t number_ = 0;
  std::size_t refused_ = 0;
  std::size_t first_refused_ = 0;
};

Exit run_simulate(const Arguments& arguments, Console& console) {
  const std::optional<config::Loaded> loaded = load_or_complain(arguments["--config"], arguments, console);
  if (!loaded) return kUsage;
  const Input input(arguments["--trace"]);
  const std::string path = arguments["--trace"] == "-" ? "standard input" : arguments["--trace"];
  if (input.descriptor() < 0) {
    console.complain("cannot open " + path + ": " + std::strerror(errno));
    return kFailed;
  }
  std::size_t refused = 0;
  std::size_t first_refused = 0;
  {
    Run replay(loaded->policy, console, input);
    if (!replay.all()) {
      console.complain("cannot read " + path + ": " + std::strerror(errno));
      return kFailed;
    }
    refused = replay.refused();
    first_refused = replay.first_refused();
  }
  if (!console.out.flush()) return kFailed;
  if (refused == 0) return kOk;
  console.complain(counted(refused, "line") + " of " + path + " could not be replayed; the first is line " +
                   std::to_string(first_refused));
  return kFailed;
}

}  // namespace

Command simulate() {
  return {
      "simulate",
      "replay a history against a configuration, exactly",
      "Takes JSON lines, each with its own time, and prints one decision per line: what the limits\n"
      "would have said, to the nanosecond. Nothing is started and nothing is kept.\n"
      "\n"
      "A line asks for one limit or for several at once:\n"
      "  {\"t\": 0.005, \"limit\": \"per-ip\", \"id\": \"203.0.113.9\", \"cost\": 1, \"op\": \"spend\"}\n"
      "  {\"t\": 0.005, \"charges\": [{\"limit\": \"a\", \"id\": \"x\"}, …], \"charge\": \"together\"}\n"
      "t is in seconds since 1970 in UTC, with up to nine decimals; cost defaults to 1; op is spend,\n"
      "peek, refund or reset; charge is together or in-order. Lines are taken in the order given.\n"
      "\n"
      "The answer: {\"t\",\"limit\",\"id\",\"allowed\",\"remaining\",\"retry_after\",\"reset_after\",\"tat\"}, for\n"
      "several charges that of the strictest. -1 is never; remaining -1 is unlimited. A line that\n"
      "cannot be replayed is answered by {\"t\",\"error\"}, and the exit status is 1.",
      {config_option("the configuration", true, false),
       {"--trace", "FILE", "the history, one JSON object a line; - is standard input", true},
       set_option()},
      "# Would this burst have passed?\n"
      "weir simulate --config weir.yaml --trace burst.jsonl\n"
      "# One question, on the command line:\n"
      "echo '{\"t\": 0, \"limit\": \"per-ip\", \"id\": \"203.0.113.9\"}' | weir simulate --config weir.yaml --trace -",
      run_simulate};
}

}  // namespace weir::cli
