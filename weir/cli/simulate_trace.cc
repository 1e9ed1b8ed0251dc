#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "weir/base/bounds.h"
#include "weir/cli/configuration.h"
#include "weir/cli/progress.h"
#include "weir/cli/simulate.h"
#include "weir/simulate/lines.h"
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

// Replays line after line into out.
class Run {
 public:
  Run(std::shared_ptr<const Policy> policy, Console& console, const Input& input)
      : console_(console),
        replay_(std::move(policy)),
        progress_(console, "line", input.size(), !console.out.is_terminal()),
        lines_(input.descriptor(), bounds::json_bytes_max, [this] { pause(); }) {}

  // False if the input could not be read to its end.
  bool all() {
    std::string_view line;
    while (console_.out.failure() == 0) {
      switch (lines_.next(line)) {
        case simulate::LineReader::Got::line:
          ++number_;
          if (number_ == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);  // some editors mark UTF-8 so
          if (line.find_first_not_of(" \t\r") != std::string_view::npos) answer(line);
          break;
        case simulate::LineReader::Got::too_long:
          ++number_;
          asked_.t.reset();
          refuse("the line is longer than " + std::to_string(bounds::json_bytes_max) + " bytes");
          break;
        case simulate::LineReader::Got::end:
          return true;
        case simulate::LineReader::Got::failed:
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
  simulate::LineReader lines_;
  std::string text_;
  std::size_t number_ = 0;
  std::size_t refused_ = 0;
  std::size_t first_refused_ = 0;
};

}  // namespace

Exit replay_trace(const Arguments& arguments, Console& console) {
  const std::optional<config::Loaded> loaded = load_or_explain(arguments["--config"], arguments, console);
  if (!loaded) return kUsage;
  const Input input(arguments["--trace"]);
  const std::string path = arguments["--trace"] == "-" ? "standard input" : arguments["--trace"];
  if (input.descriptor() < 0) {
    console.print_error("cannot open " + path + ": " + std::strerror(errno));
    return kFailed;
  }
  std::size_t refused = 0;
  std::size_t first_refused = 0;
  {
    Run replay(loaded->policy, console, input);
    if (!replay.all()) {
      console.print_error("cannot read " + path + ": " + std::strerror(errno));
      return kFailed;
    }
    refused = replay.refused();
    first_refused = replay.first_refused();
  }
  if (!console.out.flush()) return kFailed;
  if (refused == 0) return kOk;
  console.print_error(counted(refused, "line") + " of " + path + " could not be replayed; the first is line " +
                      std::to_string(first_refused));
  return kFailed;
}

}  // namespace weir::cli
