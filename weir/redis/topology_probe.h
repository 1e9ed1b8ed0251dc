// Sends one command about the topology to one server, over its own connection: when it connects, and whenever ask() is
// called.
//
// Thread safety: none; use it on its loop's thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/net/loop.h"
#include "weir/net/resolve.h"
#include "weir/redis/redis_link.h"

namespace weir::redis {

class TopologyProbe final : private RedisLink::Owner {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The server replied, possibly with an error. Returns why the reply names no master. Must not destroy the probe.
    virtual Result<void> replied(const TopologyProbe& probe, const resp::Reply& reply) = 0;
    // The server sent a push message.
    virtual void pushed(const TopologyProbe& probe, const resp::Reply& push) { (void)probe, (void)push; }
    // The server cannot be queried or names no master, for a new reason.
    virtual void failed(std::string_view why) = 0;
  };

  // Loop and owner must outlive the probe. Connects at once.
  TopologyProbe(Loop& loop, Owner& owner, RedisLink::Options options, std::vector<std::string_view> command);

  const Target& target() const noexcept { return link_.target(); }
  // True if the last attempt to connect failed, or the last reply named no master.
  bool is_failing() const noexcept { return failing_; }
  // Sends the command. Returns false if it is not connected or the last command is unanswered.
  bool ask();

 private:
  void replied(RedisLink& link, Tag tag, const resp::Reply& reply) override;
  void lost(RedisLink& link, Tag tag, Lost how) override;
  void pushed(RedisLink& link, const resp::Reply& push) override;
  void changed(RedisLink& link, std::string_view why) override;
  void still_down(RedisLink& link, std::string_view why) override;

  Owner& owner_;
  const std::vector<std::string_view> command_;
  RedisLink link_;
  bool asked_ = false;
  bool failing_ = false;
  std::string useless_why_;  // why the last reply named no master
};

// Called with the reason when none of the servers that should know the masters names one. May be empty.
using OnDiscoveryFailed = std::function<void(std::string_view why)>;

}  // namespace weir::redis
