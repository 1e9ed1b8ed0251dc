// Questions that wait for a service: which answers each still lacks, and until when it waits.
//
// Thread safety: none; every loop has its own, in its pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/base/time.h"
#include "weir/core/query.h"
#include "weir/external/services.h"
#include "weir/policy/policy.h"
#include "weir/server/owned_query.h"
#include "weir/store/store.h"

namespace weir {

// The answers that one question got from services; for everything else, what the cache has. Never asks a service, so
// resolving with it always completes.
class FoundAnswers final : public ServiceAnswers {
 public:
  // `services` must outlive it.
  explicit FoundAnswers(const external::LoopServices& services) : services_(&services) {}

  Found find(const NamedLimit& limit, std::string_view id, Time now) const override;
  void add(const NamedLimit& limit, std::string_view id) { answers_.push_back({&limit, std::string(id), nullptr}); }
  std::size_t size() const noexcept { return answers_.size(); }

  struct Looked {
    const NamedLimit* limit;
    std::string id;
    std::shared_ptr<const ServiceAnswer> answer;
    std::uint64_t wait = 0;  // 0: not waiting
  };
  std::span<Looked> all() noexcept { return answers_; }

 private:
  const external::LoopServices* services_;
  std::vector<Looked> answers_;
};

// A parked question: the copy of its query, and the answers.
struct Parked {
  Parked(const Query& query, FoundAnswers found) : owned(query), answers(std::move(found)) {}

  OwnedQuery owned;
  FoundAnswers answers;
  std::size_t missing = 0;
  Time until{};
};

class ParkedQuestions {
 public:
  // `services` must outlive it. `ready` gets the ticket of a question that can be resolved: during expire(), or in a
  // later turn.
  ParkedQuestions(external::LoopServices& services, std::function<void(Ticket)> ready);

  // Asks the services for the answers that a query lacks. Returns true if all of them are in `found`; false if the
  // question is parked, at most until the services' timeout.
  bool ask(Ticket ticket, const Query& query, std::span<const Lookup> lookups, Time now, FoundAnswers& found);
  // The answers of a question that is ready.
  std::unique_ptr<Parked> take(Ticket ticket);
  // Drops a question whose asker is gone.
  void forget(Ticket ticket);
  // When to expire() at the latest.
  Time expires_at() const noexcept { return by_time_.empty() ? Time::max() : by_time_.begin()->first; }
  // Releases questions that have waited too long; they continue with the cached answers.
  void expire(Time now);
  bool empty() const noexcept { return parked_.empty(); }
  // Calls `visit` with every ticket.
  template <class Visit>
  void each(Visit visit) const {
    for (const auto& [ticket, parked] : parked_) visit(ticket);
  }

 private:
  void answered(std::uint64_t wait, const std::shared_ptr<const ServiceAnswer>& answer);
  void stop_waiting(Ticket ticket, Parked& parked);

  external::LoopServices& services_;
  std::function<void(Ticket)> ready_;
  std::uint64_t next_wait_ = 1;
  std::unordered_map<Ticket, std::unique_ptr<Parked>> parked_;
  std::unordered_map<std::uint64_t, std::pair<Ticket, std::size_t>> waits_;  // the answer that each is for
  std::set<std::pair<Time, Ticket>> by_time_;
};

}  // namespace weir
