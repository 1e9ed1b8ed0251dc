// How a RedisStore handles questions when Redis is busy, and how it drops cached denials.
#include <algorithm>
#include <string>

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

void RedisStore::forget_denials(const Asked& asked) {
  if (options_.denials == nullptr) return;
  for (std::size_t i = 0; i < asked.entries(); ++i) options_.denials->forget(asked.key(i));
}

void RedisStore::drop_denials(const Asked& asked) {
  if (options_.denials == nullptr) return;
  for (std::size_t i = 0; i < asked.entries(); ++i) options_.denials->drop(asked.key(i));
}

std::string RedisStore::key_of(Key key) const {
  std::string text;
  append_key(keys_.prefix, keys_.hash_tag, key, text);
  return text;
}

}  // namespace weir::redis
