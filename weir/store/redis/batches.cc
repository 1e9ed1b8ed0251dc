#include "weir/store/redis/batches.h"

#include <algorithm>
#include <string>
#include <utility>

#include "weir/base/assert.h"

namespace weir::redis {

void Batches::gather(RedisLink& link, const Member& member) {
  auto found = std::ranges::find(gathered_, &link, &Gathered::link);
  if (found != gathered_.end() && !fits(*found, member)) {
    send(link);
    found = gathered_.end();
  }
  if (found == gathered_.end()) found = gathered_.insert(gathered_.end(), {&link, 0, {}});
  found->keys += member.asked->keys(member.part);
  found->members.push_back(member);
}

bool Batches::fits(const Gathered& gathered, const Member& member) const noexcept {
  const Member& first = gathered.members[0];
  return gathered.members.size() < bounds::redis_batch_questions_max &&
         gathered.keys + member.asked->keys(member.part) <= bounds::redis_batch_buckets_max &&
         first.asked->slot(first.part) == member.asked->slot(member.part) && first.time == member.time;
}

void Batches::send(RedisLink& link) {
  const auto found = std::ranges::find(gathered_, &link, &Gathered::link);
  if (found == gathered_.end()) return;
  const Gathered gathered = *found;
  gathered_.erase(found);
  send(gathered);
}

void Batches::send() {
  // not_sent() may lead to another gather().
  while (!gathered_.empty()) send(*gathered_.front().link);
}

void Batches::send(const Gathered& gathered) {
  RedisLink& link = *gathered.link;
  const Member& first = gathered.members[0];
  if (gathered.members.size() == 1) {
    const Wall* const time = first.time ? &*first.time : nullptr;
    const auto command = first.asked->command(first.part, script_, time);
    if (!link.send(first.tag, command, first.deadline, first.effect)) owner_.not_sent(link, first.tag);
    return;
  }
  Time earliest = first.deadline;
  Time latest = first.deadline;
  Effect effect = Effect::reads;
  Batch sent;
  for (const Member& member : gathered.members) {
    earliest = std::min(earliest, member.deadline);
    latest = std::max(latest, member.deadline);
    if (member.effect == Effect::writes) effect = Effect::writes;
    sent.push_back({member.tag, member.deadline});
  }
  if (free_.empty()) {
    free_.push_back(sent_.size());
    sent_.emplace_back();
  }
  if (!link.send(kBatch | free_.back(), command(gathered), latest, effect)) {
    for (const Member& member : gathered.members) owner_.not_sent(link, member.tag);
    return;
  }
  sent_[free_.back()] = sent;
  free_.pop_back();
  if (earliest < latest) arm(earliest);
}

std::span<const std::string_view> Batches::command(const Gathered& gathered) {
  numbers_[0] = std::to_string(gathered.keys);
  command_.assign({"EVALSHA", script_.sha, numbers_[0]});
  for (const Member& member : gathered.members) member.asked->append_keys(member.part, command_);
  for (const Member& member : gathered.members) member.asked->append_arguments(member.part, command_);
  if (const auto& time = gathered.members[0].time) {
    const std::int64_t microseconds = time->time_since_epoch() / std::chrono::microseconds{1};
    numbers_[1] = std::to_string(microseconds / 1'000'000);
    numbers_[2] = std::to_string(microseconds % 1'000'000);
    command_.insert(command_.end(), {numbers_[1], numbers_[2]});
  }
  return command_;
}

Batches::Tags Batches::take(Tag batch) {
  const std::size_t index = batch & ~kBatch;
  WEIR_ASSERT(index < sent_.size() && !sent_[index].empty());
  Tags tags;
  for (const Sent& sent : std::exchange(sent_[index], {})) tags.push_back(sent.tag);
  free_.push_back(index);
  return tags;
}

void Batches::arm(Time when) {
  if (when >= timer_at_) return;
  loop_.cancel(timer_);
  timer_at_ = when;
  timer_ = loop_.at(when, [this] {
    timer_ = 0;
    timer_at_ = Time::max();
    expire();
  });
}

// The link watches the last deadline of a batch; this watches the earlier ones.
void Batches::expire() {
  const Time now = loop_.now().time;
  Time next = Time::max();
  std::vector<Tag> late;
  for (Batch& batch : sent_) {
    Time latest{};
    for (const Sent& sent : batch) latest = std::max(latest, sent.deadline);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      Sent& sent = batch[i];
      if (sent.tag == kGone || sent.deadline == latest) continue;
      if (sent.deadline > now) {
        next = std::min(next, sent.deadline);
      } else {
        late.push_back(std::exchange(sent.tag, kGone));
      }
    }
  }
  if (next != Time::max()) arm(next);
  for (const Tag tag : late) owner_.late(tag);
}

}  // namespace weir::redis
