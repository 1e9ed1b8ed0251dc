// How an outgoing transport opens: name lookup, one address after the other, TLS handshake.
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"
#include "weir/net/transport.h"

namespace weir {

std::string Transport::peer() const {
  return dialing_ != nullptr ? dialing_->target.print() : "the peer";
}

// Reports the failure at the end of the turn: the caller may be the owner.
void Transport::fail_later(Error why) {
  why_ = std::make_unique<Error>(std::move(why));
  later();
}

void Transport::connect(Target target) {
  WEIR_ASSERT(state_ == State::idle && dialing_ != nullptr);
  dialing_->target = std::move(target);
  dialing_->deadline = loop_.now().time + open_timeout_;
  state_ = State::resolving;
  if (auto literal = dialing_->target.literal()) return resolved(std::vector<Address>{std::move(*literal)});
  if (dialing_->resolver == nullptr) {
    return fail_later({Fault::invalid, "cannot connect to " + peer() + ": no resolver for host names"});
  }
  set_timer(dialing_->deadline, &Transport::open_timed_out);
  dialing_->lookup =
      dialing_->resolver->resolve(loop_, dialing_->target, [this](const auto& addresses) { resolved(addresses); });
}

void Transport::resolved(const Result<std::vector<Address>>& addresses) {
  if (!addresses) return fail_later(addresses.error());
  dialing_->addresses = *addresses;
  dialing_->lookup.reset();
  if (dialing_->may_dial) {
    std::erase_if(dialing_->addresses, [this](const Address& address) { return !dialing_->may_dial(address); });
    dialing_->last_failure = {Fault::invalid, "cannot connect to " + peer() + ": its address is not allowed"};
  }
  try_next();
}

// Starts a connection to the next address. Each address gets an equal share of the time that is left, so that one that
// does not answer cannot use it all.
void Transport::try_next() {
  state_ = State::connecting;
  Dialing& dialing = *dialing_;
  while (dialing.next_address < dialing.addresses.size()) {
    const auto left = static_cast<int>(dialing.addresses.size() - dialing.next_address);
    const Address& address = dialing.addresses[dialing.next_address++];
    auto socket = begin_connect(address);
    if (!socket) {
      dialing.last_failure = socket.error();
      continue;
    }
    socket_ = std::move(*socket);
    watching_ = EPOLLOUT;
    if (auto watched = loop_.watch(socket_.fd(), watching_, *this); !watched) {
      dialing.last_failure = watched.error();
      socket_ = Socket();
      continue;
    }
    const Time now = loop_.now().time;
    return set_timer(now + std::max(dialing.deadline - now, Duration::zero()) / left, &Transport::connect_timed_out);
  }
  fail_later(dialing.last_failure);
}

void Transport::connect_timed_out() {
  const Address& address = dialing_->addresses[dialing_->next_address - 1];
  give_up_attempt({Fault::timeout, "cannot connect to " + address.print() + ": connect timed out"});
}

void Transport::give_up_attempt(Error why) {
  dialing_->last_failure = std::move(why);
  loop_.forget(socket_.fd(), *this);
  socket_ = Socket();
  try_next();
}

void Transport::attempt_ended() {
  const auto outcome = connect_error(socket_, dialing_->addresses[dialing_->next_address - 1]);
  if (!outcome) return give_up_attempt(outcome.error());
  if (dialing_->tls != nullptr) return begin_handshake();
  finish_opening();
}

void Transport::begin_handshake() {
  state_ = State::handshaking;
  set_timer(dialing_->deadline, &Transport::open_timed_out);
  auto channel = dialing_->tls->connect(dialing_->server_name.empty() ? dialing_->target.host : dialing_->server_name);
  if (!channel) return fail({channel.error().fault, "cannot connect to " + peer() + ": " + channel.error().detail});
  secure_ = std::make_unique<Secure>(Secure{std::move(*channel)});
  decrypt({});
}

void Transport::open_timed_out() {
  const char* const step = state_ == State::resolving ? ": name lookup timed out" : ": TLS handshake timed out";
  fail({Fault::timeout, "cannot connect to " + peer() + step});
}

void Transport::finish_opening() {
  loop_.cancel(std::exchange(timer_, 0));
  state_ = State::open;
  if (dialing_ != nullptr) {
    dialing_->addresses = {};
    dialing_->tls = nullptr;
    dialing_->may_dial = {};
  }
  call_owner([this] { owner_.opened(); });
  if (closed()) return;
  write();
}

}  // namespace weir
