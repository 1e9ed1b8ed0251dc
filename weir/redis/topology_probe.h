// Asks one server one question about who serves what, over a connection of its own: as soon as it is connected, and
// again whenever told.
//
// Thread safety: none; it belongs to its loop.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/net/loop.h"
#include "weir/net/resolve.h"
#include "weir/redis/redis_link.h"

namespace weir::redis {

class TopologyProbe final : private RedisLink::Owner {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // An answer, an error reply among them. May not destroy the probe.
    virtual void heard(const TopologyProbe& probe, const resp::Reply& reply) = 0;
    // The server spoke unasked.
    virtual void told(const TopologyProbe& probe, const resp::Reply& push) { (void)probe, (void)push; }
    // It cannot be asked, for a reason that is new.
    virtual void failed(std::string_view why) = 0;
  };

  // Loop and owner must outlive the probe. Connects at once.
  TopologyProbe(Loop& loop, Owner& owner, RedisLink::Options options, std::vector<std::string_view> command);

  const Target& target() const noexcept { return link_.target(); }
  // The last try to connect has failed.
  bool is_failing() const noexcept { return failing_; }
  // False: not connected, or it has not answered the last time yet.
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
};

// Told why a server cannot be asked, while none of those that know the masters can be; empty: nobody is told.
using NobodyKnows = std::function<void(std::string_view why)>;

}  // namespace weir::redis
