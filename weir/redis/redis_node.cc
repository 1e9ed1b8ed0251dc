#include "weir/redis/redis_node.h"

#include <algorithm>
#include <string>

namespace weir::redis {

RedisNode::RedisNode(Loop& loop, Owner& owner, const RedisLink::Options& options, std::size_t links)
    : loop_(loop), owner_(owner), timeout_(options.timeout), availability_(options.timeout), window_(options.timeout) {
  for (std::size_t i = 0; i < links; ++i) {
    links_.push_back(std::make_unique<RedisLink>(loop, static_cast<RedisLink::Owner&>(*this), options));
    links_.back()->count_in(&window_);
  }
}

RedisNode::~RedisNode() {
  loop_.cancel(timer_);
}

RedisLink* RedisNode::pick(std::uint64_t hash) const noexcept {
  if (!is_up()) return nullptr;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    RedisLink& link = *links_[(hash + i) % links_.size()];
    if (link.is_up()) return &link;
  }
  return nullptr;
}

void RedisNode::note_odd_reply(std::string_view why) {
  if (availability_.odd(loop_.now().time)) owner_.changed(*this, *links_.front(), why);
  set_timer();
}

void RedisNode::changed(RedisLink& link, std::string_view why) {
  if (link.is_up()) {
    availability_.connected();
    set_timer();
    owner_.changed(*this, link, {});
  } else if (has_failed(link)) {
    availability_.failed(loop_.now().time);
    set_timer();
    owner_.changed(*this, link, why);
  }
}

// Returns whether the node is down now that this link is. A lost connection is replaced at once; that is no outage
// unless reconnecting fails.
bool RedisNode::has_failed(const RedisLink& link) const noexcept {
  if (link.is_stalled()) {
    const Time since = loop_.now().time - timeout_;
    return std::ranges::none_of(links_, [&](const auto& other) { return other->heard_at() > since; });
  }
  return std::ranges::none_of(links_, [](const auto& other) { return other->is_up() || other->is_reconnecting(); });
}

void RedisNode::set_timer() {
  loop_.cancel(timer_);
  timer_ = 0;
  const Time when = availability_.probe_at();
  if (when == Time::max() || probing_) return;
  timer_ = loop_.at(std::max(when, loop_.now().time), [this] {
    timer_ = 0;
    send_probe();
  });
}

// Does nothing without a ready link: the next one to come up triggers a probe.
void RedisNode::send_probe() {
  const Time now = loop_.now().time;
  for (std::size_t i = 0; i < links_.size() && !probing_; ++i) {
    RedisLink& link = *links_[next_link_++ % links_.size()];
    if (!link.is_ready()) continue;
    availability_.probe_sent(now);
    // Sent as a read: waiting for replicas would delay the reply.
    probing_ = link.send(kProbe, owner_.probe(*this), now + availability_.probe_timeout(), Effect::reads);
    if (probing_) link.flush();
    if (!probing_) set_timer();  // full: try again later
  }
}

void RedisNode::probe() {
  if (is_up() && !probing_) send_probe();
}

void RedisNode::replied(RedisLink& link, Tag tag, const resp::Reply& reply) {
  if (tag != kProbe) return owner_.replied(*this, link, tag, reply);
  probing_ = false;
  if (!owner_.accepts_probe(*this, reply)) {
    availability_.probe_failed();
    if (is_up()) note_odd_reply("probe reply is not a decision: " + std::string(reply.root().text));
  } else if (availability_.probe_answered(loop_.now().time)) {
    owner_.changed(*this, link, {});
  }
  set_timer();
}

void RedisNode::lost(RedisLink& link, Tag tag, Lost how) {
  if (tag != kProbe) return owner_.lost(*this, link, tag, how);
  probing_ = false;
  availability_.probe_failed();
  set_timer();
}

}  // namespace weir::redis
