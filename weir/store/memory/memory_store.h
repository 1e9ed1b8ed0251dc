// The Store whose state is in this process. It answers before charge() returns.
#pragma once

#include <cstdint>
#include <vector>

#include "weir/base/clock.h"
#include "weir/store/memory/table.h"
#include "weir/store/store.h"

namespace weir {

// Every event loop has one; they share the table.
class MemoryStore final : public Store {
 public:
  // Both must outlive the store.
  MemoryStore(Table& table, const Clock& clock) noexcept : table_(table), clock_(clock) {}
  void charge(std::span<const Question> batch, Now now, Answers& answers) override;
  bool answers_at_once() const noexcept override { return true; }

 private:
  Table& table_;
  const Clock& clock_;
  std::vector<std::uint64_t> hashes_;  // empty; keeps its memory from one batch to the next
};

}  // namespace weir
