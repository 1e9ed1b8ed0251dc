// A store as tests see it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/core/verdict.h"
#include "weir/store/store.h"

namespace weir {

// A store with a clock that the test turns.
class Subject {
 public:
  virtual ~Subject() = default;
  // Asks all of it as one batch and waits for every answer; the answers are in the order of the questions.
  virtual std::vector<Result<Verdict>> ask(std::span<const Question> batch) = 0;
  virtual void advance(Duration by) = 0;
  // The wall clock, on a whole microsecond.
  virtual Wall wall() const = 0;
};

using MakeSubject = std::function<std::unique_ptr<Subject>()>;

}  // namespace weir
