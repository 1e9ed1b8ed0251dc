// The outcome of a call: a reply, at once or after work that must not block the loop.
#pragma once

#include <functional>
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
  enum class Kind : unsigned char { decisions, numbers };
  std::shared_ptr<EventQueue> queue;  // null: only the head is wanted
  Kind kind = Kind::decisions;
};

class Work;
using Outcome = std::variant<Reply, std::unique_ptr<Work>, Stream>;

// Makes work continue: advance() is called in a later turn. Any thread may call it, at any time, any number of times.
using Wake = std::function<void()>;

// A call that cannot be answered at once. Destroyed when its exchange ends.
class Work {
 public:
  virtual ~Work() = default;

  // Queries for the pipeline before the first advance(); at most bounds::queries_per_turn_max.
  virtual std::span<const Query> questions() const { return {}; }
  // Receives the answer to the query with that index, in any order.
  virtual void answered(std::size_t index, const Result<Answer>& answer) {
    (void)index;
    (void)answer;
  }

  // Runs for well under a millisecond. Returns the outcome once it is known: a reply or further work. Before that, it
  // must arrange for a call of `wake`, after which it is called again. Work with queries must not return further work.
  virtual std::optional<Outcome> advance(Now now, const Wake& wake) = 0;
  // When to call advance() at the latest.
  virtual Time wake_at() const noexcept { return Time::max(); }
};

}  // namespace weir::admin
