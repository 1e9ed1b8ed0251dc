#include "weir/redis/topology_probe.h"

#include <utility>

namespace weir::redis {

TopologyProbe::TopologyProbe(Loop& loop, Owner& owner, RedisLink::Options options,
                             std::vector<std::string_view> command)
    : owner_(owner), command_(std::move(command)), link_(loop, *this, std::move(options)) {
  link_.start();
}

bool TopologyProbe::ask() {
  if (asked_ || !link_.send(0, command_, Effect::reads)) return false;
  asked_ = true;
  link_.flush();
  return true;
}

void TopologyProbe::replied(RedisLink&, Tag, const resp::Reply& reply) {
  asked_ = false;
  const Result<void> useful = owner_.replied(*this, reply);
  const std::string why = useful ? std::string() : useful.error().detail;
  failing_ = !useful;
  if (std::exchange(useless_why_, why) != why && !useful) owner_.failed(cause_at(link_.target(), why));
}

void TopologyProbe::lost(RedisLink&, Tag, Lost) {
  asked_ = false;
}

void TopologyProbe::pushed(RedisLink&, const resp::Reply& push) {
  owner_.pushed(*this, push);
}

void TopologyProbe::changed(RedisLink& link, std::string_view why) {
  failing_ = !link.is_up();
  if (link.is_up()) {
    ask();
  } else {
    owner_.failed(cause_at(link.target(), why));
  }
}

void TopologyProbe::still_down(RedisLink& link, std::string_view why) {
  owner_.failed(cause_at(link.target(), why));
}

}  // namespace weir::redis
