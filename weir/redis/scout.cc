#include "weir/redis/scout.h"

#include <utility>

namespace weir::redis {

Scout::Scout(Loop& loop, Owner& owner, RedisLink::Options options, std::vector<std::string_view> command)
    : owner_(owner), command_(std::move(command)), link_(loop, *this, std::move(options)) {
  link_.start();
}

bool Scout::ask() {
  if (asked_ || !link_.send(0, command_, Effect::reads)) return false;
  asked_ = true;
  link_.flush();
  return true;
}

void Scout::replied(RedisLink&, Tag, const resp::Reply& reply) {
  asked_ = false;
  owner_.heard(*this, reply);
}

void Scout::lost(RedisLink&, Tag, Lost) {
  asked_ = false;
}

void Scout::pushed(RedisLink&, const resp::Reply& push) {
  owner_.told(*this, push);
}

void Scout::changed(RedisLink& link, std::string_view why) {
  failing_ = !link.is_up();
  if (link.is_up()) {
    ask();
  } else {
    owner_.failed(cause_at(link.target(), why));
  }
}

void Scout::still_down(RedisLink& link, std::string_view why) {
  owner_.failed(cause_at(link.target(), why));
}

}  // namespace weir::redis
