#include "weir/store/memory/memory_store.h"

#include <cstddef>
#include <span>
#include <utility>

#include "weir/store/memory/charging.h"

namespace weir {

void MemoryStore::charge(std::span<const Question> batch, Now now, Answers& answers) {
  // An answer may lead to another batch, which needs hashes of its own.
  std::vector<std::uint64_t> hashes = std::exchange(hashes_, {});
  // Wait for all lines of the batch at once instead of for each in turn.
  for (const Question& question : batch) prefetch(table_, question.charges, hashes);
  std::size_t done = 0;
  for (const Question& question : batch) {
    const std::size_t count = question.buckets();
    TableBuckets buckets(table_, now, clock_, std::span(hashes).subspan(done, count));
    done += count;
    answers.answer(question.ticket, weir::charge(buckets, question.charges, question.mode, question.order));
  }
  hashes.clear();
  if (hashes_.empty()) hashes_ = std::move(hashes);
}

}  // namespace weir
