#include "weir/server/parked.h"

#include <algorithm>
#include <variant>

#include "weir/base/assert.h"

namespace weir {
namespace {

std::span<const Attribute> attributes_of(const Query& query) noexcept {
  const auto* const facts = std::get_if<RequestFacts>(&query.subject);
  return facts == nullptr ? std::span<const Attribute>{} : facts->attributes;
}

}  // namespace

ServiceAnswers::Found FoundAnswers::find(const NamedLimit& limit, std::string_view id, Time now) const {
  const auto found =
      std::ranges::find_if(answers_, [&](const Looked& one) { return one.limit == &limit && one.id == id; });
  return {found == answers_.end() ? services_->known(limit, id, now) : found->answer, false};
}

ParkedQuestions::ParkedQuestions(external::LoopServices& services, std::function<void(Ticket)> ready)
    : services_(services), ready_(std::move(ready)) {
  services_.on_answer([this](std::uint64_t wait, const auto& answer) { answered(wait, answer); });
}

bool ParkedQuestions::ask(Ticket ticket, const Query& query, std::span<const Lookup> lookups, Time now,
                          FoundAnswers& found) {
  std::size_t missing = 0;
  Time until = now;
  for (const Lookup& lookup : lookups) {
    const std::uint64_t wait = next_wait_++;
    auto asked = services_.ask(*lookup.limit, lookup.id, attributes_of(query), wait);
    found.add(*lookup.limit, lookup.id);
    FoundAnswers::Looked& looked = found.all().back();
    looked.answer = std::move(asked.answer);
    if (!asked.waits) continue;
    looked.wait = wait;
    ++missing;
    until = std::max(until, now + std::min(lookup.limit->service->timeout, Time::max() - now));
    waits_.emplace(wait, std::pair{ticket, found.size() - 1});
  }
  if (missing == 0) return true;
  auto parked = std::make_unique<Parked>(query, std::move(found));
  parked->missing = missing;
  parked->until = until;
  by_time_.emplace(until, ticket);
  parked_.emplace(ticket, std::move(parked));
  return false;
}

void ParkedQuestions::answered(std::uint64_t wait, const std::shared_ptr<const ServiceAnswer>& answer) {
  const auto found = waits_.find(wait);
  if (found == waits_.end()) return;
  const auto [ticket, index] = found->second;
  waits_.erase(found);
  Parked& parked = *parked_.at(ticket);
  FoundAnswers::Looked& looked = parked.answers.all()[index];
  looked.answer = answer;
  looked.wait = 0;
  if (--parked.missing > 0) return;
  stop_waiting(ticket, parked);
  ready_(ticket);
}

void ParkedQuestions::stop_waiting(Ticket ticket, Parked& parked) {
  for (FoundAnswers::Looked& looked : parked.answers.all()) {
    if (looked.wait == 0) continue;
    services_.leave(looked.wait);
    waits_.erase(looked.wait);
    looked.wait = 0;
  }
  by_time_.erase({parked.until, ticket});
}

std::unique_ptr<Parked> ParkedQuestions::take(Ticket ticket) {
  const auto found = parked_.find(ticket);
  WEIR_ASSERT(found != parked_.end());
  std::unique_ptr<Parked> parked = std::move(found->second);
  parked_.erase(found);
  return parked;
}

void ParkedQuestions::forget(Ticket ticket) {
  const std::unique_ptr<Parked> parked = take(ticket);
  stop_waiting(ticket, *parked);
}

void ParkedQuestions::expire(Time now) {
  while (!by_time_.empty() && by_time_.begin()->first <= now) {
    const Ticket ticket = by_time_.begin()->second;
    Parked& parked = *parked_.at(ticket);
    for (FoundAnswers::Looked& looked : parked.answers.all()) {
      if (looked.wait != 0) looked.answer = services_.give_up(*looked.limit, looked.id);
    }
    stop_waiting(ticket, parked);
    ready_(ticket);
  }
}

}  // namespace weir
