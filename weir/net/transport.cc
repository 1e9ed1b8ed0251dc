#include "weir/net/transport.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "weir/base/assert.h"

namespace weir {
namespace {

// How much plaintext is encrypted at once. The next piece follows when this one was sent.
constexpr std::size_t kPieceBytes = 64 << 10;
// Empty buffers larger than this are freed.
constexpr std::size_t kKeptBytes = 4 << 10;
// How long a peer may keep sending after we have closed our side.
constexpr Duration kLingerTime = std::chrono::seconds{2};

// Edge-triggered: the kernel reports each arrival once and does not recheck every socket in the next turn. unread_
// makes watch() re-arm the socket when reported bytes may be left.
constexpr std::uint32_t kAlways = EPOLLET;
constexpr std::uint32_t kToRead = EPOLLIN | EPOLLRDHUP;
constexpr std::uint32_t kEnds = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

void free_if_large(std::string& buffer) {
  if (buffer.empty() && buffer.capacity() > kKeptBytes) std::string().swap(buffer);
}

void free_if_empty(std::string& buffer) noexcept {
  if (buffer.empty()) std::string().swap(buffer);
}

}  // namespace

Transport::Transport(Loop& loop, Owner& owner, Options options)
    : loop_(loop),
      owner_(owner),
      unread_bytes_max_(static_cast<std::uint32_t>(options.unread_bytes_max)),
      low_water_(static_cast<std::uint32_t>(options.low_water)),
      write_timeout_(options.write_timeout),
      open_timeout_(options.open_timeout),
      dialing_(std::make_unique<Dialing>(Dialing{options.resolver, std::move(options.tls),
                                                 std::move(options.server_name), std::move(options.may_dial)})) {}

Transport::Transport(Loop& loop, Owner& owner, Socket accepted, std::unique_ptr<TlsChannel> channel,
                     const Options& options)
    : loop_(loop),
      owner_(owner),
      socket_(std::move(accepted)),
      unread_bytes_max_(static_cast<std::uint32_t>(options.unread_bytes_max)),
      low_water_(static_cast<std::uint32_t>(options.low_water)),
      write_timeout_(options.write_timeout),
      open_timeout_(options.open_timeout) {
  if (channel != nullptr) secure_ = std::make_unique<Secure>(Secure{std::move(channel)});
}

Transport::~Transport() {
  WEIR_ASSERT(!in_callback_);
  release();
}

void Transport::start() {
  WEIR_ASSERT(state_ == State::idle && dialing_ == nullptr);
  watching_ = kAlways | kToRead;
  if (auto watched = loop_.watch(socket_.fd(), watching_, *this); !watched) return fail_later(watched.error());
  if (secure_ != nullptr) {
    state_ = State::handshaking;
    return set_timer(loop_.now().time + open_timeout_, &Transport::open_timed_out);
  }
  state_ = State::open;
  opened_due_ = true;
  later();
}

void Transport::set_timer(Time when, void (Transport::*run)()) {
  loop_.cancel(timer_);
  timer_ = loop_.at(when, [this, run] {
    timer_ = 0;
    (this->*run)();
  });
}

void Transport::ready(std::uint32_t events) {
  if (state_ == State::connecting) {
    attempt_ended();
  } else {
    if ((events & EPOLLOUT) != 0) write();
    if ((events & (EPOLLIN | kEnds)) == 0) {
      // Nothing to read.
    } else if (wants_input()) {
      read();
      // EOF is reported together with the last bytes, but is read separately.
      unread_ = unread_ || (events & kEnds) != 0;
    } else {
      unread_ = true;
      note_reset(events);
    }
  }
  settle();
}

// Makes the owner calls that are due. Also runs after each event.
void Transport::settle() {
  if (closed()) {
    if (std::exchange(finished_due_, false)) call_owner([this] { owner_.finished(); });
    return;
  }
  if (must_fail()) return fail_for_why();
  if (std::exchange(opened_due_, false)) call_owner([this] { owner_.opened(); });
  if (writable_due_ && !closed()) {
    writable_due_ = false;
    call_owner([this] { owner_.writable(); });
  }
  if (redeliver_ && !closed()) {
    redeliver_ = false;
    if (!paused_) deliver({});
  }
  if (poll_ && !closed()) {
    poll_ = false;
    if (wants_input()) read();
  }
  deliver_end();
  if (closed()) return;
  if (must_fail()) return fail_for_why();
  if (finish_is_complete()) return end_finish();
  watch();
}

bool Transport::wants_input() const noexcept {
  if (state_ == State::handshaking) return !eof_;
  return state_ == State::open && !eof_ && (!paused_ || finishing_);
}

void Transport::read() {
  const std::span<char> scratch = loop_.scratch().bytes;
  const ssize_t got = socket_.receive(scratch);
  unread_ = got == static_cast<ssize_t>(scratch.size()) || (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) return lost(errno);
  if (got == 0) return end_of_stream();
  if (finishing_) return;  // discarded
  const std::string_view fresh(scratch.data(), static_cast<std::size_t>(got));
  if (secure_ != nullptr) return decrypt(fresh);
  deliver(fresh);
}

void Transport::decrypt(std::string_view bytes) {
  std::string& plain = loop_.scratch().text;
  plain.clear();
  TlsChannel& channel = *secure_->channel;
  const auto outcome = channel.receive(bytes, plain, secure_->encrypted);
  write();  // handshake records, alerts
  if (!outcome) return tls_failed(outcome.error(), plain);
  if (state_ == State::handshaking && channel.established()) finish_opening();
  if (closed() || finishing_ || must_fail()) return;
  if (paused_) {
    held_.append(plain);
  } else if (!plain.empty()) {
    deliver(plain);
  }
  eof_ = eof_ || channel.peer_closed();
}

// On an accepted connection, sends the alert first and reports the failure when the client has had time to read it.
void Transport::tls_failed(const Error& why, std::string_view plain) {
  if (dialing_ == nullptr) {
    why_ = std::make_unique<Error>(why);
    finishing_ = true;
    half_closing_ = true;
    return write();
  }
  const bool opening = state_ == State::handshaking;
  if (!plain.empty() && !paused_) deliver(plain);
  if (closed() || finishing_) return;
  fail({why.fault, (opening ? "cannot connect to " : "lost the connection to ") + peer() + ": " + why.detail});
}

// Passes the bytes that were left, then `fresh`. Does not copy the left bytes again while none of them is consumed: a
// request may arrive in a million pieces.
void Transport::deliver(std::string_view fresh) {
  std::size_t used = 0;
  const bool direct = held_.empty();
  if (!direct) held_.append(fresh);
  const std::string_view all = direct ? fresh : std::string_view(held_);
  call_owner([&] { used = owner_.received(all); });
  if (closed()) return;
  WEIR_ASSERT(used <= all.size());
  if (finishing_) used = all.size();
  if (direct) {
    if (used < fresh.size()) held_.assign(fresh.substr(used));
  } else {
    held_.erase(0, used);
    free_if_large(held_);
  }
  if (held_.size() <= unread_bytes_max_) return;
  fail({Fault::too_large, "more than " + std::to_string(unread_bytes_max_) + " bytes from " + peer() + " wait"});
}

void Transport::end_of_stream() {
  eof_ = true;
  if (finishing_) return;
  if (why_ != nullptr) return fail_for_why();
  if (state_ == State::handshaking) {
    return fail({Fault::unavailable, "cannot connect to " + peer() + ": closed during the TLS handshake"});
  }
  if (secure_ != nullptr && !secure_->channel->peer_closed()) {
    return fail({Fault::unavailable, peer() + " closed the connection without a TLS close_notify"});
  }
}

void Transport::deliver_end() {
  if (!eof_ || end_reported_ || paused_ || finishing_ || state_ != State::open) return;
  end_reported_ = true;
  call_owner([this] { owner_.ended(); });
}

void Transport::lost(int error) {
  eof_ = true;
  if (finishing_) return;
  if (why_ != nullptr) return fail_for_why();
  fail({Fault::unavailable, "lost the connection to " + peer() + ": " + std::strerror(error)});
}

// The connection broke while reading is stopped. A client that is gone needs no answers. A server may have sent bytes
// before the reset that must be read first.
void Transport::note_reset(std::uint32_t events) {
  const bool reset = (events & EPOLLERR) != 0;
  const bool both_ends_closed = (events & EPOLLHUP) != 0 && !half_closed_;
  if (state_ != State::open || (!reset && (!both_ends_closed || dialing_ != nullptr))) return;
  int unread = 0;
  if (dialing_ != nullptr && !eof_ && (!held_.empty() || ioctl(socket_.fd(), FIONREAD, &unread) != 0 || unread > 0))
    return;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket_.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  lost(error != 0 ? error : ECONNRESET);
}

bool Transport::is_usable() const noexcept {
  return state_ == State::open && !eof_ && !finishing_ && why_ == nullptr && held_.empty();
}

bool Transport::is_quiet() const noexcept {
  char byte = 0;
  return is_usable() && recv(socket_.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

std::size_t Transport::unsent() const noexcept {
  const std::size_t encrypted = secure_ != nullptr ? secure_->encrypted.size() - secure_->sent : 0;
  return out_.size() + sending_.size() - sent_ + encrypted;
}

std::string_view Transport::next_plain() noexcept {
  return sending_.empty() ? std::string_view(out_) : std::string_view(sending_).substr(sent_);
}

void Transport::took_plain(std::size_t bytes) noexcept {
  taken_ += bytes;
  if (!sending_.empty()) {
    sent_ += bytes;
    if (sent_ < sending_.size()) return;
    sent_ = 0;
    sending_.clear();
  } else if (bytes == out_.size()) {
    out_.clear();
  } else if (bytes > 0) {
    // The owner keeps appending to out_; its current content is sent first.
    sending_.swap(out_);
    sent_ = bytes;
  }
}

std::string_view Transport::next_encrypted() {
  Secure& secure = *secure_;
  if (secure.sent == secure.encrypted.size()) {
    secure.encrypted.clear();
    secure.sent = 0;
    const std::string_view piece = state_ == State::open ? next_plain().substr(0, kPieceBytes) : std::string_view{};
    if (!piece.empty()) {
      if (const auto sent = secure.channel->send(piece, secure.encrypted); !sent) {
        write_failed(sent.error());
        return {};
      }
      took_plain(piece.size());
    }
  }
  return std::string_view(secure.encrypted).substr(secure.sent);
}

void Transport::flush() {
  if (state_ != State::open) return;
  write();
  if (must_fail() || writable_due_ || finish_is_complete()) later();
  watch();
}

// Writes as much as the kernel accepts.
void Transport::write() {
  write_blocked_ = false;
  while (!write_broken_) {
    const std::string_view bytes = secure_ != nullptr ? next_encrypted() : next_plain();
    if (bytes.empty()) {
      // During the handshake, out_ cannot be sent yet and goes before our end, unless the handshake has failed.
      const bool waits = state_ == State::handshaking && why_ == nullptr;
      if (!half_closing_ || half_closed_ || waits || !send_end()) break;
      continue;
    }
    const ssize_t sent = socket_.send(bytes);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) {
      write_blocked_ = true;
      // The write timeout starts when the peer has something to read.
      if ((watching_ & EPOLLOUT) == 0) last_progress_ = loop_.now().time;
      if (timer_ == 0) set_timer(last_progress_ + write_timeout_, &Transport::write_timed_out);
      break;
    }
    if (sent < 0) {
      write_failed({Fault::unavailable, "lost the connection to " + peer() + ": " + std::strerror(errno)});
      break;
    }
    last_progress_ = loop_.reading().time;
    if (secure_ != nullptr) {
      secure_->sent += static_cast<std::size_t>(sent);
    } else {
      took_plain(static_cast<std::size_t>(sent));
    }
  }
  if (write_broken_) out_.clear();
  // Report below the low water, and again when everything is sent, so that the owner knows when delayed bytes were
  // sent.
  if (unsent() >= low_water_) {
    above_ = true;
  } else if (std::exchange(above_, false)) {
    writable_due_ = !finishing_;
  }
  if (write_blocked_) {
    was_blocked_ = true;
  } else if (std::exchange(was_blocked_, false)) {
    writable_due_ = !finishing_;
  }
  free_if_large(out_);
  free_if_large(sending_);
  if (secure_ != nullptr) free_if_large(secure_->encrypted);
}

// Sends our end after all other bytes. Returns true if there is more to write first: the close_notify of TLS.
bool Transport::send_end() {
  if (secure_ != nullptr) {
    secure_->channel->close(secure_->encrypted);
    if (secure_->sent < secure_->encrypted.size()) return true;
  }
  half_closed_ = true;
  shutdown(socket_.fd(), SHUT_WR);
  if (finishing_) begin_linger();
  return false;
}

void Transport::write_failed(Error why) {
  write_broken_ = true;
  out_.clear();
  sending_.clear();
  sent_ = 0;
  if (secure_ != nullptr) {
    secure_->encrypted.clear();
    secure_->sent = 0;
  }
  if (finishing_) return;
  why_ = std::make_unique<Error>(std::move(why));
  if (dialing_ == nullptr) return;
  // What the peer has already sent can still be read, followed by EOF.
  shutdown(socket_.fd(), SHUT_RDWR);
  unread_ = true;
}

void Transport::write_timed_out() {
  if (!write_blocked_) return;
  const Time due = last_progress_ + write_timeout_;
  if (loop_.now().time < due) return set_timer(due, &Transport::write_timed_out);
  if (finishing_) return end_finish();
  fail({Fault::timeout, peer() + " does not read"});
}

void Transport::watch() {
  if (state_ != State::open && state_ != State::handshaking) return;
  std::uint32_t wanted = kAlways;
  if (wants_input()) {
    wanted |= kToRead;
  } else if (paused_ && !unread_) {
    wanted |= watching_ & kToRead;  // no system call before bytes arrive
  }
  if (write_blocked_) wanted |= EPOLLOUT;
  const bool again = unread_ && wants_input();
  if (wanted == watching_ && !again) return;
  if (again) unread_ = false;
  watching_ = wanted;
  loop_.change(socket_.fd(), watching_, *this);
}

void Transport::resume() {
  paused_ = false;
  if (state_ != State::open || finishing_) return;
  redeliver_ = !held_.empty();
  if (redeliver_ || (eof_ && !end_reported_)) later();
  watch();
}

void Transport::poll() {
  poll_ = true;
  later();
}

void Transport::half_close() {
  half_closing_ = true;
  flush();
}

// Closing a socket with unread input makes the kernel drop bytes the peer has not received, including our last reply.
// So this closes our side only, then reads and discards input until the peer closes.
void Transport::finish() {
  if (closed() || finishing_) return;
  if (state_ != State::open) {
    release();
    finished_due_ = true;
    return later();
  }
  finishing_ = true;
  opened_due_ = writable_due_ = redeliver_ = poll_ = false;
  why_ = nullptr;
  if (half_closed_) begin_linger();
  half_close();
}

void Transport::begin_linger() {
  set_timer(loop_.now().time + kLingerTime, &Transport::linger_timed_out);
}

void Transport::close() noexcept {
  finished_due_ = false;
  if (closed()) return;
  if (state_ == State::open && secure_ != nullptr && !write_broken_ && !half_closed_) {
    secure_->channel->close(secure_->encrypted);
    (void)socket_.send(std::string_view(secure_->encrypted).substr(secure_->sent));
  }
  release();
}

void Transport::trim() noexcept {
  if (in_callback_) return;
  free_if_empty(out_);
  free_if_empty(sending_);
  free_if_empty(held_);
  if (secure_ != nullptr && secure_->sent == secure_->encrypted.size()) {
    secure_->sent = 0;
    std::string().swap(secure_->encrypted);
  }
}

std::string_view Transport::application_protocol() const noexcept {
  return secure_ != nullptr ? secure_->channel->application_protocol() : std::string_view{};
}

// True if why_ must be reported now. On an outgoing connection that cannot be written to, all input is read first.
bool Transport::must_fail() const noexcept {
  if (why_ == nullptr || finishing_) return false;
  return state_ != State::open || dialing_ == nullptr || eof_;
}

void Transport::fail_for_why() {
  const Error why = std::move(*std::exchange(why_, nullptr));
  fail(why);
}

void Transport::fail(const Error& why) {
  release();
  call_owner([&] { owner_.failed(why); });
}

void Transport::end_finish() {
  release();
  const std::unique_ptr<Error> why = std::move(why_);
  call_owner([&] {
    if (why != nullptr) {
      owner_.failed(*why);
    } else {
      owner_.finished();
    }
  });
}

void Transport::release() noexcept {
  state_ = State::closed;
  if (dialing_ != nullptr) dialing_->lookup.reset();
  loop_.cancel(std::exchange(timer_, 0));
  Loop::forget(static_cast<Settler&>(*this));
  if (!socket_) return;
  loop_.forget(socket_.fd(), *this);
  socket_ = Socket();
}

}  // namespace weir
