#include "weir/server/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "weir/base/bounds.h"

namespace weir {
namespace {

// Read in one turn from one connection; the others have their turn then.
constexpr std::size_t kReadBytes = 64 << 10;
// Buffers above this are given back as soon as they are empty.
constexpr std::size_t kKeptBytes = 4 << 10;
// A peer that takes nothing of its replies for this long is cut off.
constexpr Duration kWriteTimeout = std::chrono::seconds{30};

// Edge-triggered: the kernel tells of what arrives once, and need not look at every socket again in the next turn.
// Where something may be left that it has told of, unread_ makes watch() ask again.
constexpr std::uint32_t kAlways = EPOLLET;
constexpr std::uint32_t kToRead = EPOLLIN | EPOLLRDHUP;
constexpr std::uint32_t kEnds = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

// How long a peer that we are done with may go on sending.
constexpr Duration kLingerTimeout = std::chrono::seconds{2};

void give_back(std::string& buffer) {
  if (buffer.empty() && buffer.capacity() > kKeptBytes) std::string().swap(buffer);
}

}  // namespace

Connection::Connection(std::uint64_t id, Turn& turn, Socket socket, std::unique_ptr<TlsChannel> channel,
                       std::unique_ptr<Session> session, Protocol protocol)
    : id_(id),
      turn_(turn),
      socket_(std::move(socket)),
      session_(std::move(session)),
      protocol_(protocol),
      last_active_(turn.loop.reading().time) {
  if (channel != nullptr) {
    const Time deadline = turn_.loop.now().time + bounds::tls_handshake_time_max;
    tls_ = std::make_unique<Secured>(Secured{std::move(channel), {}, deadline});
  }
  turn_.metrics.connections[static_cast<std::size_t>(protocol_)].add();
  watching_ = kAlways | kToRead;
  dead_ = !turn_.loop.watch(socket_.fd(), watching_, *this);
  if (dead_) touch();
}

Connection::~Connection() {
  turn_.loop.cancel(alarm_);
  turn_.loop.forget(socket_.fd(), *this);
  turn_.pipeline.forget(*this);
  turn_.metrics.connections[static_cast<std::size_t>(protocol_)].subtract();
}

void Connection::touch() {
  if (dirty_) return;
  dirty_ = true;
  turn_.dirty.push_back(id_);
}

bool Connection::paused() const noexcept {
  const std::size_t sealed = tls_ ? tls_->sealed.size() : 0;
  return out_.size() + sealed > bounds::unsent_bytes_max || owed_ > bounds::owed_max || must_wait();
}

bool Connection::may_read() const noexcept {
  if (hung_up_) return false;
  return lingering_ || (!paused() && !broken_ && draining_ == drained_);
}

void Connection::ready(std::uint32_t events) {
  touch();
  if ((events & (EPOLLIN | kEnds)) == 0) return;
  if (may_read()) {
    read();
    // The end is told of together with what came before it, and is read on its own.
    unread_ = unread_ || (events & kEnds) != 0;
    return;
  }
  unread_ = true;
  // Nothing reaches the peer any more: whatever is owed is owed to nobody.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) dead_ = true;
}

void Connection::read() {
  std::string& scratch = turn_.scratch;
  scratch.resize(kReadBytes);
  const ssize_t got = socket_.receive(scratch);
  unread_ = got == static_cast<ssize_t>(scratch.size()) || (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) {
    dead_ = true;
    return;
  }
  if (got == 0) {
    hung_up_ = true;
    return;
  }
  if (lingering_) return;  // read to be forgotten
  std::string_view fresh(scratch.data(), static_cast<std::size_t>(got));
  if (tls_) fresh = unseal(fresh);
  if (in_.empty()) {
    const std::size_t used = decode(fresh);
    if (used < fresh.size()) in_.assign(fresh.substr(used));
  } else {
    in_.append(fresh);
    decode_held();
  }
}

std::string_view Connection::unseal(std::string_view bytes) {
  turn_.plain.clear();
  if (!tls_->channel->receive(bytes, turn_.plain, tls_->sealed)) {
    // What was said before the damage is not acted on either: the last words are the alert.
    turn_.plain.clear();
    broken_ = true;
  }
  hung_up_ = hung_up_ || tls_->channel->peer_closed();
  return turn_.plain;
}

// What is held is not copied while nothing of it can be decoded: a request may come in a million pieces.
void Connection::decode_held() {
  std::string held = std::exchange(in_, {});
  const std::size_t used = decode(held);
  if (used != 0) held.erase(0, used);
  in_ = std::move(held);
}

// Decodes what there is; returns how much of it is done with.
std::size_t Connection::decode(std::string_view bytes) {
  const std::size_t size = bytes.size();
  Now now = turn_.loop.reading();
  while (!bytes.empty() && !paused() && !session_->finished()) {
    Queries& queries = turn_.queries;
    queries.clear();
    turn_.pipeline.refresh();
    session_->at(now);
    const auto taken = session_->receive(bytes, queries, out_);
    owed_ += queries.all().size();
    for (const Asked& asked : queries.all()) turn_.pipeline.ask(asked.sequence, asked.query, *this, now);
    const bool more = queries.full();
    queries.clear();
    if (!taken) {
      broken_ = true;
      return size;
    }
    bytes.remove_prefix(*taken);
    if (*taken == 0 && !more) break;
    // More than a turn's questions: answer these first, so that what is owed stays bounded.
    if (more) turn_.pipeline.flush(now);
    if (!bytes.empty()) now = turn_.loop.now();
  }
  return session_->finished() ? size : size - bytes.size();
}

void Connection::answered(std::uint64_t sequence, const Result<Answer>& answer) {
  --owed_;
  session_->reply(sequence, answer, out_);
  touch();
}

// Encrypts what waits for it, once the last was taken: both never hold much. False: the connection is lost.
bool Connection::seal() {
  if (!tls_->sealed.empty() || out_.empty() || !tls_->channel->established()) return true;
  const bool sent = tls_->channel->send(out_, tls_->sealed).has_value();
  out_.clear();
  return sent;
}

// As much as the kernel takes. False: the connection is lost.
bool Connection::write() {
  std::string& bytes = tls_ ? tls_->sealed : out_;
  for (;;) {
    if (tls_ && !seal()) return false;
    if (bytes.empty()) return true;
    const ssize_t sent = socket_.send(bytes);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent < 0) {
      // The peer's time to take something begins when there is something to take.
      if ((watching_ & EPOLLOUT) == 0) last_progress_ = turn_.loop.now().time;
      return true;
    }
    last_progress_ = turn_.loop.reading().time;
    if (static_cast<std::size_t>(sent) == bytes.size()) {
      bytes.clear();
    } else {
      bytes.erase(0, static_cast<std::size_t>(sent));
    }
  }
}

