// One Redis: a few links to the same address, and whether it counts as up (availability.h). A bucket's questions go
// over one of the links, so that they stay in order; while that one is down, over another.
//
// It sends the probes by itself, over its links in turn.
//
// Thread safety: none; it belongs to its loop.
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
    // A link has come up, then `why` is empty, or the node is down.
    virtual void changed(RedisNode& node, RedisLink& link, std::string_view why) = 0;
    virtual void still_down(RedisLink& link, std::string_view why) { (void)link, (void)why; }
    // The command of a probe, valid until the next call.
    virtual std::span<const std::string_view> probe(RedisNode& node) = 0;
    // Whether the reply to a probe shows that the node decides.
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

  // The link for a bucket of this hash; null: the node is down, or every connection was lost just now.
  RedisLink* pick(std::uint64_t hash) const noexcept;

  // The owner tells what the replies to its questions were.
  void note_decision() noexcept { availability_.decided(); }
  // `why`: what the reply was instead.
  void note_odd_reply(std::string_view why);

  // Sends a probe unless something is in flight: finds out whether Redis replies.
  void probe();

  // Buckets in flight on all links.
  const FlightWindow& window() const noexcept { return window_; }
  // When it was last heard on any link.
  Time heard_at() const noexcept {
    Time latest{};
    for (const auto& link : links_) latest = std::max(latest, link->heard_at());
    return latest;
  }

  // All links, as RedisLink::reset().
  void reset(std::string_view why) {
    for (const auto& link : links_) link->reset(why);
  }

 private:
  // Ours; nobody else's tag is all ones but one.
  static constexpr Tag kProbe = ~Tag{1};

  void replied(RedisLink& link, Tag tag, const resp::Reply& reply) override;
  void lost(RedisLink& link, Tag tag, Lost how) override;
  void unreplicated(RedisLink&) override { owner_.unreplicated(); }
  void changed(RedisLink& link, std::string_view why) override;
  void still_down(RedisLink& link, std::string_view why) override { owner_.still_down(link, why); }
  bool has_failed(const RedisLink& link) const noexcept;
  void send_probe();
  void arm();

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
