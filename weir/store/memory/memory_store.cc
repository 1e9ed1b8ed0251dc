#include "weir/store/memory/memory_store.h"

#include "weir/store/memory/charging.h"

namespace weir {

void MemoryStore::charge(std::span<const Question> batch, Now now, Answers& answers) {
  // Wait for all lines of the batch at once instead of for each in turn.
  for (const Question& question : batch) prefetch(table_, question.charges);
  for (const Question& question : batch) {
    answers.answer(question.ticket, weir::charge(table_, question.charges, question.mode, question.order, now, clock_));
  }
}

}  // namespace weir