bool Connection::idle() const noexcept {
  const bool waits = owed_ == 0 && out_.empty() && unsent().empty() && !dirty_;
  return waits && !session_->working() && session_->wake_at() == Time::max();
}

bool Connection::settle() {
  dirty_ = false;
  last_active_ = turn_.loop.reading().time;
  if (dead_ || !write()) return false;
  // What was held back while answers were owed or unsent can go on now.
  if (!in_.empty() && !paused() && out_.empty() && unsent().empty() && !broken_) {
    const std::size_t before = in_.size();
    decode_held();
    if (in_.size() != before || broken_ || !out_.empty()) touch();
  }
  if (draining_ && !drained_) drain_session();
  const bool over = broken_ || hung_up_ || session_->finished();
  const bool idle = !dirty_ && owed_ == 0 && unsent().empty() && !session_->working();
  if (idle && hung_up_ && !broken_ && !std::exchange(last_words_, true)) {
    session_->hang_up(out_);
    if (!out_.empty()) touch();
  }
  if (idle && over && !dirty_) {
    if (tls_) {
      out_.clear();  // there is something only if nobody could be told
      tls_->channel->close(tls_->sealed);
      if (!write()) return false;
    }
    if (unsent().empty() && !linger()) return false;
  }
  give_back(in_);
  give_back(out_);
  if (tls_) give_back(tls_->sealed);
  watch();
  set_alarm();
  return true;
}

// Tells the session once everything that it can still make sense of has been answered, or at least asked.
void Connection::drain_session() {
  const bool stuck = owed_ == 0 && out_.empty() && unsent().empty() && !dirty_;
  if (!in_.empty() && !stuck && !broken_) return;
  drained_ = true;
  session_->drain(out_);
  touch();
}

// A close with unread input would make the kernel forget what the peer has not taken yet, our last words among it. So
// we say that we are done, and read to be forgotten until the peer is done too. False: it is.
bool Connection::linger() {
  if (hung_up_) return false;
  if (!lingering_) {
    lingering_ = true;
    last_progress_ = turn_.loop.now().time;
    if (shutdown(socket_.fd(), SHUT_WR) != 0) return false;
  }
  in_.clear();
  return true;
}

void Connection::watch() {
  std::uint32_t wanted = kAlways;
  if (may_read()) wanted |= kToRead;
  if (!unsent().empty()) wanted |= EPOLLOUT;
  if (wanted == watching_ && !unread_) return;
  unread_ = false;
  watching_ = wanted;
  turn_.loop.change(socket_.fd(), watching_, *this);
}

void Connection::set_alarm() {
  if (alarm_ != 0 || lingering_) return;
  const Time when = session_->wake_at();
  if (when == Time::max()) return;
  alarm_ = turn_.loop.at(when, [this] {
    alarm_ = 0;
    wake();
  });
}

void Connection::wake() {
  const Now now = turn_.loop.now();
  Queries& queries = turn_.queries;
  queries.clear();
  turn_.pipeline.refresh();
  session_->wake(now.time, queries, out_);
  owed_ += queries.all().size();
  for (const Asked& asked : queries.all()) turn_.pipeline.ask(asked.sequence, asked.query, *this, now);
  queries.clear();
  touch();
}

void Connection::check_deadline(Time now, Duration idle_timeout) {
  if (lingering_) {
    dead_ = now - last_progress_ > kLingerTimeout;
    if (dead_) touch();
    return;
  }
  // What was only written in this turn has not met the peer yet; settle() finds out whether it is taken.
  const bool slow = (watching_ & EPOLLOUT) != 0 && now - last_progress_ > kWriteTimeout;
  if (slow || (tls_ && !tls_->channel->established() && now > tls_->deadline)) {
    dead_ = true;
    touch();
    return;
  }
  if (session_->deadline() <= now) {
    session_->expire(now, out_);
    touch();
  } else if (idle_timeout > Duration::zero() && idle() && now - last_active_ > idle_timeout) {
    broken_ = true;
    touch();
  }
}

void Connection::drain() {
  // Sent before anybody could know that we are going.
  if (may_read()) read();
  draining_ = true;
  touch();
}

}  // namespace weir
