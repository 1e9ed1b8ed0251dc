// What a RedisStore does while Redis is busy or unavailable, and how it drops cached denials.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "weir/store/redis/redis_store.h"

namespace weir::redis {

namespace {

// Returns whether `holds` is true for every bucket.
template <class Holds>
bool all_buckets(std::span<const Charge> charges, Holds holds) {
  return std::ranges::all_of(charges, [&](const Charge& charge) {
    return (!charge.rate || holds(Key{charge.rate->key, Kind::bucket})) &&
           (!charge.quota || holds(Key{charge.quota->key, Kind::quota}));
  });
}

}  // namespace

RedisNode* RedisStore::node_of(Key key) {
  return topology_->node_of(topology_->is_sharded() ? slot_of(key_of(key)) : 0);
}

// If a question cannot be sent anyway, there is room: it fails at once instead of waiting.
Room RedisStore::room(const Question& question, std::size_t ahead) {
  if (question.charges.empty()) return Room::yes;
  const Time now = loop_.reading().time;
  // At the start a question waits for the first connection: the failure policy is for a Redis that is unavailable.
  if (!settled_ && now - created_ < options_.link.timeout) return Room::none;
  const std::size_t buckets = question.buckets();
  const auto admits = [&](Key key) {
    RedisNode* const node = node_of(key);
    return node == nullptr || node->pick(0) == nullptr || node->window().admits(buckets, ahead, now);
  };
  if (!topology_->is_sharded()) return admits({}) ? Room::yes : Room::none;
  return all_buckets(question.charges, admits) ? Room::yes : Room::not_here;
}

void RedisStore::give_up(const Question& question, Answers& answers) {
  const Time since = loop_.now().time - options_.link.timeout;
  const bool replies = all_buckets(question.charges, [&](Key key) {
    RedisNode* const node = node_of(key);
    return node != nullptr && node->heard_at() >= since;
  });
  if (replies) return Store::give_up(question, answers);
  health_.count(Trouble::timeout);
  answers.answer(question.ticket, Error{Fault::unavailable, "Redis did not reply in time"});
}

void RedisStore::still_down(RedisLink& link, std::string_view why) {
  if (!up_ && !topology_->is_up()) went_down(cause_at(link.target(), why));
}

void RedisStore::went_down(std::string_view why) {
  const bool was_up = std::exchange(up_, false);
  settled_ = true;
  health_.went_down(was_up, why, loop_.now().time);
  if (was_up && options_.in_doubt) options_.in_doubt();
}

// A cluster is up when all its nodes are.
void RedisStore::came_up() {
  if (!topology_->is_up()) return;
  up_ = true;
  settled_ = true;
  health_.came_up(loop_.now().time);
}

void RedisStore::forget_denials(const Asked& asked) {
  if (options_.denials == nullptr) return;
  for (std::size_t i = 0; i < asked.entries(); ++i) options_.denials->forget(asked.key(i));
}

void RedisStore::drop_denials(const Asked& asked, std::string_view but) {
  if (options_.denials == nullptr) return;
  for (std::size_t i = 0; i < asked.entries(); ++i) options_.denials->drop(asked.key(i), but);
}

std::string RedisStore::key_of(Key key) const {
  std::string text;
  append_key(keys_.prefix, keys_.hash_tag, key, text);
  return text;
}

}  // namespace weir::redis
