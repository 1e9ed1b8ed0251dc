// One Redis server: a few links to the same address, and whether it counts as up (availability.h). Commands for one
// bucket use the same link, so that they stay in order; while it is down, they use another.
//
// It sends its own probes, over its links in turn.
//
// Thread safety: none; use it on its loop's thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "weir/redis/availability.h"
#include "weir/redis/redis_link.h"

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
    // A link has come up (`why` is empty) or the node is down.
    virtual void changed(RedisNode& node, RedisLink& link, std::string_view why) = 0;
    virtual void still_down(RedisLink& link, std::string_view why) { (void)link, (void)why; }
    // Returns the command to probe with, valid until the next call.
    virtual std::span<const std::string_view> probe(RedisNode& node) = 0;
    // Returns whether the reply to a probe is a decision.
    virtual bool accepts_probe(RedisNode& node, const resp::Reply& reply) = 0;
  };

  // Loop and owner must outlive the node.
  RedisNode(Loop& loop, Owner& owner, const RedisLink::Options& options, std::size_t links);
  ~RedisNode() override;

  void start() {
    for (const auto& link : links_) link->start();
  }
  const Target& target() const noexcept { return links_.front()->target(); }
  bool is_up() const noexcept { return availability_.is_up(); }

  // Returns the link for a bucket with this hash; null if the node is down or every connection was just lost.
  RedisLink* pick(std::uint64_t hash) const noexcept;

  // The owner reports each reply that is a decision.
  void note_decision() noexcept { availability_.decided(); }
  // The owner reports a reply that is not a decision; `why` describes it.
  void note_odd_reply(std::string_view why);

  // Sends a probe unless the node is down or a probe is in flight, to find out whether Redis replies.
  void probe();

  // Buckets in flight on all links.
  const FlightWindow& window() const noexcept { return window_; }
  // Returns when the last bytes arrived on any link.
  Time heard_at() const noexcept {
    Time latest{};
    for (const auto& link : links_) latest = std::max(latest, link->heard_at());
    return latest;
  }

  // Calls RedisLink::reset() on all links.
  void reset(std::string_view why) {
    for (const auto& link : links_) link->reset(why);
  }

 private:
  // Reserved for probes; no other tag has this value.
  static constexpr Tag kProbe = ~Tag{1};

  void replied(RedisLink& link, Tag tag, const resp::Reply& reply) override;
  void lost(RedisLink& link, Tag tag, Lost how) override;
  void unreplicated(RedisLink&) override { owner_.unreplicated(); }
  void changed(RedisLink& link, std::string_view why) override;
  void still_down(RedisLink& link, std::string_view why) override { owner_.still_down(link, why); }
  bool has_failed(const RedisLink& link) const noexcept;
  void send_probe();
  void set_timer();

  Loop& loop_;
  Owner& owner_;
  const Duration timeout_;
  Availability availability_;
  FlightWindow window_;  // outlives the links
  std::vector<std::unique_ptr<RedisLink>> links_;
  std::size_t next_link_ = 0;  // of the next probe
  bool probing_ = false;       // a probe is in flight
  Loop::TimerId timer_ = 0;    // of the next probe
};

}  // namespace weir::redis
