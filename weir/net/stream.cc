#include "weir/net/stream.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "weir/base/assert.h"

namespace weir {
namespace {

// Bytes read from one stream in one turn, so that other streams get their turn.
constexpr std::size_t kReadBytes = 64 << 10;
// A buffer larger than this is freed when it is empty.
constexpr std::size_t kKeptBytes = 64 << 10;

}  // namespace

Stream::Stream(Loop& loop, Owner& owner, Options options) : loop_(loop), owner_(owner), options_(std::move(options)) {}

Stream::~Stream() {
  if (destroyed_ != nullptr) *destroyed_ = true;
  release();
}

// Calls the owner. Returns false if that closed or destroyed the stream; then members must not be accessed.
template <class Call>
bool Stream::call_owner(Call call) {
  bool destroyed = false;
  destroyed_ = &destroyed;
  call();
  if (destroyed) return false;
  destroyed_ = nullptr;
  return state_ != State::closed;
}

void Stream::set_timer(Time when, void (Stream::*run)()) {
  loop_.cancel(timer_);
  timer_ = loop_.at(when, [this, run] {
    timer_ = 0;
    (this->*run)();
  });
}

void Stream::connect(Target target) {
  WEIR_ASSERT(state_ == State::idle);
  target_ = std::move(target);
  state_ = State::resolving;
  deadline_ = loop_.now().time + options_.connect_timeout;
  why_ = {Fault::timeout, "cannot connect to " + target_.print() + ": name lookup timed out"};
  if (auto literal = target_.literal()) {
    addresses_ = {std::move(*literal)};
    try_next();
  } else if (options_.resolver == nullptr) {
    why_ = {Fault::invalid, "cannot connect to " + target_.print() + ": no resolver for host names"};
    set_timer(Time{}, &Stream::fail);
  } else {
    set_timer(deadline_, &Stream::fail);
    lookup_ = options_.resolver->resolve(loop_, target_, [this](const auto& addresses) { resolved(addresses); });
  }
}

void Stream::resolved(const Result<std::vector<Address>>& addresses) {
  if (!addresses) {
    why_ = addresses.error();
    return fail();
  }
  addresses_ = *addresses;
  lookup_.reset();
  try_next();
}

// Starts a connection to the next address. Each address gets an equal share of the time that is left, so that one that
// does not answer cannot use it all.
void Stream::try_next() {
  state_ = State::connecting;
  while (next_address_ < addresses_.size()) {
    const auto left = static_cast<int>(addresses_.size() - next_address_);
    const Address& address = addresses_[next_address_++];
    auto socket = begin_connect(address);
    if (!socket) {
      why_ = socket.error();
      continue;
    }
    socket_ = std::move(*socket);
    watching_ = EPOLLOUT;
    if (auto watched = loop_.watch(socket_.fd(), watching_, *this); !watched) {
      why_ = watched.error();
      socket_ = Socket();
      continue;
    }
    const Time now = loop_.now().time;
    return set_timer(now + std::max(deadline_ - now, Duration::zero()) / left, &Stream::connect_timed_out);
  }
  set_timer(Time{}, &Stream::fail);
}

void Stream::connect_timed_out() {
  give_up_attempt(
      {Fault::timeout, "cannot connect to " + addresses_[next_address_ - 1].print() + ": connect timed out"});
}

void Stream::give_up_attempt(Error why) {
  why_ = std::move(why);
  loop_.forget(socket_.fd(), *this);
  socket_ = Socket();
  try_next();
}

void Stream::attempt_ended() {
  const auto outcome = connect_error(socket_, addresses_[next_address_ - 1]);
  if (!outcome) return give_up_attempt(outcome.error());
  if (options_.tls != nullptr) return begin_handshake();
  watch();
  finish_opening();
}

void Stream::begin_handshake() {
  state_ = State::handshaking;
  set_timer(deadline_, &Stream::handshake_timed_out);
  auto channel = options_.tls->connect(options_.server_name.empty() ? target_.host : options_.server_name);
  if (!channel) {
    why_ = {channel.error().fault, "cannot connect to " + target_.print() + ": " + channel.error().detail};
    return fail();
  }
  channel_ = std::move(*channel);
  decrypt({});
}

void Stream::handshake_timed_out() {
  why_ = {Fault::timeout, "cannot connect to " + target_.print() + ": TLS handshake timed out"};
  fail();
}

// Returns false if the owner closed or destroyed the stream.
bool Stream::finish_opening() {
  loop_.cancel(std::exchange(timer_, 0));
  state_ = State::connected;
  addresses_.clear();
  put(std::exchange(early_, {}));
  return call_owner([&] { owner_.connected(); });
}

void Stream::ready(std::uint32_t events) {
  if (state_ == State::connecting) return attempt_ended();
  if ((events & EPOLLOUT) != 0) flush();
  watch();
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read();
}

void Stream::read() {
  std::array<char, kReadBytes> bytes;
  const ssize_t got = socket_.receive(bytes);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    const std::string how = got == 0 ? " closed the connection" : std::string(": ") + std::strerror(errno);
    why_ = {Fault::unavailable, (got == 0 ? "" : "lost the connection to ") + target_.print() + how};
    return fail();
  }
  const std::string_view fresh(bytes.data(), static_cast<std::size_t>(got));
  if (channel_ != nullptr) return decrypt(fresh);
  call_owner([&] { owner_.received(fresh); });
}

