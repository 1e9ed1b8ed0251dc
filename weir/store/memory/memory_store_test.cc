#include "weir/store/memory/memory_store.h"

#include <memory>
#include <utility>
#include <vector>

#include "weir/store/testing/store_conformance.h"

namespace weir::memory_store_test {
namespace {

class MemorySubject final : public Subject {
 public:
  std::vector<Result<Verdict>> ask(std::span<const Question> batch) override {
    struct Collect : Answers {
      std::vector<Result<Verdict>> results;
      void answer(Ticket, const Result<Verdict>& verdict) override { results.push_back(verdict); }
    } collect;
    store_.charge(batch, clock_.now(), collect);
    return std::move(collect.results);
  }
  void advance(Duration by) override { clock_.advance(by); }
  Wall wall() const override { return clock_.now().wall; }

 private:
  std::unique_ptr<Table> table_ = std::move(*Table::create({.buckets_max = 1000, .huge_pages = false}, HashKey{3, 4}));
  ManualClock clock_{Time{std::chrono::seconds{10}}, Wall{std::chrono::seconds{600'000'000}}};
  MemoryStore store_{*table_, clock_};
};

INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance, testing::Values([] { return std::make_unique<MemorySubject>(); }));

}  // namespace
}  // namespace weir::memory_store_test
