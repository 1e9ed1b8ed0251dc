// The outcome of a call: a reply, at once or after work that must not block the loop.
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
  std::string fields;                                  // more header fields, each with its CRLF
};

// Returns {"error": code, "message": message}.
Reply refuse(int status, std::string_view code, std::string_view message);
// The same error as in the decision API.
Reply refuse(const Error& error);

// Prints an expiry in milliseconds, rounded up so that no client returns too early.
std::string print_end(Wall end);

// A stream of events instead of a reply.
struct Stream {
  std::shared_ptr<EventQueue> queue;
};

class Work;
using Outcome = std::variant<Reply, std::unique_ptr<Work>, Stream>;

// A call that takes more than one step. Destroyed when its connection ends.
class Work {
 public:
  virtual ~Work() = default;

  // Queries for the pipeline before the first step(); at most bounds::queries_per_turn_max.
  virtual std::span<const Query> questions() const { return {}; }
  // Receives the answer to the query with that index, in any order.
  virtual void answered(std::size_t index, const Result<Answer>& answer) {
    (void)index;
    (void)answer;
  }

  // Runs for well under a millisecond. Returns the outcome once it is known: a reply or further work. Work with queries
  // must not return further work.
  virtual std::optional<Outcome> step(Now now) = 0;
  // Returns how long to wait before the next step.
  virtual Duration pause() const noexcept { return Duration::zero(); }
};

}  // namespace weir::admin