void Stream::decrypt(std::string_view bytes) {
  std::string plain;
  const auto outcome = channel_->receive(bytes, plain, out_);
  flush();
  watch();
  if (state_ == State::handshaking && channel_->established() && !finish_opening()) return;
  if (!plain.empty() && !call_owner([&] { owner_.received(plain); })) return;
  if (!outcome) {
    const std::string_view what = state_ == State::handshaking ? "cannot connect to " : "lost the connection to ";
    why_ = {outcome.error().fault, std::string(what) + target_.print() + ": " + outcome.error().detail};
    return fail();
  }
  if (!channel_->peer_closed()) return;
  why_ = {Fault::unavailable, target_.print() + " closed the connection"};
  fail();
}

// Returns the number of bytes that the kernel accepted.
std::size_t Stream::send_now(std::string_view bytes) noexcept {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t took = socket_.send(bytes.substr(sent));
    if (took < 0 && errno == EINTR) continue;
    if (took < 0 && errno == EAGAIN) break;
    if (took < 0) {
      // The connection is broken. Bytes that the peer sent before can still be read, followed by EOF.
      shutdown(socket_.fd(), SHUT_RDWR);
      return bytes.size();
    }
    sent += static_cast<std::size_t>(took);
  }
  return sent;
}

bool Stream::write(std::string_view bytes) {
  const std::size_t kept = unsent_bytes();
  if (state_ == State::closed || kept > options_.unsent_bytes_max || bytes.size() > options_.unsent_bytes_max - kept)
    return false;
  if (state_ == State::connected) return put(bytes);
  early_.append(bytes);
  return true;
}

bool Stream::put(std::string_view bytes) {
  // Compacts only when more than half is sent, so that each byte is moved about once.
  if (sent_ > out_.size() / 2) out_.erase(0, std::exchange(sent_, 0));
  const bool idle = out_.empty();
  if (channel_ != nullptr) {
    if (!channel_->send(bytes, out_)) return false;
    if (idle) flush();
  } else {
    out_.append(bytes.substr(idle ? send_now(bytes) : 0));
  }
  watch();
  return true;
}

void Stream::flush() {
  sent_ += send_now(std::string_view(out_).substr(sent_));
  if (sent_ < out_.size()) return;
  sent_ = 0;
  out_.clear();
  if (out_.capacity() > kKeptBytes) std::string().swap(out_);
}

void Stream::watch() {
  const std::uint32_t wanted = EPOLLIN | (unsent_bytes() == 0 ? 0u : EPOLLOUT);
  if (wanted == watching_) return;
  watching_ = wanted;
  loop_.change(socket_.fd(), watching_, *this);
}

void Stream::fail() {
  release();
  owner_.closed(Error(why_));
}

void Stream::close() {
  if (state_ == State::connected) {
    if (channel_ != nullptr) channel_->close(out_);
    flush();
  }
  release();
}

void Stream::release() noexcept {
  state_ = State::closed;
  lookup_.reset();
  loop_.cancel(std::exchange(timer_, 0));
  if (socket_) loop_.forget(socket_.fd(), *this);
  socket_ = Socket();
}

}  // namespace weir
