#include "weir/protocol/resp/owed_replies.h"

#include <array>
#include <chrono>

#include "weir/base/assert.h"
#include "weir/protocol/resp/fault_error.h"
#include "weir/wire/resp.h"

namespace weir {
namespace {

// Integers and errors are the same in both versions.
resp::ReplyWriter writer_to(std::string& out) {
  return {out, resp::Version::resp2};
}

// Returns the wait in units of the reply, rounded up; -1 for never.
template <class Unit>
std::int64_t wait(Duration duration) {
  return duration == kNever ? -1 : std::chrono::ceil<Unit>(duration).count();
}

// Returns the verdict's decision. Without limits it follows from the verdict alone: a denial cannot be waited out.
Decision speaking(const Verdict& verdict) {
  Decision decision;
  if (!verdict.all.empty()) decision = verdict.speaker();
  if (verdict.all.empty() && !verdict.allowed) decision.retry_after = kNever;
  if (verdict.all.empty() && verdict.allowed) decision.burst = decision.remaining = kUnbounded;
  // A shadow limit's denial does not deny the request.
  if (verdict.allowed) decision.retry_after = Duration::zero();
  decision.allowed = verdict.allowed;
  return decision;
}

void write_answer(ReplyForm form, const Verdict& verdict, std::string& out) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  resp::ReplyWriter writer = writer_to(out);
  if (form == ReplyForm::forgotten) return writer.integer(verdict.forgotten > 0 ? 1 : 0);
  const Decision decision = speaking(verdict);
  const std::int64_t allowed = decision.allowed ? 1 : 0;
  std::array<std::int64_t, 5> five{allowed, decision.burst, decision.remaining, 0, 0};
  if (form == ReplyForm::cell) {
    five[0] = 1 - allowed;
    five[3] = decision.allowed ? -1 : wait<seconds>(decision.retry_after);
    five[4] = wait<seconds>(decision.reset_after);
  } else if (form == ReplyForm::crab) {
    five[3] = wait<seconds>(decision.reset_after);
    five[4] = wait<seconds>(decision.retry_after);
  } else {
    five[3] = wait<milliseconds>(decision.retry_after);
    five[4] = wait<milliseconds>(decision.reset_after);
  }
  writer.integers(five);
}

// Writes a whole reply, except for the keys of a DEL, which share one.
void write_reply(ReplyForm form, const Result<Answer>& answer, std::string& out) {
  if (!answer) return writer_to(out).error(error_text(answer.error()));
  write_answer(form, answer->verdict, out);
}

bool is_of_del(ReplyForm form) noexcept {
  return form == ReplyForm::part || form == ReplyForm::sum;
}

}  // namespace

std::uint64_t OwedReplies::push(ReplyForm form) {
  forms_.push_back(form);
  return next_++;
}

void OwedReplies::settle(std::uint64_t sequence, const Result<Answer>& answer, std::string& out) {
  WEIR_ASSERT(sequence >= first_ && sequence < next_);
  const ReplyForm form = form_of(sequence);
  const std::int64_t forgotten = answer && answer->verdict.forgotten > 0 ? 1 : 0;
  if (sequence != first_) {
    Held& held = held_[sequence];
    WEIR_ASSERT(!held.answered);
    held.answered = true;
    held.forgotten = forgotten;
    if (!is_of_del(form)) {
      write_reply(form, answer, held.text);
    } else if (!answer) {
      held.text = error_text(answer.error());
    }
    return;
  }
  if (is_of_del(form)) {
    finish_part(form == ReplyForm::sum, forgotten, answer ? "" : error_text(answer.error()), out);
  } else {
    write_reply(form, answer, out);
  }
  pass_on(out);
}

// Finishes one key of a DEL, in order. If any key failed, the reply is the first error.
void OwedReplies::finish_part(bool last, std::int64_t forgotten, std::string_view error, std::string& out) {
  del_forgotten_ += forgotten;
  if (del_error_.empty()) del_error_ = error;
  if (!last) return;
  resp::ReplyWriter writer = writer_to(out);
  if (del_error_.empty()) {
    writer.integer(del_forgotten_);
  } else {
    writer.error(del_error_);
  }
  del_forgotten_ = 0;
  del_error_.clear();
}

// The reply to first_ is written. Writes what follows it, and every later reply that is already there.
void OwedReplies::pass_on(std::string& out) {
  while (true) {
    if (!held_.empty() && held_.begin()->first == first_) {
      const Held& done = held_.begin()->second;
      out += done.after;
      after_bytes_ -= done.after.size();
      held_.erase(held_.begin());
    }
    ++first_;
    ++gone_;
    if (held_.empty() || held_.begin()->first != first_ || !held_.begin()->second.answered) break;
    const Held& held = held_.begin()->second;
    const ReplyForm form = form_of(first_);
    if (is_of_del(form)) {
      finish_part(form == ReplyForm::sum, held.forgotten, held.text, out);
    } else {
      out += held.text;
    }
  }
  // Compact when half of it is unused, so that each form is moved once on average.
  if (gone_ * 2 >= forms_.size()) {
    forms_.erase(forms_.begin(), forms_.begin() + static_cast<std::ptrdiff_t>(gone_));
    gone_ = 0;
  }
}

}  // namespace weir
