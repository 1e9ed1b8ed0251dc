// One Redis: a few links to the same address. A bucket's questions go over one of them, so that they stay in order;
// while that one is down, over another. When a reply is overdue on one link, the others are under suspicion too until
// Redis is heard on them: otherwise every link would cost somebody a timeout.
//
// Thread safety: none; it belongs to its loop.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "weir/store/redis/redis_link.h"

namespace weir::redis {

class RedisNode final : private RedisLink::Owner {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // As RedisLink::Owner.
    virtual void replied(RedisNode& node, RedisLink& link, Tag tag, const resp::Reply& reply) = 0;
    virtual void lost(RedisNode& node, RedisLink& link, Tag tag, Lost how) = 0;
    virtual void unreplicated() {}
    // A link has come up or gone down; is_up() tells what that means for the node.
    virtual void changed(RedisNode& node, RedisLink& link, std::string_view why) = 0;
    virtual void still_down(RedisLink& link, std::string_view why) { (void)link, (void)why; }
  };

  // Loop and owner must outlive the node.
  RedisNode(Loop& loop, Owner& owner, const RedisLink::Options& options, std::size_t links)
      : loop_(loop), owner_(owner) {
    for (std::size_t i = 0; i < links; ++i)
      links_.push_back(std::make_unique<RedisLink>(loop, static_cast<RedisLink::Owner&>(*this), options));
  }

  void start() {
    for (const auto& link : links_) link->start();
  }
  const Target& target() const noexcept { return links_.front()->target(); }
  bool is_up() const noexcept { return pick(0) != nullptr; }

  // The link for a bucket of this hash; null: none is up.
  RedisLink* pick(std::uint64_t hash) const noexcept {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      RedisLink& link = *links_[(hash + i) % links_.size()];
      if (link.is_up() && link.heard_at() >= suspicious_since_) return &link;
    }
    return nullptr;
  }

  // All links, as RedisLink::reset().
  void reset(std::string_view why) {
    for (const auto& link : links_) link->reset(why);
  }

 private:
  // Ours; nobody else's tag is all ones but one.
  static constexpr Tag kPing = ~Tag{1};

  void replied(RedisLink& link, Tag tag, const resp::Reply& reply) override {
    if (tag == kPing) {
      owner_.changed(*this, link, {});
    } else {
      owner_.replied(*this, link, tag, reply);
    }
  }
  void lost(RedisLink& link, Tag tag, Lost how) override {
    if (tag != kPing) owner_.lost(*this, link, tag, how);
  }
  void unreplicated(RedisLink&) override { owner_.unreplicated(); }
  void changed(RedisLink& link, std::string_view why) override {
    if (link.is_stalled()) suspect();
    owner_.changed(*this, link, why);
  }
  void still_down(RedisLink& link, std::string_view why) override { owner_.still_down(link, why); }
  void suspect() {
    constexpr std::array<std::string_view, 1> kCommand = {"PING"};
    suspicious_since_ = loop_.now().time;
    for (const auto& link : links_) {
      if (link->is_up() && link->send(kPing, kCommand, Effect::reads)) link->flush();
    }
  }

  Loop& loop_;
  Owner& owner_;
  std::vector<std::unique_ptr<RedisLink>> links_;
  Time suspicious_since_{};
};

}  // namespace weir::redis
