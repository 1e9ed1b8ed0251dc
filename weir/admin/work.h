// What a call comes to: a reply, at once or after some work that must not hold up the loop.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/core/answer.h"
#include "weir/core/query.h"
#include "weir/observe/events.h"

namespace weir::admin {

struct Reply {
  int status = 200;
  std::string content;
  std::string_view content_type = "application/json";  // has static storage duration
  std::string fields;                                  // more of them, each with its CRLF
};

// {"error": code, "message": sentence}.
Reply refuse(int status, std::string_view code, std::string_view sentence);
// As the decision API says it.
Reply refuse(const Error& error);

// An end to the millisecond, rounded up: nobody is told to come back too early.
std::string print_end(Wall end);

// A stream of events instead of a reply.
struct Stream {
  std::shared_ptr<EventQueue> queue;
};

class Work;
using Outcome = std::variant<Reply, std::unique_ptr<Work>, Stream>;

// A call that takes more than one step. Dropped when its connection ends.
class Work {
 public:
  virtual ~Work() = default;

  // What to ask the pipeline before the first step(); at most bounds::queries_per_turn_max.
  virtual std::span<const Query> questions() const { return {}; }
  // Of the question with that index, in any order.
  virtual void answered(std::size_t index, const Result<Answer>& answer) {
    (void)index;
    (void)answer;
  }

  // Goes on for a moment, well under a millisecond. What the call comes to, once that is known: a reply, or other work
  // that follows. Work with questions is followed by no other work.
  virtual std::optional<Outcome> step(Now now) = 0;
  // How long to wait before the next step.
  virtual Duration pause() const noexcept { return Duration::zero(); }
};

}  // namespace weir::admin
